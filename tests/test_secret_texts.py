"""Texts as chats, tool results, code, logs and settings hold them: the value that a name announces is masked alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from studio.render.secrets import has_secret, mask_text
from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at

S = "hunter2secret"
HIDDEN = [
    f'x = """a"""; password = """{S}"""',
    f"PASSWORD={S}",
    f"API_KEY={S}",
    "password=MySecret",
    f"PGPASSWORD={S} psql",
    f"mysql --password {S} -u x",
    f"x --api-key={S}",
    f"x --token '{S}'",
    f"name: API_KEY\nvalue: {S}",
    f'env:\n  - name: DB_PASSWORD\n    value: "{S}"\n  - name: A\n    value: keepme',
    f"- value: {S}\n  name: DB_PASSWORD\n  other: keepme",
    f'const apiKey: string = "{S}"',
    f'os.environ["API_KEY"] = "{S}"',
    f"<password>{S}</password>",
    f'<add key="Password" value="{S}" x="keepme"/>',
    f'<add value="{S}" name="Password"/>',
    f'<wsse:Password Type="x">{S}</wsse:Password>',
    f"<password><![CDATA[{S}]]></password>",
    f'{{"value": "{S}", "type": "x", "name": "API_KEY", "z": "keepme"}}',
    f'[{{"name":"A","value":"keepme"}},{{"type":"don\'t {{","name":"API_KEY","x":{{"value":"keepme"}},"value":"{S}"}}]',
    f'{{\\"value\\": \\"{S}\\", \\"name\\": \\"API_KEY\\"}}',
    f"{{'key': 'password', 'secure': True, 'value': '{S}'}}",
    f'{{ name: "API_KEY", value: "{S}" }}',
    f'{{"name":"api_key","value":["{S}"]}}',
    f"password: |\n  {S}\n  {S}x\nother: keepme",
    f"password:\n  {S}\nother: keepme",
    f'API_KEY: str = "{S}"',
    f'api_key: Optional[str] = "{S}"',
    f'api_key=os.getenv("X", "{S}")',
    f'const k = {{ apiKey: process.env.K || "{S}" }}',
    f"PASSWORD=${{X:-{S}}}",
    f'#define API_KEY "{S}"',
    f"ENV API_KEY {S}",
    f'char password[] = "{S}";',
    f"password：{S}",
    f'var apiKey string = "{S}"',
    f"api_key          =          {S}",
    "password=secret",
    "token=hunter2_token",
    "password: hunter2...",
    f'{{"Name":"DB_PASSWORD","Type":"SecureString","Value":"{S}"}}',
    f"user[password]={S}",
    f"passphrase: {S} horse battery",
    f'headers = {{"X-Api-Key": "{S}"}}',
    f'api_key="{S}",',
    f"The password: {S}",
    "my password: swordfish",
    "secret: butter",
    f'{{"password": {{"main": "{S}"}}}}',
    f"token: {S}.",
    f'curl -H "X-Api-Key: {S}" https://x',
    'pass_phrase = "a b c"',
    f"db.password = {S}",
    f"spring.datasource.password={S}",
    f'"apiKey" : "{S}"',
    f'--password "{S}"',
    f'ALTER USER x PASSWORD="{S}"',
    f"[client]\nuser=x\npassword={S}\n",
    f"DATABASE_PASSWORD: {S} # keepme",
    f'{{"password":\n  "{S}"}}',
]
CLEAR = [
    '"next_page_token": "abcDEF123"',
    '{"nextPageToken":"CAUQAA"}',
    "cookies: 12",
    '["password","username"]',
    "token: Token = x",
    "The secret: butter.",
    "the password is required",
    "max_tokens: 100",
    "input_tokens=12",
    '"total_tokens": 4711, "completion_tokens": 3',
    "usage: prompt_tokens=10 completion_tokens=20 total_tokens=30",
    "tokens = 3k",
    "tokens: ~500",
    "tokens: 12.5k",
    'input[type="password"]:focus { color: red }',
    "input[type=password]:focus",
    ".token.keyword { color: #07a }",
    "--color-token: #fff",
    "if token: return None",
    "while token: continue",
    "if password:\n    abort()",
    'if not token:\n    raise ValueError("no token")',
    "for token in tokens:\n    count += 1",
    "for token in tokens:\n    print(token)",
    "token => token.value",
    "tokens.map(token => token.x)",
    "lambda token: token.strip()",
    "token = line.split()[0]",
    "token = tokens[i]",
    'token = response.json()["token"]',
    "apiKey: settings.apiKey",
    "token = user.token",
    "password=form.password",
    "api_key=openai_api_key, x",
    "client = OpenAI(api_key=OPENAI_API_KEY)",
    'api_key="YOUR_API_KEY"',
    "api_key: your-api-key-here",
    "OPENAI_API_KEY=sk-...",
    "SECRET_KEY=changeme",
    "export API_KEY=<your key>",
    "export TOKEN=${{ secrets.GITHUB_TOKEN }}",
    "password: ${DB_PASSWORD}",
    "`${config.apiKey}`: token: ${this.token}",
    "use the --password flag to set it",
    "--token TOKEN  the token",
    "usage: x [--password PASSWORD]",
    "credentials: HTTPAuthorizationCredentials = Depends(security)",
    "credentials: Credentials | None = None",
    "password: Mapped[str] = mapped_column(String(64))",
    "secret: bytes | None",
    "token: Annotated[str, Depends(oauth2_scheme)]",
    "interface A { token: string; apiKey?: string }",
    '{"properties": {"api_key": {"type": "string", "description": "The key"}}}',
    '{"password": {"type": "string", "description": "the user\'s", "minLength": 8}}',
    '"required": ["token", "email"]',
    "<password>required</password>",
    '<label for="password">Password</label>',
    '<input type="password" name="password" placeholder="x">',
    "Password: at least 8 characters",
    "Password: min 8 characters",
    "password: ********",
    "token: [masked]",
    "API key: see docs",
    "Authorization: required",
    "The token: it expires soon",
    "Note: the key: value pairs are",
    '{"name": "password", "type": "string", "required": true}',
    '{"name":"token","value":null}',
    "- name: API_KEY\n  valueFrom:\n    secretKeyRef:\n      name: x\n",
    "name: password\ntype: string\n",
    "| password | string | required |",
    "x?auth=basic&pass=1",
    "token expired: 2026-01-01",
    "secrets: 3 found",
    "keys: 12",
    "passwords: 2",
    'token.type == "x"',
    'password != "x"',
    "Secret Santa: Bob",
    "access key: Alt+S",
    "token count: 12",
    'eos_token: "</s>"',
    "pad_token=<pad>",
    "tokenizer: gpt2",
    "def f(password: str, token: Optional[str] = None) -> None:",
    "cookie=yes",
    "let token = await get();",
    "const {token, password} = req.body",
    'password = request.form["password"]',
    'password = getpass.getpass("Password: ")',
    'token = jwt.encode({"a": 1}, key)',
    "Enter your password: ",
    "Forgot password? Click: here",
    "sort_key: name, primary_key: id",
    "The bearer: a person who carries",
    'primaryKey="id"',
    'key="name"',
    "<key>CFBundleName</key>",
    "Vec<Token>x",
    "Map<Token>(x)",
]


class Held(TypedDict, total=False):
    said: Any


@pytest.mark.parametrize("text", HIDDEN)
def test_the_value_that_a_name_announces_is_masked_and_nothing_else(text: str) -> None:
    shown = mask_text(text)
    assert has_secret(text) and "[masked]" in shown
    assert S not in shown and shown.count("keepme") == text.count("keepme")
    assert mask_text(shown) == shown


@pytest.mark.parametrize("text", CLEAR)
def test_a_text_that_holds_no_secret_is_shown_as_it_is(text: str) -> None:
    assert mask_text(text) == text
    assert not has_secret(text)


def test_the_command_line_masks_and_shows_the_same(tmp_path: Path, studio: Studio) -> None:
    builder: StateGraph[Any] = StateGraph(Held)
    builder.add_node("put", lambda state: {"said": [*HIDDEN, *CLEAR]})
    builder.add_edge(START, "put")
    path = tmp_path / "held.sqlite"
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"said": ""}, config("t"))
    for call in (["show", "head"], ["diff", "head"], ["export"], ["show", "head", "--path", "/said"]):
        for form in ([], ["--json"]):
            answer = studio(call[0], path, *call[1:], *form)
            assert answer.code == 0 and S not in answer.out, call
    for at, text in enumerate(CLEAR[:12], len(HIDDEN)):
        assert studio("show", path, "head", "--path", f"/said/{at}").out.rstrip("\n") == text


BEGINNINGS = [
    "api_key=",
    'password":"',
    "token: ",
    '["api_key",',
    '{"name":"password","value":"',
    '{"name":"password",',
    "{'x':\"",
    "name: password\n",
    "- name: password\n  x: y\n",
    "- value: a\n  name: password\n",
    '<a key="password" ',
    "<password>",
    "<password a",
    "--password ",
    "--password a ",
    "#define KEY_password ",
    "const apiKey: a[",
    "password: a | a | ",
    "password: |\n ",
    "password:\n  ",
    'api_key=os.getenv("X", ',
    "token = a(",
    "token = a[",
    "password=${X",
    "password=x x x",
    '"api_key": [',
    '"secret":{',
    '"password": {"type": "string", ',
    "authorization: ",
    "authorization:token ",
    "Cookie: a; ",
    'token=\\"',
    "?sig=",
    "?sig=%3d",
    "api key ",
    "keykey=",
    "password[0]=",
    'os.environ["API_KEY"]=',
    "password ",
    "password\t\t\t\t",
    "token '",
    'key="""',
    "://a:",
    "://a:b/",
    "://:@",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN A ",
    "eyJaaaaaaaa.eyJ",
    "sk-",
    "sk-a-",
    "AKIA",
    "ghp_",
    "xoxb-",
    "AIza",
    "hf_",
    "sk_live_",
    "Bearer ",
    "Basic ",
    '\\\\\\"',
    "secret：",
    "the secret: a ",
    "password=a.a",
    "password=your_",
]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_megabyte_of_beginnings_does_not_freeze(beginning: str) -> None:
    text = (beginning * (1_000_000 // len(beginning) + 1))[:1_000_000]
    start = time.process_time()
    mask_text(text)
    has_secret(f"{text} ")
    assert time.process_time() - start < 20
