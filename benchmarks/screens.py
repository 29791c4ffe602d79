"""How long a person waits for a screen of a very long thread: the terminal UI in a pseudo-terminal, the browser view over HTTP.

    python benchmarks/screens.py FILE NEEDLE [--runs 3]

NEEDLE is the number of the last row, such as `#99999`, which the first screen shows once it is complete. Prints, for each UI, the
seconds from the start of the process to that text, the processor time until then, and for the terminal UI how long a cursor move,
a jump to the first row and one back to the last take to be drawn.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from http.cookiejar import CookieJar

ROWS, COLUMNS = 45, 160
ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[A-Za-z~]|[()][A-Z0-9]|\][^\x07]*\x07|[=>])")


class Terminal:
    """A process in a pseudo-terminal."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def wait_for(self, needle: str, limit: float = 60) -> float:
        """Seconds until a text is drawn."""
        began, seen = time.perf_counter(), b""
        wanted = needle.encode()
        while time.perf_counter() - began < limit:
            if select.select([self.master], [], [], 0.05)[0]:
                seen += os.read(self.master, 1 << 16)
                if wanted in ESCAPES.sub(b"", seen):
                    return time.perf_counter() - began
        raise SystemExit(f"{needle!r} was not drawn within {limit} s")

    def press(self, keys: str, needle: str) -> float:
        """Seconds from a key to a text that it brings."""
        self.drain()
        os.write(self.master, keys.encode())
        return self.wait_for(needle)

    def drain(self, quiet: float = 0.4) -> None:
        while select.select([self.master], [], [], quiet)[0]:
            os.read(self.master, 1 << 16)

    def processor(self) -> float:
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> float:
        """Peak memory in MB."""
        with open(f"/proc/{self.pid}/status") as status:
            peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024  # type: ignore[union-attr]
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.master)
        return peak


def terminal(file: str, needle: str, env: dict[str, str]) -> tuple[float, float, float, str]:
    ui = Terminal([sys.executable, "-m", "studio", file], env)
    first = ui.wait_for(needle)
    cost = ui.processor()
    last = int(needle.strip("#"))
    moves = [ui.press("k", f"#{last - step}") for step in range(1, 6)]
    to_first, to_last = ui.press("g", "#0"), ui.press("G", needle)
    words = f"a move {max(moves):.3f} s, to the first {to_first:.2f} s, back {to_last:.2f} s"
    return first, cost, ui.end(), words


def browser(file: str, needle: str, env: dict[str, str]) -> tuple[float, float, float, str]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "studio", "web", file, "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert server.stdout is not None
    link = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    page = opener.open(link).read().decode()
    first = time.perf_counter() - began
    with open(f"/proc/{server.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    cost = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{server.pid}/status") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) / 1024  # type: ignore[union-attr]
    server.terminate()
    server.wait()
    if needle not in page:
        raise SystemExit(f"{needle!r} is not on the first page")
    return first, cost, peak, f"page of {len(page) / 1000:.0f} KB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("needle")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, STUDIO_DATA_DIR=home, TERM="xterm-256color", COLORTERM="truecolor")
        for name, look in (("terminal UI", terminal), ("browser view", browser)):
            first, cost, peak, words = min(look(options.file, options.needle, env) for _ in range(options.runs))
            print(f"{name}: {first:.2f} s ({cost:.2f} s of processor time), {peak:.0f} MB; {words}", flush=True)


if __name__ == "__main__":
    main()
