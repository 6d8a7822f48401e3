"""The asyncio form."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Mapping, Optional, TypeVar

from ._client import Client
from ._records import Change, Watch
from ._types import Answer, Result, Stats, bounded


Result_ = TypeVar("Result_")


class AsyncClient:
    """`Client` for asyncio: no call blocks the event loop. Takes the same arguments, or a client to share."""

    def __init__(self, client: Optional[Client] = None, **options: Any) -> None:
        self.client = Client(**options) if client is None else client

    def send(self, type: str, meta: Mapping[str, Any], **more: Any) -> Answer:
        """Reports without waiting; the same as `Client.report` with deadline 0."""
        return self.client.report(type, meta, **more)

    async def report(
        self, type: str, meta: Mapping[str, Any], *, namespace: str = "prism", payload: Optional[bytes] = None,
        report_id: Optional[str] = None, created_ms: Optional[int] = None, deadline: float = 10.0,
    ) -> Answer:
        """Reports, and waits at most `deadline` seconds for the daemon's answer.

        Cancelling the task ends the waiting only; the report is sent all the same.
        """
        client = self.client
        deadline = bounded(deadline)
        request, identifier = client.encode(type, meta, namespace, payload, report_id, created_ms)
        loop = asyncio.get_running_loop()
        answered = asyncio.Event()

        def done() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(answered.set)

        waiter = client.begin_waiting(identifier, done)
        try:
            result = client.put(request)
            if result is Result.QUEUED and deadline > 0:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(answered.wait(), deadline)
            elif result is not Result.QUEUED:
                waiter.result = result
        finally:
            answer = client.end_waiting(identifier, waiter)
        return answer

    async def put_record(self, table: str, id: str, fields: Mapping[str, Any], **more: Any) -> int:
        """The same as `Client.put_record`."""
        return await self._run(self.client.put_record, table, id, fields, **more)

    async def patch_record(self, table: str, id: str, fields: Mapping[str, Any], **more: Any) -> int:
        """The same as `Client.patch_record`."""
        return await self._run(self.client.patch_record, table, id, fields, **more)

    async def delete_record(self, table: str, id: str, **more: Any) -> None:
        """The same as `Client.delete_record`."""
        await self._run(self.client.delete_record, table, id, **more)

    async def get_record(self, table: str, id: str, **more: Any) -> Optional[dict[str, Any]]:
        """The same as `Client.get_record`."""
        return await self._run(self.client.get_record, table, id, **more)

    async def list_records(self, table: str, **more: Any) -> list[dict[str, Any]]:
        """All records of a table by ascending id."""
        return await self._run(lambda: list(self.client.list_records(table, **more)))

    async def watch_table(self, table: str, *, namespace: str = "prism") -> AsyncIterator[Change]:
        """The changes of a table: `async for change in client.watch_table("setting")`."""
        watch = Watch(self.client.socket_path, namespace, table)
        changes = iter(watch)
        try:
            while True:
                told = await self._run(lambda: next(changes, None))
                if told is None:
                    return
                yield told
        finally:
            watch.close()

    async def _run(self, call: Callable[..., Result_], *arguments: Any, **more: Any) -> Result_:
        return await asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *arguments, **more))

    async def flush(self, deadline: float = 10.0) -> Result:
        return await asyncio.get_running_loop().run_in_executor(None, self.client.flush, deadline)

    async def close(self, deadline: float = 1.0) -> Result:
        return await asyncio.get_running_loop().run_in_executor(None, self.client.close, deadline)

    def stats(self) -> Stats:
        return self.client.stats()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType],
    ) -> None:
        await self.close()
