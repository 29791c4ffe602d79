"""Forks of sessions go on in the real programs: each is sent exactly the chosen messages, then the new prompt.

    python benchmarks/resume.py [--programs FOLDER] [--only NAME]

The programs come from npm into FOLDER (a temporary one by default); where that cannot be, the run says so and ends well. They
talk to a mock of the model's API on this machine, in a home folder of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from model_mock import Doc, Mock

CLAUDE = ("2.1.332", "2.1.89", "2.1.20", "2.0.22", "1.0.128")
CODEX = ("0.171.0", "0.140.0", "0.98.0", "0.36.0")
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
FILLED = re.compile(r"^(No response requested\.|Continue from where you left off\.)$")
"""What a program says itself between an end without an answer and the next prompt."""
ASIDE = ("<system-reminder>", "<environment_context>", "# AGENTS.md", "<user_instructions>", "<skills", "<permissions", "<collab")
LAST = "Now go on. [[last]]"


def installed(folder: Path, name: str, version: str) -> Path | None:
    """The folder with a program's command; None where it cannot be had."""
    home = folder / f"{name}-{version}"
    commands = home / "node_modules" / ".bin"
    if not (commands / name).exists():
        home.mkdir(parents=True, exist_ok=True)
        call = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), f"{PACKAGES[name]}@{version}"]
        try:
            subprocess.run(call, check=True, capture_output=True, timeout=600)
        except (OSError, subprocess.SubprocessError):
            return None
    return commands if (commands / name).exists() else None


# ---- the story that is told in each session


def answers(request: Doc) -> list[Doc]:
    """First prompt: two calls at once, one more, then words. Second prompt: words. Side requests: a word."""
    said = list(flat(request))
    prompts = [text for kind, text in said if kind == "user" and "[[" in text]
    tools = [tool.get("name") for tool in request.get("tools") or () if isinstance(tool, dict)]
    if not prompts or not tools:
        return [{"text": "ok"}]
    done = sum(kind == "result" for kind, _ in said)
    if "[[work]]" in prompts[-1] and done < 3:
        if done == 0:
            return [{"text": "I look first."}, shell("call_one", "echo one", tools), shell("call_two", "echo two", tools)]
        return [shell("call_three", "echo three", tools)]
    if "[[work]]" in prompts[-1]:
        return [{"text": "Done with the work."}]
    return [{"text": "The second answer." if "[[second]]" in prompts[-1] else "The last answer."}]


def shell(call: str, command: str, tools: list[Any]) -> Doc:
    forms: dict[str, Doc] = {
        "Bash": {"command": command, "description": "say it"},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-lc", command]},
    }
    name = next((one for one in forms if one in tools), "shell")
    return {"call": call, "name": name, "input": forms[name]}


def flat(request: Doc) -> Iterator[tuple[str, str]]:
    """(user, assistant, call or result; text or id) of what a model is sent, without what programs put beside it."""
    for item in request.get("messages") or request.get("input") or ():
        kind = item.get("type") or "message"
        if kind in ("function_call", "custom_tool_call"):
            yield "call", str(item.get("call_id"))
        elif kind.endswith("_output"):
            yield "result", f"{item.get('call_id')}: {words(item.get('output'))}"
        if kind != "message" or item.get("role") not in ("user", "assistant"):
            continue
        held = item.get("content")
        for block in [{"type": "text", "text": held}] if isinstance(held, str) else held or ():
            if block.get("type") == "tool_use":
                yield "call", block["id"]
            elif block.get("type") == "tool_result":
                yield "result", f"{block['tool_use_id']}: {words(block.get('content'))}"
            elif isinstance(block.get("text"), str):
                text = block["text"].strip()
                if text and not text.startswith(ASIDE) and not FILLED.match(text):
                    yield item["role"], text


def settled(found: list[tuple[str, str]]) -> list[Any]:
    """The same with what is between two messages in one order: tools that work at once end in any order."""
    out: list[Any] = []
    for kind, text in found:
        if kind in ("user", "assistant"):
            out.append((kind, text))
        elif out and isinstance(out[-1], list):
            out[-1] = sorted([*out[-1], (kind, text)])
        else:
            out.append([(kind, text)])
    return out


def words(output: Any) -> str:
    """The word that a command of ours said, or the words of an edited result."""
    text = output if isinstance(output, str) else " ".join(one.get("text", "") for one in output or () if isinstance(one, dict))
    if text.startswith('{"output"'):
        text = json.loads(text)["output"]
    found = re.findall(r"\b(one|two|three|edited)\b", text)
    return found[-1] if found else text.strip()[:60]


