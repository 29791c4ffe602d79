"""The bytes of one transcript file: where each record lies, and its JSON when somebody asks for it.

A file is lines, as the programs append them; or one JSON array or list object, as exports are; it may be compressed, begin with
a byte order mark, or hold runs of NUL bytes and half lines where a program died. Records are told by offset and length. Those of
a plain file are read when asked for; what had to be converted is kept, up to `LIMIT` bytes.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from studio.errors import OpenError
from studio.model import Problem

LIMIT = 512 << 20
"""Bytes of a file that must be converted as a whole."""
BLOCK = 4 << 20
AHEAD = 64 << 10
LONGEST_LINE = 256 << 20
"""Bytes of a line that is still taken for one record."""
CHECKED = 1 << 20
"""Bytes of a line that are decoded together to see whether they are UTF-8."""
OPENS = ord("{")
TRIES = 40
"""Places of a broken line at which a whole record is looked for."""
GZIP, BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
_HOLDS_LIST = re.compile(rb'"object"\s*:\s*"list"|^\s*\{\s*"messages"\s*:\s*\[')
UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}

Take = Callable[[int, int, int, bytes], None]
"""Line (from 1), offset, length, bytes of one JSON value. Raises ValueError for what is none."""

_any = msgspec.json.Decoder()
_array = msgspec.json.Decoder(list[msgspec.Raw])


class _Listed(Struct):
    """A list object or a conversation: one value that holds the records."""

    data: list[msgspec.Raw] | None = None
    messages: list[msgspec.Raw] | None = None
    object: Any = None
    has_more: Any = False
    first_id: Any = None


_listed = msgspec.json.Decoder(_Listed)


class Listed(Struct, frozen=True):
    """What a list object said about its records."""

    is_list: bool
    has_more: bool
    first_id: str | None


class Source:
    """One file. `problems` are of the last pass. Not thread-safe; the store holds its lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.problems: list[Problem] = []
        self.listed: Listed | None = None
        self.stat: tuple[int, int, int] | None = None
        self.complete = 0
        """Where the last line ends that has its newline: here a growing file is read on."""
        self.lines = 0
        """Lines up to there."""
        self._held: bytes | None = None
        self.noted_crlf = False
        self._head = b""
        self._block = (0, b"")
        """What was read last: records that are asked for one after another lie beside each other."""

    # ---- reading

    def token(self) -> tuple[int, int, int] | None:
        """Size, time and inode; None where the file is gone."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns, found.st_ino

    def goes_on(self) -> bool:
        """Whether the file only grew since the last pass, so that a pass may begin behind what is known."""
        now = self.token()
        if self.stat is None or now is None or self._held is not None or now[2] != self.stat[2] or now[0] < self.complete:
            return False
        return self._begin() == self._head

    @property
    def is_plain(self) -> bool:
        """Whether its records lie in it as they are, one to each line."""
        return self._held is None

    def go_on_from(self, stat: tuple[int, int, int], complete: int, lines: int, noted_crlf: bool) -> None:
        """Take an earlier pass, of which somebody else knows the records, for the last one."""
        self.stat, self.complete, self.lines, self.noted_crlf = stat, complete, lines, noted_crlf
        self._head = self._begin()

    def _begin(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read(min(4096, self.complete))
        except OSError:
            return b""

    def read(self, take: Take, *, go_on: bool = False) -> None:
        """Pass each record to `take`. With `go_on`, only those behind the last complete line.

        Raises OpenError where the file cannot be read or is too large to be converted.
        """
        if not go_on:
            self.problems, self.listed, self.complete, self.lines, self._held = [], None, 0, 0, None
            self.noted_crlf = False
        self.problems = [one for one in self.problems if one.kind != "torn-line"]
        self.stat = self.token()
        self._block = (0, b"")
        try:
            if not go_on and self._convert(take):
                return
            with open(self.path, "rb", buffering=BLOCK) as file:
                self._read_lines(file, take)
        except OSError as error:
            raise OpenError(f"{self.path} cannot be read: {error.strerror or error}.", slug="unreadable") from error
        self._head = self._begin()

    def _convert(self, take: Take) -> bool:
        """Read a file that is not plain lines of UTF-8; False where it is."""
        with open(self.path, "rb") as file:
            head = file.read(4096)
            size = self.stat[0] if self.stat is not None else 0
            data: bytes | None = None
            if head.startswith(GZIP):
                data = self._inflate(file.read() if size <= LIMIT else b"", head)
                self._note("gzip", 0, "read from the compressed file; places are those of its content")
            elif (encoding := UTF16.get(head[:2])) is not None:
                if size > LIMIT:
                    raise self._too_large(size)
                data = (head + file.read())[2:].decode(encoding, "replace").encode()
                self._note("utf16", 0, "the file is UTF-16; places are those of its text as UTF-8")
            elif _opens_array(head) or _opens_list(head):
                if size > LIMIT:
                    raise self._too_large(size)
                data = head + file.read()
        if data is None:
            return False
        self._held = data
        if (_opens_array(data[:4096]) or _opens_list(data[:4096])) and self._read_array(data, take):
            return True
        if head.startswith((GZIP, *UTF16)):
            self._read_lines(_Lines(data), take)
            return True
        self._held = None
        return False

    def _too_large(self, size: int) -> OpenError:
        message = f"{self.path} has {size >> 20:,} MB and is no plain file of lines; {LIMIT >> 20} MB of one are read."
        return OpenError(message, "Unpack it, or write one record to a line.", "too-large")

    def _inflate(self, rest: bytes, head: bytes) -> bytes:
        out, unpack = bytearray(), zlib.decompressobj(31)
        data = head + rest
        try:
            while data:
                out += unpack.decompress(data, LIMIT + 1 - len(out))
                if len(out) > LIMIT:
                    raise self._too_large(len(out))
                data = unpack.unused_data
                if not unpack.eof or not data.startswith(GZIP):
                    break
                unpack = zlib.decompressobj(31)
        except zlib.error as error:
            self._note("bad-gzip", len(out), f"the compressed data is damaged: {error}")
        else:
            if not unpack.eof:
                self._note("bad-gzip", len(out), "the compressed data ends before its end")
        return bytes(out)

    def _read_array(self, data: bytes, take: Take) -> bool:
        """One array or list object over many lines. False where it is not that, or damaged."""
        text = data.removeprefix(BOM)
        try:
            if _opens_array(text[:4096]):
                parts: list[msgspec.Raw] | None = _array.decode(text)
                self._note("json-array", 0, "one JSON array, not a record to each line")
            else:
                listed = _listed.decode(text)
                parts = listed.data if listed.data is not None else listed.messages
                first = listed.first_id if isinstance(listed.first_id, str) else None
                self.listed = Listed(listed.data is not None, listed.has_more is True, first)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return False
        if parts is None:
            return False
        if self.listed is not None and self.listed.has_more:
            self._note("partial-export", 0, "the export is partial: its list says that there is more")
        at, line, counted = 0, 1, 0
        for part in parts:
            body = bytes(part)
            at = data.find(body, at)
            line += data.count(b"\n", counted, at)
            counted = at
            self._take(take, line, at, body)
            at += len(body)
        return True

    def _read_lines(self, file: Any, take: Take) -> None:
        file.seek(self.complete)
        offset, number = self.complete, self.lines
        readline = file.readline
        while whole := readline(LONGEST_LINE):
            number += 1
            start, line = offset, whole
            offset += len(whole)
            if whole[0] == OPENS and whole[-2:] == b"}\n" and b"\0" not in whole and is_utf8(whole):  # nearly all
                self.complete, self.lines = offset, number
                try:
                    take(number, start, len(whole) - 1, whole)
                except (ValueError, RecursionError):
                    self._take(take, number, start, whole[:-1])
                continue
            ended = line.endswith(b"\n")
            if ended:
                self.complete, self.lines = offset, number
            if number == 1 and line.startswith(BOM):
                self._note("bom", 1, "the file begins with a byte order mark")
                line, start = line[3:], start + 3
            if line.endswith(b"\r\n") and not self.noted_crlf:
                self.noted_crlf = True
                self._note("crlf", number, "lines end in CR LF")
            body = line.strip(b" \t\r\n\0")
            if b"\0" in line:
                count = line.count(b"\0")
                self._note("nul-bytes", number, f"{count} NUL bytes at byte {start + line.index(0)}")
            if not body:
                continue
            lead = len(line) - len(line.lstrip(b" \t\r\n\0"))
            self._take(take, number, start + lead, body, torn=not ended)

    def _take(self, take: Take, line: int, offset: int, body: bytes, torn: bool = False) -> None:
        if not body.isascii():
            bad = bad_byte(body)
            if bad is not None:
                self._note("bad-byte", line, f"no UTF-8 at byte {offset + bad}")
        try:
            take(line, offset, len(body), body)
            return
        except (ValueError, RecursionError):
            pass
        found = 0
        for at, length in whole_records(body):
            try:
                take(line, offset + at, length, body[at : at + length])
                found += 1
            except (ValueError, RecursionError):
                continue
        where = f"{len(body)} bytes at byte {offset}"
        if found:
            self._note("spliced-line", line, f"{where} are no JSON; {found} whole records were saved from it")
        elif torn:
            self._note("torn-line", line, f"the last line is not whole: {where}, read again when the file grows")
        else:
            self._note("bad-line", line, f"no JSON: {where}")

    def _note(self, kind: str, line: int, message: str) -> None:
        self.problems.append(Problem(kind, f"{self.name}:{line}" if line else self.name, message))

    # ---- one record

    def bytes_at(self, offset: int, length: int) -> bytes:
        """The stored bytes of a record; b"" where the file is gone or shorter by now."""
        if self._held is not None:
            return self._held[offset : offset + length]
        start, block = self._block
        if start <= offset and offset + length <= start + len(block):
            return block[offset - start : offset - start + length]
        try:
            with open(self.path, "rb", buffering=0) as file:
                data = os.pread(file.fileno(), max(length, AHEAD), offset)
        except OSError:
            return b""
        self._block = (offset, data) if length < AHEAD else (0, b"")
        return data[:length]

    def json_at(self, offset: int, length: int) -> Any:
        """The record as plain values; None where it cannot be read any more."""
        return loads(self.bytes_at(offset, length))


class _Lines:
    """`seek` and `readline` over bytes that are held."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def seek(self, at: int) -> None:
        self._at = at

    def readline(self, most: int) -> bytes:
        end = self._data.find(b"\n", self._at, self._at + most)
        start, self._at = self._at, min(len(self._data), self._at + most) if end < 0 else end + 1
        return self._data[start : self._at]


