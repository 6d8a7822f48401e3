"""The client that programs use."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import json
import os
import re
import secrets
import threading
import time
import weakref
from collections import deque
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Union

from . import _records
from ._records import Watch
from ._spool import Files
from ._types import Answer, ClosedError, Loss, Result, Stats, TooLargeError, bounded
from ._worker import Worker

LossCallback = Callable[[Loss, int, str, str], None]
"""Called on the client's thread with the kind, the count, the code and a message."""

DEFAULT_SOCKET = "/run/prism/ingest.sock"
META_BYTES_MAX = 10_240
DEPTH_MAX = 60
COMMON_BYTES_MAX = 256
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")
_REPORT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_abandoned: list[object] = []
"""What the threads of a parent held: a child must not free it, or descriptors would be closed twice."""


def default_spool() -> str:
    """The spool's folder when none is given; "" if there is no place for one."""
    environment = os.environ
    if environment.get("PRISM_SPOOL"):
        return environment["PRISM_SPOOL"]
    if environment.get("STATE_DIRECTORY"):
        return environment["STATE_DIRECTORY"].split(":")[0] + "/prism-spool"
    if environment.get("XDG_STATE_HOME"):
        return environment["XDG_STATE_HOME"] + "/prism/spool"
    home = environment.get("HOME") or ("/root" if os.geteuid() == 0 else "")
    return home and home + "/.local/state/prism/spool"


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:COMMON_BYTES_MAX].decode("utf-8", "ignore")


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max((_depth(inner) for inner in value.values()), default=0)
    if isinstance(value, (list, tuple)):
        return 1 + max((_depth(inner) for inner in value), default=0)
    return 0


