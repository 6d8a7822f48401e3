"""Records: state of which only the latest value matters (docs/records.md)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional

from ._types import RefusedError, TooLargeError, bounded

FIELDS_BYTES_MAX = 10_240
PAGE_MAX = 1000
ANSWER_BYTES_MAX = 16 * 1024 * 1024
PAUSE_FIRST, PAUSE_MOST, WATCH_PAUSE_MOST = 0.05, 2.0, 10.0
ABSENT = 0
"""As `if_version`: the record must not exist."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_BUILT_IN = frozenset(("prism.command", "prism.tags"))
_ID = re.compile(r"[!-~]{1,128}\Z")
_PASSING = frozenset(("unknown", "busy", "disk_full", "internal"))


@dataclass(frozen=True)
class Change:
    """A state of a table: at the beginning, and after each change, by programs or by the server."""

    generation: int
    """The number of changes of the table."""
    ids: Optional[tuple[str, ...]]
    """The records that changed since the last one; None: read the whole table."""


def check_place(namespace: str, table: str) -> None:
    if not _NAME.match(namespace):
        raise ValueError(f"not a namespace: {namespace[:80]!r}; 1 to 64 of A-Z a-z 0-9 _ -")
    if not _NAME.match(table) and table not in _BUILT_IN:
        raise ValueError(f"not a table: {table[:80]!r}; 1 to 64 of A-Z a-z 0-9 _ -")


def request(
    verb: str, namespace: str, table: str, *, id: Optional[str] = None, fields: Optional[Mapping[str, Any]] = None,
    if_version: Optional[int] = None, **more: object,
) -> bytes:
    """The request as one line. Raises ValueError, TooLargeError."""
    check_place(namespace, table)
    members: dict[str, object] = {"namespace": namespace, "table": table}
    if id is not None:
        if not _ID.match(id):
            raise ValueError(f"not a record's id: {id[:160]!r}; 1 to 128 visible ASCII characters")
        members["id"] = id
    if if_version is not None:
        if if_version < 0:
            raise ValueError(f"if_version is {if_version}, must be a version, or ABSENT")
        members["ifVersion"] = if_version
    if fields is not None:
        if not isinstance(fields, Mapping):
            raise ValueError("the fields must be a mapping")
        members["fields"] = dict(fields)
        size = len(json.dumps(members["fields"], ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
        if size > FIELDS_BYTES_MAX:
            raise TooLargeError(f"the fields have {size} bytes; at most {FIELDS_BYTES_MAX} are allowed")
    members.update({key: value for key, value in more.items() if value is not None})
    line = json.dumps({verb: members}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return line.encode("utf-8", "replace") + b"\n"


def refusal(answer: Mapping[str, Any]) -> Optional[RefusedError]:
    """The refusal that a line is, or that ends a watch."""
    inner = answer.get("ended", answer)
    if not isinstance(inner, Mapping) or (inner is answer and answer.get("status") != "refused"):
        return None
    return RefusedError(str(inner.get("code", "")), str(inner.get("message", "")))


def change(answer: Mapping[str, Any]) -> Optional[Change]:
    """The state that a line tells; None for another line."""
    told = answer.get("changed", answer.get("watch"))
    if not isinstance(told, Mapping) or not isinstance(told.get("generation"), int):
        return None
    ids = told.get("ids")
    return Change(told["generation"], tuple(ids) if isinstance(ids, list) else None)


def parse(line: bytes) -> dict[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("the answer is not an object")
    return value


def ask(path: str, line: bytes, deadline: float) -> dict[str, Any]:
    """Sends a request until it is answered, also over a restart of the daemon. Each call has its own connection.

    Raises RefusedError; TimeoutError if no answer came: a change may be made or not, and may be asked for again.
    """
    until = time.monotonic() + bounded(deadline)
    pause = PAUSE_FIRST
    refused: Optional[RefusedError] = None
    while True:
        try:
            answer = _ask_once(path, line, until)
            refused = refusal(answer)
            if refused is None:
                return answer
            if refused.code not in _PASSING:
                raise refused
        except (OSError, ValueError):
            pass  # it is away, or is being restarted
        if until - time.monotonic() <= pause:
            raise refused or TimeoutError(f"{path}: no answer within {deadline} s; is prismd running?")
        time.sleep(pause)
        pause = min(pause * 2, PAUSE_MOST)


def _ask_once(path: str, line: bytes, until: float) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(0.001, until - time.monotonic()))
        connection.connect(path)
        connection.sendall(line)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            connection.settimeout(max(0.001, until - time.monotonic()))
            piece = connection.recv(65536)
            if not piece or len(answer) > ANSWER_BYTES_MAX:
                raise ConnectionError("the daemon closed the connection")
            answer += piece
        return parse(bytes(answer))


class Watch:
    """The changes of a table, one after the other; `for change in watch`. `close`, from any thread, ends it.

    After a restart of the daemon it goes on; changes that were missed are one change without ids. While the table can't be
    watched (it is not declared), it tries again; `refused` says why.
    """

    def __init__(self, path: str, namespace: str, table: str) -> None:
        self._reader = self._writer = -1
        self._path = path
        self._question = request("watch", namespace, table)
        self._reader, self._writer = os.pipe()
        self._is_closed = False
        self.refused: Optional[RefusedError] = None
        """Why there are no changes now; None: there is no reason."""

    def __iter__(self) -> Iterator[Change]:
        last: Optional[int] = None
        pause = PAUSE_FIRST
        while not self._is_closed:
            for answer in self._lines():
                self.refused = refusal(answer)
                told = change(answer)
                if told is None:
                    break
                pause = PAUSE_FIRST
                # After a restart the daemon says again what is known.
                if "watch" in answer and told.generation == last:
                    continue
                last = told.generation
                yield told
            if not self._is_closed:
                select.select([self._reader], [], [], pause)
            pause = min(pause * 2, WATCH_PAUSE_MOST)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """The lines of one connection, until it or the watch ends."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, contextlib.suppress(OSError, ValueError):
            connection.connect(self._path)
            connection.sendall(self._question)
            buffer = bytearray()
            while not self._is_closed and len(buffer) <= ANSWER_BYTES_MAX:
                ready, _, _ = select.select([connection, self._reader], [], [])
                if self._is_closed or connection not in ready:
                    return
                piece = connection.recv(65536)
                if not piece:
                    return
                buffer += piece
                while (end := buffer.find(b"\n")) >= 0:
                    line = bytes(buffer[:end])
                    del buffer[:end + 1]
                    yield parse(line)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(OSError):
                os.write(self._writer, b".")

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        for end in (self._reader, self._writer):
            with contextlib.suppress(OSError):
                os.close(end)
