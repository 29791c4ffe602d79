"""Where forks of sessions are kept, and how a file comes to where a program looks: added, never in the place of another.

One folder for each forked session in the user's data folder, beside the scratch files: named by the source's real path, 0700,
its files 0600. Each fork is a file named as its program would name it, with a small sheet of ours beside it that says what it was
made from.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

from msgspec import Struct, field

from studio.errors import PatchError
from studio.forks.scratch import can_hold_files, default_folder, key_of, made_temporary_folder, our_folders
from studio.stores.transcripts.homes import claude_home, codex_home

FOLDER = ".sessions"
SHEET = ".fork.json"


class Sheet(Struct):
    """What is noted of one fork."""

    path: str
    """The fork."""
    source: str
    """Real path of the file that it was made from."""
    thread_id: str
    checkpoint_id: str
    """What was forked."""
    session: str
    records: list[str | None] = field(default_factory=list)
    """For each record that the reader finds in the fork, the id of the source's record that it repeats; None for its own."""
    prompt: str | None = None
    created_at: str = ""
    format: str = ""
    sha256: str = ""
    """Of the source's file when it was forked."""
    first: str | None = None
    """The fork's first own turn, as the tree calls it."""
    replaces: str | None = None
    """The turn of the source in whose place it stands."""
    sha256_of_replaced: str = ""
    """Of that turn's records."""
    copies: list[str | None] = field(default_factory=list)
    """For each record of the fork, the source's that it was made of."""
    own_at: tuple[int, int] = (0, 0)
    """(byte, line) where the fork's own records begin; what lies before need not be read again."""
    last: str | None = None
    """The fork's last turn, as the tree calls it."""
    commands: dict[str, str] = field(default_factory=dict)
    """With which its program goes on."""
    installed: str | None = None


def folder_of(source: str) -> Path:
    """Where forks of a file go; not necessarily there yet."""
    base = default_folder()
    if not can_hold_files(base):
        base = made_temporary_folder()
    return base / (key_of(os.path.realpath(source), "") + FOLDER)


def store(source: str, name: str, data: bytes | bytearray) -> str:
    """Write a fork into the folder of its source. Raises PatchError where that cannot be."""
    folder = folder_of(source)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        path = str(folder / name)
        add(path, data, 0o600)
    except OSError as error:
        raise PatchError(
            f"The fork cannot be kept in {folder}: {error.strerror or error}.", "Make room there.", "no-scratch"
        ) from error
    return path


def note(sheet: Sheet) -> None:
    import msgspec

    with contextlib.suppress(FileExistsError):
        add(sheet.path + SHEET, msgspec.json.encode(sheet), 0o600)


def add(path: str, data: bytes | bytearray, mode: int) -> None:
    """A new file, whole or not there at all. FileExistsError: there is one of that name, which stays as it is."""
    folder = os.path.dirname(path)
    at, temporary = tempfile.mkstemp(prefix=".studio-", suffix=".part", dir=folder)
    try:
        try:
            os.fchmod(at, mode)
            view = memoryview(data)
            while view:
                view = view[os.write(at, view) :]
            os.fsync(at)
        finally:
            os.close(at)
        try:
            os.link(temporary, path)
        except OSError as error:
            if isinstance(error, FileExistsError) or os.path.lexists(path):
                raise FileExistsError(17, "there is a file of that name", path) from error
            _write_new(path, data, mode)  # a file system without links
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    with contextlib.suppress(OSError):
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _write_new(path: str, data: bytes | bytearray, mode: int) -> None:
    at = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(at, view) :]
        os.fsync(at)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(at)


def remove(path: str) -> list[str]:
    """Delete a fork with its sheet, and its folder once that is empty. Returns what was deleted."""
    gone = []
    for one in (path, path + SHEET):
        with contextlib.suppress(OSError):
            os.unlink(one)
            gone.append(one)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
    return gone


def sheets(source: str | None = None) -> list[Sheet]:
    """What is noted of the forks of one file, or of all; oldest first. A sheet that cannot be read is passed over."""
    if source is not None:
        name = key_of(os.path.realpath(source), "") + FOLDER
        folders = [folder / name for folder in our_folders()]
    else:
        folders = [inner for folder in our_folders() if folder.is_dir() for inner in sorted(folder.glob("*" + FOLDER))]
    found: list[Sheet] = []
    for folder in folders:
        for path in sorted(folder.glob("*" + SHEET)) if folder.is_dir() else ():
            sheet = _read(path)
            if sheet is not None and (source is None or sheet.source == os.path.realpath(source)):
                found.append(sheet)
    return sorted(found, key=lambda one: (one.created_at, one.path))


def _read(path: Path) -> Sheet | None:
    import msgspec

    try:
        sheet = msgspec.json.decode(path.read_bytes(), type=Sheet)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    sheet.path = str(path).removesuffix(SHEET)  # the folder may have been moved
    return sheet if os.path.isfile(sheet.path) else None


# ---- where programs look


def claude_folder(cwd: str) -> str:
    """The name of a project's folder: every character that is no letter or digit becomes a hyphen."""
    return "".join(one if one.isascii() and one.isalnum() else "-" * (2 if ord(one) > 0xFFFF else 1) for one in cwd)


def claude_target(cwd: str, name: str) -> str:
    return os.path.join(claude_home(), "projects", claude_folder(cwd), name)


def codex_target(name: str) -> str:
    """`rollout-YYYY-MM-DDT…` lies in the folder of its day."""
    year, month, day = re.findall(r"\d+", name)[:3]
    return os.path.join(codex_home(), "sessions", year, month, day, name)


def install(path: str, target: str, root: str, may_make: bool) -> None:
    """Add a fork where its program looks for it. `root` must be there; folders below it are made if they may be.

    Raises PatchError; then nothing was added.
    """
    folder = os.path.dirname(target)
    if not os.path.isdir(root):
        raise _not_installed(f"{root} is not there")
    made: list[str] = []
    try:
        if not os.path.isdir(folder):
            if not may_make:
                raise _not_installed(f"{folder} is not there")
            made = _make_folders(root, folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise _not_installed(f"{folder} is not writable")
        with open(path, "rb") as file:
            data = file.read()
        add(target, data, 0o600)
    except FileExistsError as error:
        raise _not_installed(f"{target} is there already") from error
    except OSError as error:
        for one in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(one)
        raise _not_installed(f"{folder}: {error.strerror or error}") from error


def _make_folders(root: str, folder: str) -> list[str]:
    missing: list[str] = []
    while folder != root and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        os.mkdir(one, 0o700)
    return missing[::-1]


def _not_installed(reason: str) -> PatchError:
    return PatchError(
        f"Nothing was forked, as it cannot be installed: {reason}.",
        "Leave out --install; the fork is then kept in your data folder.",
        "not-installed",
    )