# ---- the programs


class Program:
    """One version of one program, with a home, a project and a model of its own."""

    def __init__(self, name: str, version: str, commands: Path, folder: Path) -> None:
        self.name, self.version, self.folder = name, version, folder
        self.project = folder / "shop"
        self.project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.home = folder / name
        self.home.mkdir()
        self.mock = Mock(answers)
        self.env = {
            "PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8",
            "CLAUDE_CONFIG_DIR": str(self.home), "ANTHROPIC_BASE_URL": self.mock.url, "ANTHROPIC_API_KEY": "mock",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CODEX_HOME": str(self.home), "MOCK_KEY": "mock", "STUDIO_DATA_DIR": str(folder / "studio"),
        }  # fmt: skip
        if name == "claude":
            (self.home / "projects").mkdir()
        else:
            (self.home / "sessions").mkdir()
            (self.home / "config.toml").write_text(
                'model = "gpt-5-codex"\nmodel_provider = "mock"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
                f'[model_providers.mock]\nname = "mock"\nbase_url = "{self.mock.url}/v1"\nwire_api = "responses"\n'
                'env_key = "MOCK_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
            )

    def run(self, line: str) -> str:
        """A line of a shell, as a person copies it."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.project,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout + done.stderr

    def session(self) -> Path:
        """A session of two prompts, as the program writes it. RuntimeError: it wrote none."""
        if self.name == "claude":
            said = self.run("claude -p 'Work, please. [[work]]' --allowedTools Bash")
            said += self.run("claude -p --continue 'And then? [[second]]' --allowedTools Bash")
            found = list(self.home.glob("projects/*/*.jsonl"))
        else:
            said = self.run("codex exec 'Work, please. [[work]]'")
            found = list(self.home.glob("sessions/*/*/*/*.jsonl"))
            ident = json.loads(found[0].read_text().partition("\n")[0])["payload"]["id"] if found else ""
            said += self.run(f"codex exec resume {ident} 'And then? [[second]]'")
            found = list(self.home.glob("sessions/*/*/*/*.jsonl"))
        found = [one for one in found if "[[second]]" in one.read_text()]  # a title may stand in a file of its own
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} sessions were written: {said[-2000:]}")
        return found[0]

    def studio(self, *arguments: object) -> Any:
        call = [sys.executable, "-m", "studio", *map(str, arguments), "--json"]
        env = {**os.environ, **self.env, "PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parent.parent)}
        done = subprocess.run(call, capture_output=True, text=True, env=env, timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    def sent(self, made: Doc) -> tuple[list[tuple[str, str]], str]:
        """Go on from a fork by the command that was printed; what the model was sent, and what the program said."""
        before = len(self.mock.requests)
        line = made["resume"]["commands"]["print"].replace("'…'", f"'{LAST}'")
        said = self.run(line)
        prompt = made["resume"]["prompt"] or LAST
        for _, request in self.mock.requests[before:]:
            found = list(flat(request))
            if found and found[-1] == ("user", prompt) and (request.get("tools") or len(found) > 1):
                return found, said
        return [], said


WORK, SECOND = ("user", "Work, please. [[work]]"), ("user", "And then? [[second]]")
FIRST_STEP = [
    ("assistant", "I look first."), ("call", "call_one"), ("call", "call_two"),
    ("result", "call_one: one"), ("result", "call_two: two"),
]  # fmt: skip
THIRD = [("call", "call_three"), ("result", "call_three: three")]
DONE = ("assistant", "Done with the work.")


def cases(program: Program, path: Path) -> Iterator[tuple[str, list[object], list[tuple[str, str]]]]:
    """(name, arguments of `studio fork`, what the model is to be sent)."""
    rows = program.studio("tree", path)["rows"]
    steps = [row for row in rows if row["source"] in ("input", "loop") and not row["checkpoint_ns"]]
    number = {
        name: row["number"] for name, row in zip(("work", "pair", "third", "done", "second", "answer"), steps[-6:], strict=True)
    }
    state = program.studio("show", path, number["answer"])["values"]["messages"]

    def at(kind: str, holds: str) -> int:
        return next(i for i, one in enumerate(state) if one["type"] == kind and holds in json.dumps(one))

    new = ("user", LAST)
    yield "after two calls at once", [number["pair"]], [WORK, *FIRST_STEP, new]
    yield "inside the work", [number["third"]], [WORK, *FIRST_STEP, *THIRD, new]
    yield "after the first answer", [number["done"]], [WORK, *FIRST_STEP, *THIRD, DONE, new]
    yield "at the end", [number["answer"]], [WORK, *FIRST_STEP, *THIRD, DONE, SECOND, ("assistant", "The second answer."), new]
    other = 'It\'s "other" words [[second]]'
    last = at("human", "[[second]]")
    edit = f"/messages/{last}/content={json.dumps(other)}"
    yield "the last prompt edited", [number["second"], "--set", edit], [WORK, *FIRST_STEP, *THIRD, DONE, ("user", other)]
    words_ = json.dumps("Work otherwise. [[work]]")
    edit = f"/messages/{at('human', '[[work]]')}/content={words_}"
    yield "an earlier prompt edited", [number["done"], "--set", edit], [
        ("user", "Work otherwise. [[work]]"), *FIRST_STEP, *THIRD, DONE, new,
    ]  # fmt: skip
    result = at("tool", "call_two")
    yield "a result edited", [number["third"], "--set", f'/messages/{result}/content="edited"'], [
        WORK, *FIRST_STEP[:-1], ("result", "call_two: edited"), *THIRD, new,
    ]  # fmt: skip
    yield "a result dropped", [number["done"], "--unset", f"/messages/{result}"], [
        WORK, *FIRST_STEP[:2], FIRST_STEP[3], *THIRD, DONE, new,
    ]  # fmt: skip


def compacted(program: Program) -> tuple[Path, list[tuple[str, str]]]:
    """The session after a compaction and one prompt more; what the program itself sends when it goes on from there."""
    program.run("claude -p --continue '/compact'")
    program.run("claude -p --continue 'And third? [[third]]' --allowedTools Bash")
    found = [one for one in program.home.glob("projects/*/*.jsonl") if "[[third]]" in one.read_text()]
    before = len(program.mock.requests)
    program.run(f"claude -p --resume {found[0].stem} --fork-session '{LAST}' --allowedTools Bash")
    sent = [list(flat(request)) for _, request in program.mock.requests[before:]]
    return found[0], next((one for one in sent if one and one[-1] == ("user", LAST)), [])


def check(name: str, version: str, commands: Path, folder: Path) -> tuple[int, int]:
    """Prints one line to a case; (those that hold, all)."""
    program = Program(name, version, commands, folder)
    good = total = 0
    try:
        path = program.session()
        before = path.read_bytes()
        for title, arguments, wanted in cases(program, path):
            total += 1
            try:
                made = program.studio("fork", path, *arguments, "--install")
                found, said = program.sent(made)
            except RuntimeError as error:
                print(f"  {name} {version}  {title}: {error}")
                continue
            same = settled(found) == settled(wanted) and made["verified"]
            good += same
            print(f"  {name} {version}  {title}: {'ok' if same else 'NOT AS CHOSEN'}")
            if not same:
                print(f"    wanted {wanted}\n    sent   {found}\n    said   {said[-600:]!r}")
        if name == "claude":
            total += 1
            path, wanted = compacted(program)
            before = path.read_bytes()
            made = program.studio("fork", path, "head", "--install")
            found, said = program.sent(made)
            same = bool(wanted) and settled(found) == settled(wanted) and made["verified"]
            good += same
            print(f"  {name} {version}  after a compaction: {'ok' if same else 'NOT AS THE SESSION ITSELF'}")
            if not same:
                print(f"    wanted {wanted}\n    sent   {found}\n    said   {said[-600:]!r}")
        if path.read_bytes() != before:
            print(f"  {name} {version}: the source was changed")
            good = -1
    except RuntimeError as error:
        print(f"  {name} {version}: {error}")
        return 0, 1
    finally:
        program.mock.close()
    return good, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, help="where the programs are, or are put")
    parser.add_argument("--only", help="claude, codex, or one version")
    options = parser.parse_args()
    if shutil.which("npm") is None or shutil.which("git") is None:
        print("skipped: npm and git are needed to run the programs")
        return 0
    wanted = [("claude", one) for one in CLAUDE] + [("codex", one) for one in CODEX]
    failed = ran = 0
    with tempfile.TemporaryDirectory(prefix="resume-") as place:
        for name, version in wanted:
            if options.only not in (None, name, version):
                continue
            commands = installed(options.programs or Path(place) / "programs", name, version)
            if commands is None:
                print(f"{name} {version}: skipped, it cannot be installed")
                continue
            good, total = check(name, version, commands, Path(place) / f"{name}-{version}")
            print(f"{name} {version}: {good} of {total} forks went on as chosen", flush=True)
            ran, failed = ran + 1, failed + (good != total)
    if not ran:
        print("skipped: no program could be installed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
