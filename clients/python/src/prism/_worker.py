"""The thread of a client: the connection, the window of requests that wait for an answer, and the spool.

A request is in one of three places: the client's queue, the window, or a segment of the spool. The worker moves it, and
forgets it only after the daemon's answer. The same design and figures as clients/c/prism.c.
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import select
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Optional, Union

from ._spool import DONE, HEADER, Segment, Spool
from ._types import Loss, Result

if TYPE_CHECKING:
    from ._client import Client

WINDOW_BYTES = 1024 * 1024
FILL_BYTES = 256 * 1024
INPUT_BYTES_MAX = 16 * 1024 * 1024
ADOPT_INTERVAL = 10.0
AWAY_GRACE = 0.25
"""Seconds after the loss of a connection before the queue is moved to the spool."""
CROWDED_GRACE = 0.02
STALL_SPOOL = 2.0
STALL_DISCONNECT = 30.0
GREETING_MAX = 10.0
BACKOFF_MIN, BACKOFF_MAX = 0.05, 2.0
REPLAY_MIN, REPLAY_MAX = 0.2, 10.0
LOSS_INTERVAL = 1.0
RETRIABLE = frozenset({"unknown", "busy", "disk_full", "internal", "store_full"})
REQUEST_START = b'{"reportId":"'
LOSS_TEXTS = {
    Loss.QUEUE: "the queue was full; raise queue_bytes, report less, or see why the daemon is slow",
    Loss.SPOOL: "the spool was full or unusable while the daemon was away; see stats(), or raise spool_bytes",
    Loss.DAMAGED: "spool files were damaged; check the disk",
}


class State(enum.Enum):
    AWAY = 0
    GREETING = 1
    READY = 2


class Entry:
    """A request that waits for its answer."""

    __slots__ = ("code", "is_from_spool", "is_retried", "message", "offset", "request", "segment")

    def __init__(self, request: bytes, segment: Optional[Segment] = None, offset: int = 0) -> None:
        self.request, self.segment, self.offset = request, segment, offset
        self.is_from_spool = segment is not None
        self.is_retried = False
        self.code = self.message = ""

    def report_id(self) -> str:
        start = len(REQUEST_START)
        return self.request[start:self.request.index(b'"', start)].decode("ascii")


class ProtocolError(Exception):
    """The daemon's line is not of this protocol."""


