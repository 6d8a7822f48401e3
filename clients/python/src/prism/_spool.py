"""The spool: a folder of segments that programs share, in the format of the C client (docs/clients.md).

A segment is a file of records that one process writes; the process holds a lock (flock) on it for as long as it lives. A
segment whose lock is free belongs to an ended program, and any other takes it over. The name ends with the most bytes that
the file may grow to, so the sum over the names bounds the folder. Used by one thread.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import struct
import time
import zlib
from typing import Callable, Iterator, Optional

MAGIC = b"PSR1"
HEADER = struct.Struct("<4sIII")
WAITING, DONE = 0, 1
ADOPTED_MAX = 8
RETRY_SECONDS = 0.5


class Segment:
    def __init__(self, name: str, file: int, capacity: int, end: int) -> None:
        self.name, self.file, self.capacity, self.end = name, file, capacity, end
        self.read_at = 0
        """The next record to send in this pass."""
        self.in_flight = 0
        """Sent and not answered."""
        self.kept = 0
        """In this pass: not to be sent now."""
        self.waiting = 0


class Files:
    """The descriptors that are open, under a lock, so that a fork sees which there are."""

    def __init__(self, lock: contextlib.AbstractContextManager[object]) -> None:
        self.lock = lock
        self.open_files: set[int] = set()

    def open(self, opening: Callable[[], int]) -> int:
        with self.lock:
            file = opening()
            self.open_files.add(file)
            return file

    def close(self, file: int) -> None:
        with self.lock:
            if file in self.open_files:
                self.open_files.discard(file)
                os.close(file)

    def close_in_child(self) -> None:
        """Under the lock."""
        for file in self.open_files:
            with contextlib.suppress(OSError):
                os.close(file)
        self.open_files.clear()


def capacity_of(name: str) -> int:
    """The capacity that a segment's name says; 0 if it is not the name of a segment."""
    parts = name.split(".")
    if len(name) >= 80 or len(parts) != 3 or parts[2] != "spool" or not parts[1].isdigit():
        return 0
    return int(parts[1])