def encode_meta(meta: Mapping[str, Any]) -> bytes:
    """The meta as JSON. Values that JSON does not know become their `str`.

    Raises ValueError for what is not an object with a member, for NaN and for over 60 levels; TooLargeError.
    """
    if not isinstance(meta, Mapping) or not meta:
        raise ValueError("the meta must be a mapping with at least one key")
    try:
        depth = _depth(meta)
    except RecursionError:
        raise ValueError("the meta is nested too deep, or in itself") from None
    if depth > DEPTH_MAX:
        raise ValueError(f"the meta has over {DEPTH_MAX} levels")
    text = json.dumps(dict(meta), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > META_BYTES_MAX:
        raise TooLargeError(f"the meta has {len(encoded)} bytes; at most {META_BYTES_MAX} are allowed")
    return encoded


class Waiter:
    """A caller that waits for an answer."""

    def __init__(self, done: Callable[[], None]) -> None:
        self.done = done
        self.result = Result.QUEUED
        self.is_done = False
        self.code = self.message = ""


class Client:
    """Reports to the daemon of this machine.

    Connects, starts its thread and touches the disk only when the first report comes. May be used by any number of threads
    and after a fork. `report` without a deadline takes no lock that is held over input or output.

    socket: the daemon's; default $PRISM_INGEST, else /run/prism/ingest.sock.
    app_name, app_version: common information of the app, cut at 256 bytes.
    spool: the folder of reports that wait while the daemon is away; "" for none. Default: $PRISM_SPOOL, else prism-spool in
        systemd's $STATE_DIRECTORY, else prism/spool in $XDG_STATE_HOME, else .local/state/prism/spool in $HOME, for root
        in /root.
    spool_bytes: the most that the spool may hold, over all programs that share it; at least 65536.
    queue_bytes: the most that waits in memory; at least 65536.
    exit_seconds: how long the end of the program may wait for the queue; None: not at all.
    on_loss: called when reports are dropped, at most once a second for each kind of loss.
    """

    def __init__(
        self, *, socket: Optional[str] = None, app_name: str = "", app_version: str = "", spool: Optional[str] = None,
        spool_bytes: int = 64 * 1024 * 1024, queue_bytes: int = 4 * 1024 * 1024, exit_seconds: Optional[float] = 1.0,
        on_loss: Optional[LossCallback] = None,
    ) -> None:
        self.socket_path = socket or os.environ.get("PRISM_INGEST") or DEFAULT_SOCKET
        if len(os.fsencode(self.socket_path)) > 107:
            raise ValueError(f"the socket's path has over 107 bytes: {self.socket_path}")
        self.spool_path = default_spool() if spool is None else spool
        self.spool_bytes, self.queue_bytes = max(65536, spool_bytes), max(65536, queue_bytes)
        self.exit_seconds, self.on_loss = exit_seconds, on_loss
        app = {"APP_NAME": _cut(app_name), "APP_VERSION": _cut(app_version)}
        self._app = {key: text for key, text in app.items() if text}
        self._reset()
        _clients.add(self)

    def _reset(self) -> None:
        # Reentrant: a signal handler may report while the same thread does.
        self.lock = threading.RLock()
        self.files_lock = threading.RLock()
        self.files = Files(self.files_lock)
        self.queue: deque[bytes] = deque()
        self.queued_bytes = 0
        self.is_asleep = False
        self.close_at: Optional[float] = None
        self.counts = Stats()
        self.counts_settled = 0
        self.waiters: dict[str, list[Waiter]] = {}
        self.flushers: list[tuple[int, threading.Event]] = []
        self.has_ended = threading.Event()
        self._worker: Optional[Worker] = None
        self._wake = -1
        self._id_prefix = secrets.token_urlsafe(12)
        self._id_count = 0
        self.session: Union[str, bool, None] = None
        """None: the connection is a session; False: no session is open; else the id of the open one."""
        self._session_count = 0

    # --- Sessions

    def begin_session(self) -> None:
        """Begins a session of the app, and ends the one before it. Connects without waiting.

        Without sessions of its own each connection of the client is one. A begun session counts once, also when the daemon
        starts again. Raises ClosedError.
        """
        with self.lock:
            self._session_count += 1
            self._set_session(f"{self._id_prefix}-s{self._session_count:x}")

    def end_session(self) -> None:
        """Ends the session: the app is not in use until the next one begins. Raises ClosedError."""
        with self.lock:
            self._set_session(False)

    def _set_session(self, session: Union[str, bool]) -> None:
        if self.close_at is not None:
            raise ClosedError("the client is closed")
        self.session = session
        if self._worker is None:
            self._start()
        self._wake_worker()

    def hello(self, session: Union[str, bool, None]) -> bytes:
        """The greeting."""
        hello: dict[str, Any] = {"app": self._app, "answer": "cumulative"}
        if session is not None:
            hello["session"] = session
        return json.dumps({"hello": hello}).encode() + b"\n"

    # --- Reporting

    def report(
        self, type: str, meta: Mapping[str, Any], *, namespace: str = "prism", payload: Optional[bytes] = None,
        report_id: Optional[str] = None, created_ms: Optional[int] = None, deadline: float = 0.0,
    ) -> Answer:
        """Reports, and waits at most `deadline` seconds for the daemon's answer; 0: returns at once.

        Raises TypeError, ValueError, TooLargeError, ClosedError; the report is not kept then.
        """
        deadline = bounded(deadline)
        request, identifier = self.encode(type, meta, namespace, payload, report_id, created_ms)
        if deadline <= 0:
            return Answer(self.put(request), identifier)
        answered = threading.Event()
        waiter = self.begin_waiting(identifier, answered.set)
        result = self.put(request)
        if result is Result.QUEUED:
            answered.wait(deadline)
        else:
            waiter.result = result
        return self.end_waiting(identifier, waiter)

    def encode(
        self, type: str, meta: Mapping[str, Any], namespace: str, payload: Optional[bytes], report_id: Optional[str],
        created_ms: Optional[int],
    ) -> tuple[bytes, str]:
        """The request and its report id."""
        if not _NAMESPACE.match(namespace):
            raise ValueError(f"not a namespace: {namespace[:80]!r}; 1 to 64 of A-Z a-z 0-9 _ -")
        if not _TYPE.match(type):
            raise ValueError(f"not a type: {type[:150]!r}; 1 to 128 of A-Z a-z 0-9 _ . : -")
        if report_id is not None and not _REPORT_ID.match(report_id):
            raise ValueError(f"not a report id: {report_id[:80]!r}; 1 to 64 of A-Z a-z 0-9 _ -")
        body = encode_meta(meta)
        if report_id is None:
            with self.lock:
                self._id_count += 1
                report_id = f"{self._id_prefix}-{self._id_count:x}"
        created = int(time.time() * 1000) if created_ms is None else int(created_ms)
        raw = b"" if payload is None else bytes(payload)
        size = "" if payload is None else f'"payloadBytes":{len(raw)},'
        head = f'{{"reportId":"{report_id}","namespace":"{namespace}","type":"{type}","createdTime":{created},{size}"meta":'
        request = b"".join((head.encode("ascii"), body, b"}\n", raw))
        if len(request) > self.queue_bytes:
            raise TooLargeError(f"the report has {len(request)} bytes and does not fit into the queue ({self.queue_bytes})")
        return request, report_id

    def put(self, request: bytes) -> Result:
        """Puts a request into the queue. Returns QUEUED or DROPPED."""
        if self.close_at is not None:
            raise ClosedError("the client is closed")
        with self.lock:
            if self.queued_bytes + len(request) > self.queue_bytes:
                self.counts.dropped_queue += 1
                return Result.DROPPED
            self.counts.accepted += 1
            self.queued_bytes += len(request)
            self.queue.append(request)
            if self._worker is None:
                self._start()
        if self.is_asleep:
            self.is_asleep = False
            self._wake_worker()
        return Result.QUEUED

    def put_back(self, request: bytes) -> bool:
        """Of the worker: a request that the daemon could not take now."""
        with self.lock:
            if self.queued_bytes + len(request) > self.queue_bytes:
                return False
            self.queued_bytes += len(request)
            self.queue.append(request)
            return True

    def take(self) -> bytes:
        """Of the worker: the oldest request of the queue."""
        with self.lock:
            request = self.queue.popleft()
            self.queued_bytes -= len(request)
            return request

    # --- Records

    def put_record(
        self, table: str, id: str, fields: Mapping[str, Any], *, namespace: str = "prism", if_version: Optional[int] = None,
        deadline: float = 10.0,
    ) -> int:
        """Sets all fields of a record. Returns its version.

        Calls about records wait for the daemon's answer, also over a restart of it, on a connection of their own. Nothing is
        queued or spooled. if_version: the version that the record must have; ABSENT: it must not exist.
        Raises RefusedError, TimeoutError (it may be stored or not: call again), ValueError, TooLargeError.
        """
        return self._change("put", table, id, fields, namespace, if_version, deadline)

    def patch_record(
        self, table: str, id: str, fields: Mapping[str, Any], *, namespace: str = "prism", if_version: Optional[int] = None,
        deadline: float = 10.0,
    ) -> int:
        """Changes fields by a JSON Merge Patch (RFC 7396): None removes one. Returns the record's version."""
        return self._change("patch", table, id, fields, namespace, if_version, deadline)

    def delete_record(
        self, table: str, id: str, *, namespace: str = "prism", if_version: Optional[int] = None, deadline: float = 10.0,
    ) -> None:
        """Deletes a record, here and at the server. An absent one is no fault."""
        self._change("delete", table, id, None, namespace, if_version, deadline)

    def _change(
        self, verb: str, table: str, id: str, fields: Optional[Mapping[str, Any]], namespace: str,
        if_version: Optional[int], deadline: float,
    ) -> int:
        line = _records.request(verb, namespace, table, id=id, fields=fields, if_version=if_version)
        return int(_records.ask(self.socket_path, line, deadline).get("version", 0))

    def get_record(
        self, table: str, id: str, *, namespace: str = "prism", deadline: float = 10.0,
    ) -> Optional[dict[str, Any]]:
        """A record by its own or the server's id: id, serverId, fields, version, changedTime, state. None: there is none."""
        line = _records.request("get", namespace, table, id=id)
        record: Optional[dict[str, Any]] = _records.ask(self.socket_path, line, deadline).get("record")
        return record

    def list_records(
        self, table: str, *, namespace: str = "prism", after: Optional[str] = None, deadline: float = 10.0,
    ) -> Iterator[dict[str, Any]]:
        """The records of a table by ascending id, page by page. deadline: of each page."""
        is_more = True
        while is_more:
            line = _records.request("list", namespace, table, after=after, limit=_records.PAGE_MAX)
            page = _records.ask(self.socket_path, line, deadline)
            yield from page["records"]
            is_more = bool(page.get("more")) and bool(page["records"])
            after = page["records"][-1]["id"] if page["records"] else None

    def watch_table(self, table: str, *, namespace: str = "prism") -> Watch:
        """The changes of a table: `for change in client.watch_table("setting")`."""
        return Watch(self.socket_path, namespace, table)

    # --- Waiting

    def begin_waiting(self, identifier: str, done: Callable[[], None]) -> Waiter:
        waiter = Waiter(done)
        with self.lock:
            self.waiters.setdefault(identifier, []).append(waiter)
        return waiter

    def end_waiting(self, identifier: str, waiter: Waiter) -> Answer:
        with self.lock:
            same = self.waiters.get(identifier, [])
            if waiter in same:
                same.remove(waiter)
            if not same:
                self.waiters.pop(identifier, None)
            return Answer(waiter.result, identifier, waiter.code, waiter.message)

    def tell_waiter(self, identifier: str, result: Result, code: str, message: str) -> None:
        """Of the worker."""
        with self.lock:
            waiter = next((waiter for waiter in self.waiters.get(identifier, []) if not waiter.is_done), None)
            if waiter is None:
                return
            if code:
                waiter.code, waiter.message = code, message
            waiter.result = result
            waiter.is_done = result not in (Result.QUEUED, Result.SPOOLED)
        if waiter.is_done:
            waiter.done()

    def tell_settled(self) -> None:
        """Of the worker: reports left the memory."""
        for target, event in list(self.flushers):
            if self.counts_settled >= target:
                event.set()

    def flush(self, deadline: float = 10.0) -> Result:
        """Waits until all earlier reports of this process are answered or in the spool.

        Returns STORED: the daemon has answered all; SPOOLED: some are in the spool; QUEUED: the deadline came first.
        """
        event = threading.Event()
        with self.lock:
            target = self.counts.accepted
            entry = (target, event)
            self.flushers.append(entry)
        try:
            if self.counts_settled < target:
                event.wait(bounded(deadline))
        finally:
            with self.lock:
                self.flushers.remove(entry)
        if self.counts_settled < target:
            return Result.QUEUED
        return Result.SPOOLED if self.counts.spool_waiting > 0 else Result.STORED

    def stats(self) -> Stats:
        """The counts now."""
        with self.lock:
            return Stats(**{**vars(self.counts), "queue_bytes": self.queued_bytes})

    # --- The thread

    def _start(self) -> None:
        """Under the lock. Does not wait for the thread, as `threading.Thread.start` would."""
        ends: list[int] = []

        def pipe() -> int:
            ends.extend(os.pipe())
            return ends[0]

        reader = self.files.open(pipe)
        with self.files.lock:
            self.files.open_files.add(ends[1])
        for end in ends:
            os.set_blocking(end, False)
        self._wake = ends[1]
        self._worker = Worker(self, reader)
        _thread.start_new_thread(self._run, (self._worker, reader, ends[1], self.has_ended))

    def _run(self, worker: Worker, reader: int, writer: int, ended: threading.Event) -> None:
        try:
            worker.run()
        finally:
            self._wake = -1
            self.files.close(reader)
            self.files.close(writer)
            ended.set()

    def _wake_worker(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake, b".")

    # --- The end

    def close(self, deadline: float = 1.0) -> Result:
        """Flushes, moves what is left to the spool and ends the thread. Returns as `flush` does; QUEUED: some were dropped
        or the disk hangs."""
        with self.lock:
            if self.close_at is None:
                self.close_at = time.monotonic() + bounded(deadline)
            is_started = self._worker is not None
        if is_started:
            self._wake_worker()
            if not self.has_ended.wait(bounded(deadline) + 1):
                return Result.QUEUED
        if self.counts.dropped_spool > 0:
            return Result.QUEUED
        return Result.SPOOLED if self.counts.spool_waiting > 0 else Result.STORED

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        self.close()

    # --- Fork

    def _before_fork(self) -> None:
        self.lock.acquire()
        self.files_lock.acquire()

    def _after_fork_in_parent(self) -> None:
        self.files_lock.release()
        self.lock.release()

    def _after_fork_in_child(self) -> None:
        """The child has no worker, and its copy of the queue is the parent's to send."""
        is_closed = self.close_at
        worker = self._worker
        if worker is not None and worker.socket is not None:
            with contextlib.suppress(OSError):
                os.close(worker.socket.detach())
        self.files.close_in_child()
        _abandoned.append((worker, self.queue, self.waiters, self.lock, self.files_lock))
        self._reset()
        self.close_at = is_closed
        if is_closed is not None:
            self.has_ended.set()


def _before_fork() -> None:
    for client in _forking:
        client._before_fork()


_forking: list[Client] = []


def _list_and_lock() -> None:
    _forking[:] = list(_clients)
    _before_fork()


def _after_fork_in_parent() -> None:
    for client in reversed(_forking):
        client._after_fork_in_parent()
    _forking.clear()


def _after_fork_in_child() -> None:
    for client in _forking:
        client._after_fork_in_child()
    _forking.clear()


def _at_exit() -> None:
    for client in list(_clients):
        if client.exit_seconds is not None and client.close_at is None:
            client.close(client.exit_seconds)


os.register_at_fork(
    before=_list_and_lock, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
