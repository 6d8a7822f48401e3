"""Records of the Python client against a daemon that does as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import prism  # noqa: E402

PATIENCE = 60.0
STORED = {"status": "stored", "version": 3}


def told(kind: str, generation: int, **more: Any) -> dict[str, Any]:
    return {kind: {"namespace": "prism", "table": "t", "generation": generation, **more}}


class Daemon:
    """Answers each request with the next item of `script`: a value, a list of values, or None for a closed connection.

    A list that ends with None closes the connection after its values. Without a next item it does not answer.
    """

    def __init__(self, path: str, script: list[Any]) -> None:
        self.script = list(script)
        self.asked: list[dict[str, Any]] = []
        self.connections = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                self.asked.append(json.loads(line))
                if not self.script:
                    continue
                answer = self.script.pop(0)
                for item in answer if isinstance(answer, list) else [answer]:
                    if item is None:
                        return
                    connection.sendall(json.dumps(item).encode() + b"\n")


class RecordTests(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="prism-records-")
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "sock")

    def begin(self, *script: Any) -> tuple[prism.Client, Daemon]:
        daemon = Daemon(self.path, list(script))
        self.addCleanup(daemon.listener.close)
        return prism.Client(socket=self.path, spool="", exit_seconds=None), daemon

    def test_records_are_put_and_read(self) -> None:
        record = {"id": 'p"1', "fields": {"paper": "low"}, "version": 3}
        client, daemon = self.begin(
            STORED, STORED, {"status": "stored"}, {"record": record}, {"record": None},
            {"records": [{"id": "a"}, {"id": "b"}], "generation": 7, "more": True},
            {"records": [{"id": "c"}], "generation": 7, "more": False})
        self.assertEqual(client.put_record("t", 'p"1', {"paper": "löw"}, namespace="shop", if_version=2), 3)
        self.assertEqual(client.patch_record("t", "p1", {"paper": None}, if_version=prism.ABSENT), 3)
        client.delete_record("t", "p1")
        self.assertEqual(client.get_record("t", "p1"), record)
        self.assertIsNone(client.get_record("prism.tags", "p1"))  # a table of the daemon's own
        self.assertEqual([found["id"] for found in client.list_records("t")], ["a", "b", "c"])
        self.assertEqual(daemon.asked[:3], [
            {"put": {"namespace": "shop", "table": "t", "id": 'p"1', "ifVersion": 2, "fields": {"paper": "löw"}}},
            {"patch": {"namespace": "prism", "table": "t", "id": "p1", "ifVersion": 0, "fields": {"paper": None}}},
            {"delete": {"namespace": "prism", "table": "t", "id": "p1"}}])
        self.assertEqual(daemon.asked[-1], {"list": {"namespace": "prism", "table": "t", "after": "b", "limit": 1000}})

    def test_a_request_is_sent_until_it_is_answered(self) -> None:
        def refused(code: str) -> dict[str, Any]:
            return {"status": "refused", "code": code, "message": "no"}

        client, daemon = self.begin(None, refused("busy"), None, STORED, refused("unknown_table"), refused("disk_full"))
        self.assertEqual(client.put_record("t", "a", {}), 3)
        self.assertEqual(len(daemon.asked), 4)
        with self.assertRaises(prism.RefusedError) as caught:
            client.put_record("t", "a", {})
        self.assertEqual((caught.exception.code, len(daemon.asked)), ("unknown_table", 5))
        with self.assertRaises(prism.RefusedError) as last:  # the last refusal, once the time is over
            client.put_record("t", "a", {}, deadline=0.3)
        self.assertEqual(last.exception.code, "disk_full")
        with self.assertRaises(TimeoutError):
            client.put_record("t", "a", {}, deadline=0.3)
        daemon.listener.close()
        os.unlink(self.path)
        with self.assertRaises(TimeoutError):
            client.put_record("t", "a", {}, deadline=0.1)

    def test_arguments_are_checked(self) -> None:
        client, daemon = self.begin()
        for identifier in ("", "a b", "é", "x" * 129, "a\n"):
            with self.subTest(identifier), self.assertRaises(ValueError):
                client.get_record("t", identifier)
        for wrong in ([], {"a": float("nan")}):
            with self.subTest(str(wrong)), self.assertRaises(ValueError):
                client.put_record("t", "a", wrong)  # type: ignore[arg-type]
        with self.assertRaises(prism.TooLargeError):
            client.put_record("t", "a", {"a": "x" * 10_240})
        with self.assertRaises(ValueError):
            client.put_record("a/b", "a", {})
        with self.assertRaises(ValueError):
            client.get_record("prism.other", "a")
        with self.assertRaises(ValueError):
            client.put_record("t", "a", {}, if_version=-1)
        with self.assertRaises(ValueError):
            client.watch_table("a/b")
        self.assertEqual(daemon.connections, 0)

    SCRIPT = (
        [told("watch", 7), told("changed", 8, ids=["a", "b"]), None], [told("watch", 8), None],
        [told("watch", 12), {"ended": {"table": "t", "code": "unknown_table", "message": "no"}}],
        {"status": "refused", "code": "unknown_table", "message": "no"},
        [told("watch", 12), told("changed", 14)])
    CHANGES = [
        prism.Change(7, None), prism.Change(8, ("a", "b")), prism.Change(12, None), prism.Change(14, None)]

    def test_a_watch_goes_on_over_restarts_and_ends_when_it_is_closed(self) -> None:
        client, daemon = self.begin(*self.SCRIPT)
        seen: list[prism.Change] = []
        with client.watch_table("t") as watch:
            for change in watch:
                seen.append(change)
                self.assertIsNone(watch.refused)
                if len(seen) == len(self.CHANGES):
                    threading.Thread(target=watch.close).start()
        self.assertEqual(seen, self.CHANGES)
        self.assertEqual(daemon.asked, [{"watch": {"namespace": "prism", "table": "t"}}] * 5)

    def test_a_watch_says_why_there_are_no_changes(self) -> None:
        client, _ = self.begin({"status": "refused", "code": "unknown_table", "message": "no"})
        watch = client.watch_table("t")
        reader = threading.Thread(target=lambda: list(watch))
        reader.start()
        end = time.monotonic() + PATIENCE
        while watch.refused is None and time.monotonic() < end:
            time.sleep(0.005)
        self.assertEqual(watch.refused.code if watch.refused else None, "unknown_table")
        watch.close()
        reader.join(PATIENCE)
        self.assertFalse(reader.is_alive())

    def test_asyncio(self) -> None:
        async def run() -> list[prism.Change]:
            async with prism.AsyncClient(client) as calls:
                self.assertEqual(await calls.put_record("t", "a", {"n": 1}), 3)
                self.assertEqual(await calls.get_record("t", "a"), {"id": "a"})
                self.assertEqual(await calls.list_records("t"), [{"id": "a"}])
                await calls.delete_record("t", "a")
                seen = []
                async for change in calls.watch_table("t"):
                    seen.append(change)
                    if len(seen) == len(self.CHANGES):
                        break
                return seen

        client, _ = self.begin(
            STORED, {"record": {"id": "a"}}, {"records": [{"id": "a"}], "more": False}, {"status": "stored"}, *self.SCRIPT)
        self.assertEqual(asyncio.run(run()), self.CHANGES)


if __name__ == "__main__":
    unittest.main()