class Spool:
    """`append` and `segments` never raise `OSError`; the last one is in `error`."""

    def __init__(self, path: str, bound: int, files: Files) -> None:
        self.path, self.bound, self.files = path, bound, files
        self.folder = self.lock = -1
        self.segments: list[Segment] = []
        self.current: Optional[Segment] = None
        self.retry_at = 0.0
        self.error = 0
        self.damaged = 0
        self.waiting = 0

    # --- The folder

    def _open(self) -> None:
        """Opens the folder. Its owner must be this user, and no other user may write to it."""
        if self.folder >= 0:
            return
        if not self.path:
            raise OSError(errno.ENOENT, "no spool is configured")
        os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        folder = self.files.open(lambda: os.open(self.path, os.O_RDONLY | os.O_DIRECTORY))
        try:
            facts = os.fstat(folder)
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
                raise PermissionError(errno.EPERM, "another user may write to the spool")
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            self.lock = self.files.open(lambda: os.open("lock", flags, 0o600, dir_fd=folder))
        except OSError:
            self.files.close(folder)
            raise
        self.folder = folder

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock of the folder. A process that was stopped while it holds it must not stop this one for good."""
        for attempt in range(200):
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == 199:
                    raise
                time.sleep(0.001)
        try:
            yield
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def _reserved(self) -> int:
        total = 0
        for name in os.listdir(self.folder):
            capacity = capacity_of(name)
            if capacity > 0:
                with contextlib.suppress(FileNotFoundError):
                    total += max(capacity, os.stat(name, dir_fd=self.folder, follow_symlinks=False).st_size)
        return total

    def _make(self, size: int) -> Segment:
        with self._locked():
            capacity = min(max(self.bound // 16, size), self.bound - self._reserved())
            if capacity < size:
                raise OSError(errno.ENOSPC, "the spool's bound is reached")
            name = f"{int(time.time() * 1000):013}-{secrets.token_urlsafe(12)}.{capacity}.spool"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = self.files.open(lambda: os.open(name, flags, 0o600, dir_fd=self.folder))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.files.close(file)
                raise
            segment = Segment(name, file, capacity, 0)
            self.segments.append(segment)
            return segment

    def end(self, segment: Segment, is_removed: bool) -> None:
        """Ends the use of a segment."""
        if is_removed:
            with contextlib.suppress(OSError):
                os.unlink(segment.name, dir_fd=self.folder)
        self.segments.remove(segment)
        if self.current is segment:
            self.current = None
        self.files.close(segment.file)

    def close(self) -> None:
        for segment in list(self.segments):
            self.end(segment, segment.waiting == 0)
        for file in (self.lock, self.folder):
            self.files.close(file)
        self.lock = self.folder = -1

    # --- Records

    def append(self, body: bytes) -> Optional[tuple[Segment, int]]:
        """Returns the record's segment and offset; None if the spool is full or unwritable."""
        now = time.monotonic()
        if now < self.retry_at:
            return None
        try:
            self._open()
            place = self._write(body)
            self.error = 0
            return place
        except OSError as problem:
            self.error = problem.errno or errno.EIO
            self.retry_at = now + RETRY_SECONDS
            return None

    def _write(self, body: bytes) -> tuple[Segment, int]:
        size = HEADER.size + len(body)
        if self.current is None or self.current.end + size > self.current.capacity:
            self.current = self._make(size)
        segment, length = self.current, struct.pack("<I", len(body))
        record = HEADER.pack(MAGIC, len(body), zlib.crc32(body, zlib.crc32(length)), WAITING) + body
        try:
            if os.pwrite(segment.file, record, segment.end) < size:
                raise OSError(errno.ENOSPC, "a record was written in part")
        except OSError:
            try:
                os.ftruncate(segment.file, segment.end)
            except OSError:
                self.current = None  # the torn record does not match its checksum
            raise
        offset = segment.end
        segment.end += size
        segment.waiting += 1
        self.waiting += 1
        return segment, offset

    def read(self, segment: Segment, offset: int) -> tuple[int, int, Optional[bytes], int]:
        """Reads the record at or after `offset`.

        Returns its offset, its state, its body (None: the end) and how many damaged bytes were skipped.
        """
        damaged = 0
        while offset < segment.end:
            header = os.pread(segment.file, HEADER.size, offset)
            if len(header) == HEADER.size and segment.end - offset > HEADER.size:
                magic, length, crc, state = HEADER.unpack(header)
                if magic == MAGIC and 0 < length <= segment.end - offset - HEADER.size:
                    body = os.pread(segment.file, length, offset + HEADER.size)
                    if len(body) == length and zlib.crc32(body, zlib.crc32(header[4:8])) == crc:
                        return offset, state, body, damaged
            following = self._find_magic(segment, offset + 1)
            damaged += following - offset
            offset = following
        return offset, DONE, None, damaged

    @staticmethod
    def _find_magic(segment: Segment, start: int) -> int:
        while start < segment.end:
            chunk = os.pread(segment.file, 4096, start)
            if len(chunk) < 4:
                break
            found = chunk.find(MAGIC)
            if found >= 0:
                return start + found
            start += len(chunk) - 3
        return segment.end

    def done(self, segment: Segment, offset: int) -> None:
        """Marks a record as answered."""
        try:
            os.pwrite(segment.file, struct.pack("<I", DONE), offset + 12)
        except OSError as problem:  # it is sent again at most, and the daemon knows its id
            self.error = problem.errno or errno.EIO
        if segment.waiting > 0:
            segment.waiting -= 1
            self.waiting -= 1

    # --- Segments of ended programs

    def adopt(self) -> bool:
        """Takes over segments of ended programs. Returns whether there were any."""
        if self.folder < 0 and not (self.path and os.path.isdir(self.path)):
            return False  # the folder is not made for this
        try:
            self._open()
            with self._locked():
                names = sorted(name for name in os.listdir(self.folder) if capacity_of(name) > 0)
                known = {segment.name for segment in self.segments}
                adopted: list[Segment] = []
                for name in names:
                    if len(self.segments) >= ADOPTED_MAX:
                        break
                    if name not in known:
                        adopted += self._adopt(name)
        except OSError as problem:
            self.error = problem.errno or errno.EIO
            return False
        for segment in adopted:
            self._count(segment)
        return bool(adopted)

    def _adopt(self, name: str) -> list[Segment]:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            file = self.files.open(lambda: os.open(name, flags, dir_fd=self.folder))
        except OSError:
            return []
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            facts = os.fstat(file)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_nlink != 1:
                raise PermissionError(errno.EPERM, "not a segment of this user")
        except OSError:
            self.files.close(file)
            return []
        segment = Segment(name, file, facts.st_size, facts.st_size)
        self.segments.append(segment)
        return [segment]

    def _count(self, segment: Segment) -> None:
        offset = 0
        while True:
            offset, state, body, damaged = self.read(segment, offset)
            self.damaged += damaged
            if body is None:
                break
            segment.waiting += state != DONE
            offset += HEADER.size + len(body)
        self.waiting += segment.waiting
