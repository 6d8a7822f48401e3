"""Results, answers, counts and errors."""

from __future__ import annotations

import enum
from dataclasses import dataclass


SECONDS_MAX = 3e8
"""Ten years: threads and sockets take no infinite time."""


def bounded(deadline: float) -> float:
    """Seconds to wait: 0 for what is less or no number, at most ten years."""
    return float(min(deadline, SECONDS_MAX)) if deadline > 0 else 0.0


class Result(enum.Enum):
    """What became of a report."""

    STORED = "stored"
    """The daemon has committed it; it will be delivered or accounted for by name."""
    QUEUED = "queued"
    """It is in memory and will be sent; it is lost if the program crashes now."""
    SPOOLED = "spooled"
    """It is in the spool on disk and will be sent, by this program or a later one."""
    REFUSED = "refused"
    """The daemon refused it for good; the answer has the code and the message."""
    DROPPED = "dropped"
    """The queue was full, and the spool was full or unusable."""


class Loss(enum.Enum):
    """Why reports were dropped."""

    QUEUE = "queue"
    """The queue in memory was full."""
    SPOOL = "spool"
    """The spool was full, unwritable or not configured while the daemon was away."""
    REFUSED = "refused"
    """The daemon refused it for good."""
    DAMAGED = "damaged"
    """A spool file was damaged; the count is in bytes."""
    CRASH = "crash"
    """`install_excepthook` could not report an exception."""


@dataclass(frozen=True)
class Answer:
    """What is known of a report when `report` returns."""

    result: Result
    report_id: str
    code: str = ""
    """The daemon's refusal; with QUEUED or SPOOLED the reason why the report is tried again."""
    message: str = ""


@dataclass
class Stats:
    """Counts since the client was made, or since the fork in a child."""

    accepted: int = 0
    """Reports that `report` took."""
    stored: int = 0
    """Reports of this process that the daemon committed."""
    refused: int = 0
    """Reports that the daemon refused for good."""
    dropped_queue: int = 0
    """Reports that were not taken, since the queue was full."""
    dropped_spool: int = 0
    """Reports that were taken and dropped, since the spool was full or unusable."""
    damaged_bytes: int = 0
    """Bytes of spool files that did not match their checksums."""
    spooled: int = 0
    """Reports written to the spool."""
    replayed: int = 0
    """Reports of the spool that the daemon answered, other programs' too."""
    connects: int = 0
    """Greeted connections."""
    queue_bytes: int = 0
    """Bytes in memory now."""
    spool_waiting: int = 0
    """Reports that wait in the spool files of this process."""
    spool_error: int = 0
    """errno of why there is no spool; 0: it works, or was not needed yet."""


class RefusedError(Exception):
    """The daemon refused a request about records."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        """For programs: `unknown_table`, `version_mismatch`, …"""
        self.message = message
        """For people."""


class ClosedError(RuntimeError):
    """The client is closed."""


class TooLargeError(ValueError):
    """The meta has over 10,240 bytes, or the report does not fit into the queue."""