def is_utf8(data: bytes) -> bool:
    return data.isascii() or bad_byte(data) is None


def bad_byte(data: bytes) -> int | None:
    """Where the first byte is that is no UTF-8; a long line is looked at in parts, as its text may take four times its bytes."""
    at, part = 0, CHECKED
    while at < len(data):
        end = at + part
        while at < end < len(data) and data[end] & 0xC0 == 0x80 and end > at + part - 4:
            end -= 1  # not within a character
        try:
            data[at:end].decode()
        except UnicodeDecodeError as error:
            return at + error.start
        at = end
    return None


def loads(data: bytes) -> Any:
    """JSON as plain values with exact integers; what is no UTF-8 stands for itself. None for what is no JSON."""
    try:
        found = _any.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            found = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
    return found


def whole_records(body: bytes) -> Iterator[tuple[int, int]]:
    """(start, length) of the JSON objects in a broken line that look like records: one at its beginning, and those behind it."""
    text = body.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder()
    at, tries = text.find('{"'), 0
    while at >= 0 and tries < TRIES:
        tries += 1
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find('{"', at + 1)
            continue
        if isinstance(found, dict) and (
            "uuid" in found or "payload" in found or ("type" in found and len(found) > 2 and at == 0)
        ):
            start = len(text[:at].encode("utf-8", "surrogateescape"))
            yield start, len(text[at:end].encode("utf-8", "surrogateescape"))
            at = text.find('{"', end)
        else:
            at = text.find('{"', at + 1)


def _opens_array(head: bytes) -> bool:
    return head.removeprefix(BOM).lstrip(b" \t\r\n").startswith(b"[")


def _opens_list(head: bytes) -> bool:
    """Whether a file may be one object with records in it: a list of a service, or one conversation."""
    text = head.removeprefix(BOM).lstrip(b" \t\r\n")
    first = text.partition(b"\n")[0].rstrip()
    if not text.startswith(b"{"):
        return False
    if not first.endswith(b"}") and first != b"{" and len(first) < 3000:
        return False
    return first == b"{" or _HOLDS_LIST.search(head) is not None
