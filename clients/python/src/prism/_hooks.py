"""A logging handler, and reports of exceptions that nothing caught."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, Optional, Type

from ._client import Client
from ._types import ClosedError, Loss

ExceptionClass = Type[BaseException]

TEXT_BYTES_MAX = 4096
"""Of one text in a meta, with its escapes; the rest of a meta must fit beside it."""
WORD_BYTES_MAX = 512
"""Of a short text, such as the name of a thread."""
PART_SIGNS_MAX = 16 * 1024
"""Of a part of a traceback: a long message must not push the frames out."""
TRACE_BYTES_MAX = 512 * 1024
"""Of a traceback. A namespace takes 1 MiB as it is delivered."""


def _json_bytes(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2


def cut(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The beginning of a text, of which JSON takes at most `bytes_max` bytes."""
    head = text[:bytes_max]
    if len(head) == len(text) and _json_bytes(head) <= bytes_max:
        return text
    fits, most = 0, len(head)
    while fits < most:
        middle = (fits + most + 1) // 2
        fits, most = (middle, most) if _json_bytes(head[:middle]) <= bytes_max else (fits, middle - 1)
    return head[:fits] + "…"


def _trace_text(
    client: Client, kind: ExceptionClass, error: Optional[BaseException], trace: Optional[TracebackType],
) -> bytes:
    """The end of a traceback, which says most."""
    parts = traceback.format_exception(kind, error, trace)
    text = "".join(part if len(part) <= PART_SIGNS_MAX else part[:PART_SIGNS_MAX] + "…\n" for part in parts)
    return text.encode("utf-8", "replace")[-min(TRACE_BYTES_MAX, client.queue_bytes // 2):]


class Handler(logging.Handler):
    """Sends log records as reports, without waiting.

    The meta has `level`, `logger`, `message`, `file`, `line`, `function`, `thread`, and for an exception its `exception` and
    its traceback as the payload. `extra` members of a record named in `fields` are added.
    """

    def __init__(
        self, client: Optional[Client] = None, *, type: str = "log", namespace: str = "prism", level: int = logging.NOTSET,
        fields: tuple[str, ...] = (),
    ) -> None:
        super().__init__(level)
        self.client = Client() if client is None else client
        self.owns_client = client is None
        self.type, self.namespace, self.fields = type, namespace, fields

    def emit(self, record: logging.LogRecord) -> None:
        try:
            meta: dict[str, Any] = {name: getattr(record, name) for name in self.fields if hasattr(record, name)}
            meta.update(
                level=record.levelname, logger=record.name, message=cut(record.getMessage()), file=record.pathname,
                line=record.lineno, function=record.funcName, thread=record.threadName)
            payload: Optional[bytes] = None
            if record.exc_info and record.exc_info[0] is not None:
                meta["exception"] = record.exc_info[0].__name__
                payload = _trace_text(self.client, *record.exc_info)
            self.client.report(
                self.type, meta, namespace=self.namespace, payload=payload, created_ms=int(record.created * 1000))
        except ClosedError:
            pass  # the program ends
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        if self.owns_client:
            self.client.close()
        super().close()


def _message(error: Optional[BaseException]) -> str:
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"  # as Python prints it


def _report_exception(
    client: Client, type_name: str, namespace: str, deadline: float, kind: ExceptionClass,
    error: Optional[BaseException], trace: Optional[TracebackType], thread: str,
) -> None:
    """Never raises: the exception itself matters more. A report that can't be made is one with less, or a loss."""
    try:
        if not issubclass(kind, Exception):  # KeyboardInterrupt, SystemExit
            return
        meta: dict[str, Any] = {"reason": cut(kind.__name__, WORD_BYTES_MAX)}
        try:
            whole: dict[str, Any] = {**meta, "message": cut(_message(error)), "thread": cut(thread, WORD_BYTES_MAX)}
            frames = traceback.extract_tb(trace, limit=-1)
            if frames:
                file, function = cut(frames[-1].filename, WORD_BYTES_MAX), cut(frames[-1].name, WORD_BYTES_MAX)
                whole.update(file=file, line=frames[-1].lineno, function=function)
            text = _trace_text(client, kind, error, trace)
            client.report(type_name, whole, namespace=namespace, payload=text, deadline=deadline)
        except ClosedError:
            raise
        except Exception:
            client.report(type_name, meta, namespace=namespace, deadline=deadline)
    except Exception as fault:
        with contextlib.suppress(Exception):
            if client.on_loss is not None:
                client.on_loss(Loss.CRASH, 1, fault.__class__.__name__, f"an exception was not reported: {_message(fault)}")


def install_excepthook(
    client: Optional[Client] = None, *, type: str = "appCrash", namespace: str = "prism", deadline: float = 2.0,
) -> None:
    """Reports exceptions that nothing caught, in any thread, with the traceback as the payload; then calls the hook that was
    there before. Without a client it has one of its own, with all defaults. Waits at most `deadline` seconds for the daemon;
    after that the report is spooled at the program's end. Long texts are cut. `on_loss` of the client learns of an exception
    that could not be reported, with `Loss.CRASH`, on the thread of the exception."""
    reporter = Client() if client is None else client
    before, before_in_thread = sys.excepthook, threading.excepthook

    def report(
        kind: ExceptionClass, error: Optional[BaseException], trace: Optional[TracebackType], thread: Optional[threading.Thread],
    ) -> None:
        name = thread.name if thread else "?"
        _report_exception(reporter, type, namespace, deadline, kind, error, trace, name)

    def hook(kind: ExceptionClass, error: BaseException, trace: Optional[TracebackType]) -> None:
        report(kind, error, trace, threading.current_thread())
        before(kind, error, trace)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        report(arguments.exc_type, arguments.exc_value, arguments.exc_traceback, arguments.thread)
        before_in_thread(arguments)

    sys.excepthook = hook
    threading.excepthook = thread_hook