class Worker:
    def __init__(self, client: Client, wake: int) -> None:
        self.client, self.wake = client, wake
        self.spool = Spool(client.spool_path, client.spool_bytes, client.files)
        self.socket: Optional[socket.socket] = None
        self.session: Union[str, bool, None] = None
        """That the connection was greeted with."""
        self.state = State.AWAY
        self.state_since = self.progress_at = time.monotonic()
        self.next_connect = 0.0
        self.backoff = BACKOFF_MIN
        self.has_failed = False
        self.input = bytearray()
        self.output = bytearray()
        self.entries: deque[Entry] = deque()
        self.window = 0
        self.is_full = False
        """The oldest request of the queue does not fit into the window."""
        self.copied = 0
        """Entries that are in memory and, for safety, in the spool."""
        self.acked = 0
        self.replay_at = self.hold_until = self.adopt_at = 0.0
        self.replay_backoff = REPLAY_MIN
        self.told: dict[Loss, int] = dict.fromkeys(Loss, 0)
        self.told_at: dict[Loss, float] = dict.fromkeys(Loss, 0.0)
        self.loss_code = self.loss_message = ""

    # --- The loop

    def run(self) -> None:
        client = self.client
        while True:
            now = time.monotonic()
            takes_queue = self.advance(now)
            self.tell_losses(now)
            if client.close_at is not None and (self.is_done() or now >= client.close_at):
                break
            self.wait(takes_queue, now)
        self.drain()
        self.publish()
        self.tell_losses(time.monotonic(), is_last=True)
        self.close_socket()
        self.spool.close()

    def is_done(self) -> bool:
        return not self.entries and not self.client.queue

    def advance(self, now: float) -> bool:
        """Does everything that can be done without waiting. Returns whether requests in the queue can be taken."""
        if self.state is State.READY and self.session != self.client.session:
            self.disconnect(now)  # what was not answered is sent again, under the same ids
            self.next_connect = now
        if self.state is State.AWAY and now >= self.next_connect:
            self.connect(now)
        if self.state is State.GREETING and now - self.state_since > GREETING_MAX:
            self.disconnect(now)
        if self.state is State.READY and self.entries:
            if now - self.progress_at > STALL_SPOOL and self.copied < len(self.entries):
                self.spool_window()
            if now - self.progress_at > STALL_DISCONNECT:
                self.disconnect(now)
        if self.state is State.READY:
            if now >= self.adopt_at:
                self.adopt_at = now + (0.1 if self.spool.adopt() else ADOPT_INTERVAL)
            has_moved = True
            while has_moved and self.state is State.READY:
                has_moved = self.fill_from_queue(now)
                has_moved = self.fill_from_spool(now) or has_moved
                self.transmit(now)
        takes_queue = self.state is State.READY and not self.is_full and now >= self.hold_until
        if self.must_spill(now):
            if self.state is not State.READY and self.entries:
                self.spool_window()
                self.forget_spooled()
            takes_queue = self.spill()
        self.publish()
        return takes_queue

    def publish(self) -> None:
        stats = self.client.counts
        stats.spool_waiting, stats.spool_error = self.spool.waiting, self.spool.error
        stats.damaged_bytes = self.spool.damaged

    def must_spill(self, now: float) -> bool:
        """Whether requests must not wait in memory any longer."""
        if self.state is State.READY:
            return (now - self.progress_at > CROWDED_GRACE and bool(self.entries)
                    and self.client.queued_bytes > self.client.queue_bytes // 2)
        return self.has_failed or now - self.state_since > AWAY_GRACE

    def patience(self, takes_queue: bool, now: float) -> float:
        """How long the worker may sleep."""
        client = self.client
        is_idle = self.state is State.READY and not self.entries and not self.spool.segments
        if is_idle and takes_queue and client.close_at is None:
            return max(0.0, self.adopt_at - now)
        at = now + 1
        if self.state is State.AWAY:
            at = min(at, self.next_connect)
        if self.state is not State.READY and not self.has_failed:
            at = min(at, self.state_since + AWAY_GRACE + 0.001)
        if self.state is State.READY:
            at = min(at, self.adopt_at)
            if self.spool.segments and not self.entries and client.close_at is None:
                at = min(at, self.replay_at if self.replay_at > now else now + CROWDED_GRACE)
            if client.queue:
                at = min(at, self.hold_until if self.hold_until > now else now + CROWDED_GRACE)
        elif client.queue:
            at = min(at, self.spool.retry_at if self.spool.retry_at > now else now + CROWDED_GRACE)
        if client.close_at is not None:
            at = min(at, client.close_at)
        return max(0.0, at - now)

    def wait(self, takes_queue: bool, now: float) -> None:
        client = self.client
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if self.socket is not None:
            wants = select.POLLIN | (select.POLLOUT if self.state is State.READY and self.output else 0)
            poll.register(self.socket, wants)
        if takes_queue:
            client.is_asleep = True
            if client.queue:
                client.is_asleep = False
                return
        ready = poll.poll(self.patience(takes_queue, now) * 1000)
        client.is_asleep = False
        for file, events in ready:
            if file == self.wake:
                with contextlib.suppress(OSError):
                    os.read(self.wake, 4096)
            elif events & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self.receive(time.monotonic())

    # --- The connection

    def enter(self, state: State, now: float) -> None:
        self.state = state
        self.state_since = self.progress_at = now

    def connect(self, now: float) -> None:
        client = self.client
        try:
            with client.files.lock:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.setblocking(False)
            self.socket.connect(client.socket_path)
            self.session = client.session
            hello = client.hello(self.session)
            if self.socket.send(hello, socket.MSG_NOSIGNAL) != len(hello):
                raise OSError("the greeting was sent in part")
        except OSError:
            self.disconnect(now)
        else:
            self.enter(State.GREETING, now)

    def close_socket(self) -> None:
        if self.socket is not None:
            with self.client.files.lock:
                self.socket.close()
                self.socket = None

    def disconnect(self, now: float) -> None:
        """Closes the connection; what was not answered is sent over the next one."""
        self.close_socket()
        if self.state is not State.READY:
            self.has_failed = True
        self.enter(State.AWAY, now)
        self.next_connect = now + self.backoff
        self.backoff = min(self.backoff * 2, BACKOFF_MAX)
        self.input.clear()
        self.acked = 0
        self.forget_spooled()

    def forget_spooled(self) -> None:
        """Removes from the window what is in the spool too, and begins to read the spool again."""
        self.entries = deque(entry for entry in self.entries if entry.segment is None)
        self.output = bytearray(b"".join(entry.request for entry in self.entries))
        self.window = len(self.output)
        self.copied = 0
        for segment in self.spool.segments:
            segment.in_flight = segment.read_at = segment.kept = 0

    def transmit(self, now: float) -> None:
        while self.state is State.READY and self.output and self.socket is not None:
            try:
                if len(self.output) == self.window:
                    self.progress_at = now  # nothing was owed before
                count = self.socket.send(memoryview(self.output)[:FILL_BYTES].tobytes(), socket.MSG_NOSIGNAL)
                del self.output[:count]
            except BlockingIOError:
                return
            except OSError:
                self.receive(now)  # the daemon may have said why it closes
                if self.state is State.READY:
                    self.disconnect(now)
                return

    def receive(self, now: float) -> None:
        while self.socket is not None:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self.input += data
            try:
                if not data or len(self.input) > INPUT_BYTES_MAX:
                    raise ProtocolError
                self.take_lines(now)
            except (ProtocolError, ValueError, TypeError, KeyError):
                self.disconnect(now)

    def take_lines(self, now: float) -> None:
        while self.state is not State.AWAY:
            end = self.input.find(b"\n")
            if end < 0:
                return
            answer = json.loads(self.input[:end])
            del self.input[:end + 1]
            self.take_answer(answer, now)

    def take_answer(self, answer: Any, now: float) -> None:
        if self.state is State.GREETING:
            if "hello" in answer:
                self.enter(State.READY, now)
                self.has_failed = False
                self.adopt_at = now
                self.replay_at = min(self.replay_at, now)
                self.client.counts.connects += 1
            else:
                self.disconnect(now)
                self.next_connect = now + min(60.0, max(BACKOFF_MIN, answer.get("retryMs", 0) / 1000))
            return
        self.progress_at = now
        self.backoff = BACKOFF_MIN
        covered = answer["acked"] - self.acked
        if not 0 <= covered <= len(self.entries):
            raise ProtocolError
        refused = {refusal["seq"] - self.acked - 1: refusal for refusal in answer.get("refused", [])}
        if any(not 0 <= index < covered for index in refused):
            raise ProtocolError
        is_retrying = False
        for index in range(covered):
            entry = self.entries.popleft()
            self.window -= len(entry.request)
            self.settle(entry, refused.get(index), now)
            is_retrying = is_retrying or entry.is_retried
        self.acked += covered
        self.replay_backoff = min(self.replay_backoff * 2, REPLAY_MAX) if is_retrying else REPLAY_MIN
        self.client.tell_settled()

    # --- Answers

    def settle(self, entry: Entry, refusal: Optional[dict[str, Any]], now: float) -> None:
        client, segment = self.client, entry.segment
        if segment is not None:
            segment.in_flight -= 1
            self.copied -= not entry.is_from_spool
        if refusal is not None:
            entry.code, entry.message = str(refusal.get("code", "")), str(refusal.get("message", ""))
            if entry.code in RETRIABLE or "retryMs" in refusal:
                self.keep_for_later(entry, refusal.get("retryMs", 0) / 1000, now)
                return
        if segment is not None:
            self.spool.done(segment, entry.offset)
        else:
            client.counts_settled += 1
        client.counts.replayed += entry.is_from_spool
        if refusal is not None:
            client.counts.refused += 1
            self.loss_code, self.loss_message = entry.code, entry.message
        elif not entry.is_from_spool:
            client.counts.stored += 1
        self.tell(entry, Result.STORED if refusal is None else Result.REFUSED)

    def keep_for_later(self, entry: Entry, retry: float, now: float) -> None:
        """A report that the daemon could not take now is kept in the spool, else in the queue."""
        client = self.client
        entry.is_retried = True
        wait = 0.0 if entry.code == "unknown" else min(REPLAY_MAX, max(self.replay_backoff, retry))
        self.replay_at = max(self.replay_at, now + wait)
        if entry.segment is not None:
            entry.segment.kept += 1
            self.tell(entry, Result.SPOOLED)
        elif self.copy_to_spool(entry) and entry.segment is not None:
            entry.segment.in_flight -= 1
            entry.segment.kept += 1
            self.copied -= 1
        elif client.close_at is None and client.put_back(entry.request):
            self.hold_until = self.replay_at
            self.tell(entry, Result.QUEUED)
        else:
            self.drop(entry)

    def tell(self, entry: Entry, result: Result) -> None:
        if self.client.waiters:
            self.client.tell_waiter(entry.report_id(), result, entry.code, entry.message)

    def drop(self, entry: Entry) -> None:
        self.client.counts.dropped_spool += 1
        self.client.counts_settled += 1
        self.tell(entry, Result.DROPPED)

    def tell_losses(self, now: float, is_last: bool = False) -> None:
        client = self.client
        if client.on_loss is None:
            return
        counts = {Loss.QUEUE: client.counts.dropped_queue, Loss.SPOOL: client.counts.dropped_spool,
                  Loss.REFUSED: client.counts.refused, Loss.DAMAGED: client.counts.damaged_bytes}
        for loss, count in counts.items():
            if count == self.told[loss] or not (is_last or now >= self.told_at[loss] + LOSS_INTERVAL):
                continue
            more, self.told[loss], self.told_at[loss] = count - self.told[loss], count, now
            is_refusal = loss is Loss.REFUSED
            code, message = (self.loss_code, self.loss_message) if is_refusal else (loss.value, LOSS_TEXTS[loss])
            with contextlib.suppress(Exception):  # a fault of the program's own function must not end the client
                client.on_loss(loss, more, code, message)

    # --- Moving requests

    def has_room(self, size: int) -> bool:
        return self.window == 0 or self.window + size <= WINDOW_BYTES

    def push(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.output += entry.request
        self.window += len(entry.request)

    def fill_from_queue(self, now: float) -> bool:
        client, moved = self.client, 0
        if now < self.hold_until:
            return False
        self.is_full = False
        while moved < FILL_BYTES and client.queue:
            self.is_full = not self.has_room(len(client.queue[0]))
            if self.is_full:
                break
            request = client.take()
            self.push(Entry(request))
            moved += len(request)
        return moved > 0

    def fill_from_spool(self, now: float) -> bool:
        has_moved = False
        if self.copied > 0 or self.client.close_at is not None:
            return False  # the reader would meet what the window has copied
        for segment in list(self.spool.segments):
            if self.end_pass(segment, now):
                continue
            if not has_moved and now >= self.replay_at:
                has_moved = self.fill_from_segment(segment)
        return has_moved

    def end_pass(self, segment: Segment, now: float) -> bool:
        """Ends a pass over a segment that has been read to its end. Returns whether the segment is gone."""
        if segment.read_at < segment.end or segment.in_flight > 0:
            return False
        if segment.kept == 0:
            self.client.counts.dropped_spool += segment.waiting  # what could not be read
            self.spool.waiting -= segment.waiting
            self.spool.end(segment, is_removed=True)
            self.spool.retry_at = 0.0  # there is room again, on the disk and for what other programs left
            self.adopt_at = now
            return True
        if now >= self.replay_at:
            segment.read_at = segment.kept = 0
        return False

    def fill_from_segment(self, segment: Segment) -> bool:
        moved = 0
        while moved < FILL_BYTES:
            try:
                segment.read_at, state, body, _ = self.spool.read(segment, segment.read_at)
            except OSError as problem:
                self.spool.error, segment.read_at, body = problem.errno or 0, segment.end, None
            if body is None:
                break
            if state != DONE:
                if not self.has_room(len(body)):
                    break
                self.push(Entry(body, segment, segment.read_at))
                segment.in_flight += 1
                moved += len(body)
            segment.read_at += HEADER.size + len(body)
        return moved > 0

    def copy_to_spool(self, entry: Entry) -> bool:
        """Writes a request of the window that is in memory only to the spool too."""
        if entry.segment is not None:
            return True
        place = self.spool.append(entry.request)
        if place is None:
            return False
        entry.segment, entry.offset = place
        entry.segment.in_flight += 1
        self.copied += 1
        self.client.counts.spooled += 1
        self.client.counts_settled += 1
        self.tell(entry, Result.SPOOLED)
        return True

    def spool_window(self) -> None:
        for entry in self.entries:
            if not self.copy_to_spool(entry):
                break
        self.client.tell_settled()

    def spill(self) -> bool:
        """Moves requests from the queue into the spool. Returns whether all of them are there."""
        client = self.client
        while client.queue:
            request = client.queue[0]
            if self.spool.append(request) is None:
                return False
            client.take()
            client.counts.spooled += 1
            client.counts_settled += 1
            self.tell(Entry(request), Result.SPOOLED)
        client.tell_settled()
        return True

    def drain(self) -> None:
        """Puts what is left in memory into the spool; what it does not take is lost."""
        self.spool.retry_at = 0.0  # one more try; after a failure the rest is lost at once
        for entry in self.entries:
            if not self.copy_to_spool(entry):
                self.drop(entry)
        while not self.spill() and self.client.queue:
            self.drop(Entry(self.client.take()))
