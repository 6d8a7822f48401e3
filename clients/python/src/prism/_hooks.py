"""A logging handler, and reports of exceptions that nothing caught."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, Optional, Type

from ._client import Client
from ._types import ClosedError

ExceptionClass = Type[BaseException]

TEXT_BYTES_MAX = 4096
"""Of one text in a meta; the rest of a meta must fit beside it."""


def cut(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return text
    return encoded[:bytes_max].decode("utf-8", "ignore") + "…"


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
                payload = "".join(traceback.format_exception(*record.exc_info)).encode("utf-8", "replace")
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


def _report_exception(
    client: Client, type_name: str, namespace: str, deadline: float, kind: ExceptionClass,
    error: Optional[BaseException], trace: Optional[TracebackType], thread: str,
) -> None:
    frames = traceback.extract_tb(trace)
    meta: dict[str, Any] = {"reason": kind.__name__, "message": cut(str(error)), "thread": thread}
    if frames:
        meta.update(file=frames[-1].filename, line=frames[-1].lineno, function=frames[-1].name)
    text = "".join(traceback.format_exception(kind, error, trace))
    client.report(type_name, meta, namespace=namespace, payload=text.encode("utf-8", "replace"), deadline=deadline)


def install_excepthook(
    client: Optional[Client] = None, *, type: str = "appCrash", namespace: str = "prism", deadline: float = 2.0,
) -> None:
    """Reports exceptions that nothing caught, in any thread, with the traceback as the payload; then calls the hook that was
    there before. Without a client it has one of its own, with all defaults. Waits at most `deadline` seconds for the daemon;
    after that the report is spooled at the program's end."""
    reporter = Client() if client is None else client
    before, before_in_thread = sys.excepthook, threading.excepthook

    def hook(kind: ExceptionClass, error: BaseException, trace: Optional[TracebackType]) -> None:
        try:
            if issubclass(kind, Exception):  # not KeyboardInterrupt, not SystemExit
                _report_exception(reporter, type, namespace, deadline, kind, error, trace, threading.current_thread().name)
        except Exception:
            pass  # the exception itself matters more
        before(kind, error, trace)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        try:
            if issubclass(arguments.exc_type, Exception):
                name = arguments.thread.name if arguments.thread else "?"
                _report_exception(
                    reporter, type, namespace, deadline, arguments.exc_type, arguments.exc_value, arguments.exc_traceback, name)
        except Exception:
            pass
        before_in_thread(arguments)

    sys.excepthook = hook
    threading.excepthook = thread_hook
