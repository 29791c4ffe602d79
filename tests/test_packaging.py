"""What a person gets who installs the studio: the wheel, the browser code in it, and the demo that it serves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "static" / "vendor"
BIN = "Scripts" if os.name == "nt" else "bin"


def project_files() -> list[Path]:
    """The files of the project: those that git knows, else all but the made ones (an unpacked sdist has no git)."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
        return [ROOT / os.fsdecode(name) for name in listed if name and (ROOT / os.fsdecode(name)).is_file()]
    except (OSError, subprocess.CalledProcessError):
        made = {".venv", "vendor", "__pycache__", "dist", ".git"}
        return [path for path in ROOT.rglob("*") if path.is_file() and not made & set(path.parts)]


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a person who has only just installed the studio."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "COV_"))}
    return {**kept, "XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state"), "STUDIO_SAMPLE_PACE": "0"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=600)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment that holds the wheel and what it requires, nothing else."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    venv.create(folder, with_pip=True)
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    command = [str(folder / BIN / "python"), "-m", "pip", "install", "--quiet", *constraints, str(wheel)]
    subprocess.run(command, check=True, timeout=900, cwd=folder)
    return folder / BIN


class Demo:
    """A running `studio demo --no-browser --port 0`."""

    def __init__(self, commands: Path, home: Path) -> None:
        arguments = [str(commands / "studio"), "demo", "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home, env=clean_environment(home)
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def url(self, seconds: float = 60) -> str:
        """Wait for the line that prints the address with its token."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(r"http://\S+", "".join(self.lines))
            if found:
                return found[0]
            assert self.process.poll() is None, f"studio demo ended: {''.join(self.lines)}"
            time.sleep(0.05)
        raise AssertionError(f"no address within {seconds} s: {''.join(self.lines)}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def demo(installed: Path, tmp_path: Path) -> Iterator[Demo]:
    running = Demo(installed, tmp_path)
    yield running
    running.stop()


@pytest.mark.slow
def test_the_wheel_carries_pages_styles_browser_code_and_samples(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    vendored = ("htmx.min.js", "hx-sse.min.js", "codemirror.js", "manifest.json", "licenses/htmx.org.txt")
    samples = (
        "support_agent.sqlite", "research_team.sqlite", "coding_session.jsonl", "graphs.py", "langgraph.json",
        "facts.json", "README.md",
    )  # fmt: skip
    assert {f"studio/static/vendor/{name}" for name in vendored} <= names
    assert {f"studio/sample_threads/{name}" for name in samples} <= names
    assert any(name.startswith("studio/templates/") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(("-wal", "-shm"))]
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"studio"}


@pytest.mark.slow
def test_the_demo_of_an_installed_wheel_serves_its_page_and_static_files(demo: Demo) -> None:
    url = demo.url()
    with httpx.Client(follow_redirects=True, timeout=20) as client:
        page = client.get(url)
        assert page.status_code == 200
        soup = BeautifulSoup(page.text, "html.parser")
        assert "refund-4711" in page.text
        linked = [tag.get("href") or tag.get("src") for tag in soup.select("link[href], script[src]")]
        assert any("vendor/htmx.min.js" in str(link) for link in linked)
        for link in linked:
            answer = client.get(httpx.URL(url).join(str(link)))
            assert answer.status_code == 200, link
            assert answer.content
        assert client.get(httpx.URL(url).join("/static/vendor/codemirror.js")).status_code == 200


@pytest.mark.slow
def test_an_installed_wheel_forks_and_runs_a_sample_and_leaves_it_as_it_was(installed: Path, tmp_path: Path) -> None:
    env = clean_environment(tmp_path)

    def studio(*arguments: str, code: int = 0) -> str:
        command = [str(installed / "studio"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=120)
        assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    where = [str(installed / "python"), "-c", "from studio import assets; print(assets.sample_folder())"]
    samples = Path(subprocess.run(where, check=True, capture_output=True, text=True, env=env, cwd=tmp_path).stdout.strip())
    database = samples / "support_agent.sqlite"
    before = (database.read_bytes(), database.stat().st_mtime_ns)
    thread = [str(database), "--thread", "refund-4711"]
    fork = json.loads(studio("fork", database.as_posix(), "4", "--thread", "refund-4711", "--set", "/order/total=49.9", "--json"))
    assert fork["verified"] is True
    paused = studio("run", thread[0], fork["checkpoint_id"], *thread[1:], "--graph", "support_agent", "--json", "--yes", code=4)
    end = json.loads(paused.splitlines()[-1])
    assert end["status"] == "paused"
    assert "49.90 EUR" in json.dumps(end["interrupts"])
    assert (database.read_bytes(), database.stat().st_mtime_ns) == before


def test_the_browser_code_is_what_the_lock_file_names() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text("utf-8"))
    locked = json.loads((ROOT / "package-lock.json").read_text("utf-8"))["packages"]
    for name, version in manifest["packages"].items():
        assert locked[f"node_modules/{name}"]["version"] == version
        assert (VENDOR / "licenses" / f"{name.replace('@', '').replace('/', '-')}.txt").stat().st_size > 100
    assert {"htmx.org", "codemirror", "@codemirror/lang-json"} <= set(manifest["packages"])


def test_the_lock_file_has_hashes_and_names_no_place_to_load_from() -> None:
    locked = json.loads((ROOT / "package-lock.json").read_text("utf-8"))["packages"]
    for place, entry in locked.items():
        assert "resolved" not in entry, place
        assert not place or entry["integrity"].startswith("sha512-"), place


def test_no_file_names_a_package_registry_or_carries_a_path_of_this_machine() -> None:
    hosts = [".".join(parts) for parts in (("registry", "npmjs"), ("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))]
    words = [*hosts, "/".join(["", "root", ""]), "/".join(["", "work", "main"])]
    for path in project_files():
        content = path.read_bytes()
        for word in words:
            assert word.encode() not in content, f"{path.relative_to(ROOT)} names {word}"


def test_the_page_loads_nothing_from_elsewhere() -> None:
    own = [path for path in (ROOT / "static").rglob("*") if path.is_file() and VENDOR not in path.parents]
    for path in [*own, *(ROOT / "templates").rglob("*.html")]:
        if path.suffix in (".html", ".css", ".js", ".svg"):
            origins = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text("utf-8"))) - {"http://www.w3.org"}
            assert not origins, f"{path.relative_to(ROOT)} names {origins}"


def test_every_requirement_has_a_lower_bound_and_a_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    pinned = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    for requirement in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]:
        name, bound = re.match(r"([\w-]+)(?:\[[\w,]+\])?(.*)", requirement).groups()  # type: ignore[union-attr]
        assert re.match(r"(>=|==)\d", bound), requirement
        assert name.lower() in pinned, f"{name} has no version in constraints.txt"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_make_says_each_phase_and_how_to_stop_what_goes_on(tmp_path: Path) -> None:
    told = subprocess.run(
        ["make", "-n", "demo", f"VENV={tmp_path / 'venv'}"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    phases = [line for line in told.splitlines() if line.startswith("echo")]
    assert len(phases) == 2 and "(about a minute, once)" in phases[0] and "until you stop it with Ctrl+C" in phases[1]
    assert "pip -qq --disable-pip-version-check install" in told, "what pip has to say on its way is no news for a person"
