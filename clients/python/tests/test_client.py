"""The Python client against a daemon that does as it is told."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import prism  # noqa: E402
from prism._client import encode_meta  # noqa: E402
from prism._spool import HEADER, Files, Segment, Spool  # noqa: E402

PATIENCE = 60.0
"""Seconds after which the machine counts as hanging; no verdict depends on it otherwise."""


class Daemon:
    """Answers each report as `decide` says: a refusal's members, None for stored, or "close"."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reports: list[dict[str, Any]] = []
        self.payloads: list[bytes] = []
        self.hellos: list[dict[str, Any]] = []
        self.decide: Callable[[dict[str, Any]], Any] = lambda report: None
        self.is_mute = False
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
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        number = 0
        with connection, connection.makefile("rb") as lines:
            try:
                for line in lines:
                    request = json.loads(line)
                    if "hello" in request:
                        self.hellos.append(request["hello"])
                        connection.sendall(b'{"hello":{"server":"prismd"}}\n')
                        continue
                    payload = lines.read(request.get("payloadBytes", 0))
                    number += 1
                    if self.is_mute:
                        continue
                    verdict = self.decide(request)
                    if verdict == "close":
                        return
                    answer: dict[str, Any] = {"acked": number}
                    if verdict:
                        answer["refused"] = [{"seq": number, **verdict}]
                    else:
                        self.reports.append(request)
                        self.payloads.append(payload)
                    connection.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                return

    @property
    def ids(self) -> list[str]:
        return [report["reportId"] for report in self.reports]

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)


class ClientCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="prism-python-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = str(self.folder / "sock")

    def daemon(self) -> Daemon:
        daemon = Daemon(self.path)
        self.addCleanup(lambda: daemon.listener.close())
        return daemon

    def client(self, **options: Any) -> prism.Client:
        client = prism.Client(**{
            "socket": self.path, "spool": str(self.folder / "spool"), "app_name": "test", "exit_seconds": None, **options})
        self.addCleanup(client.close, 0)
        return client

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not come true")
            time.sleep(0.005)

    def spool_files(self) -> list[Path]:
        return list((self.folder / "spool").glob("*.spool"))


class EncodingTests(unittest.TestCase):
    def test_metas(self) -> None:
        self.assertEqual(encode_meta({"a": 1, "b": "é\n", "c": [None, True]}), '{"a":1,"b":"é\\n","c":[null,true]}'.encode())
        self.assertEqual(encode_meta({"path": Path("/x")}), b'{"path":"/x"}')
        self.assertEqual(encode_meta({"lone": "\ud800"}), b'{"lone":"?"}')
        deep: Any = 1
        for _ in range(70):
            deep = [deep]
        for bad in ({}, {"a": float("nan")}, {"a": deep}, [1], "text"):
            with self.subTest(meta=str(bad)[:20]), self.assertRaises(ValueError):
                encode_meta(bad)  # type: ignore[arg-type]
        with self.assertRaises(prism.TooLargeError):
            encode_meta({"a": "x" * 10_240})


class SessionTests(ClientCase):
    def greeted(self, daemon: Daemon, number: int) -> Any:
        until = time.monotonic() + PATIENCE
        while len(daemon.hellos) < number and time.monotonic() < until:
            time.sleep(0.001)
        return daemon.hellos[number - 1].get("session")

    def test_sessions_begin_and_end(self) -> None:
        daemon, client = self.daemon(), self.client(app_name="pos")
        client.begin_session()
        first = self.greeted(daemon, 1)
        self.assertRegex(first, "^[A-Za-z0-9_-]{16}-s1$")
        verdicts = iter(["close"])
        daemon.decide = lambda report: next(verdicts, None)
        self.assertEqual(client.report("net", {"n": 1}, deadline=PATIENCE).result, prism.Result.STORED)
        self.assertEqual(self.greeted(daemon, 2), first, "a new connection is the same session")
        client.begin_session()
        self.assertRegex(self.greeted(daemon, 3), "-s2$")
        client.end_session()
        self.assertIs(self.greeted(daemon, 4), False)
        self.assertEqual(client.report("net", {"n": 2}, deadline=PATIENCE).result, prism.Result.STORED)


class ReportTests(ClientCase):
    def test_any_number_of_seconds_is_a_deadline(self) -> None:
        daemon, client = self.daemon(), self.client()
        for deadline in (math.inf, 1e300, 10**400):
            self.assertIs(client.report("net", {"a": 1}, deadline=deadline).result, prism.Result.STORED)
            self.assertIs(client.flush(deadline), prism.Result.STORED)
        for deadline in (math.nan, -1.0, -math.inf):
            self.assertIs(client.report("net", {"a": 1}, deadline=deadline).result, prism.Result.QUEUED)
        with self.assertRaises(TypeError):
            client.report("net", {"a": 1}, deadline="2")
        looped: dict = {}
        looped["a"] = looped
        with self.assertRaises(ValueError):
            client.report("net", looped)
        self.assertIs(client.close(math.inf), prism.Result.STORED)
        self.assertEqual(len(daemon.reports), 6)

    def test_a_report_is_stored(self) -> None:
        daemon, client = self.daemon(), self.client(app_name="ä" * 300)
        self.assertEqual(daemon.hellos, [], "connects lazily")
        answer = client.report("net", {"ms": 12}, deadline=PATIENCE)
        self.assertEqual((answer.result, answer.code), (prism.Result.STORED, ""))
        self.assertEqual(daemon.ids, [answer.report_id])
        self.assertEqual(daemon.hellos, [{"app": {"APP_NAME": "ä" * 128}, "answer": "cumulative"}])
        answer = client.report(
            "order.placed", {"a": "\n"}, namespace="shop", payload=b"\n" * 100_000, report_id="mine", created_ms=42,
            deadline=PATIENCE)
        self.assertEqual(daemon.reports[-1], {
            "reportId": "mine", "namespace": "shop", "type": "order.placed", "createdTime": 42, "payloadBytes": 100_000,
            "meta": {"a": "\n"}})
        self.assertEqual(daemon.payloads[-1], b"\n" * 100_000)
        for _ in range(2000):
            self.assertIs(client.report("net", {"n": 1}).result, prism.Result.QUEUED)
        self.assertIs(client.flush(PATIENCE), prism.Result.STORED)
        self.assertEqual(len(set(daemon.ids)), 2002)
        self.assertFalse((self.folder / "spool").exists(), "nothing touches the disk while the daemon is there")
        self.assertIs(client.close(), prism.Result.STORED)
        with self.assertRaises(prism.ClosedError):
            client.report("net", {"n": 1})

    def test_arguments_are_checked(self) -> None:
        client = self.client(queue_bytes=65536)
        for words in ({"type": "a b"}, {"namespace": "a.b"}, {"report_id": "a/b"}, {"report_id": "a\n"}, {"meta": {}}):
            with self.subTest(words), self.assertRaises(ValueError):
                client.report(**{"type": "net", "meta": {"a": 1}, **words})  # type: ignore[arg-type]
        with self.assertRaises(prism.TooLargeError):
            client.report("net", {"a": 1}, payload=b"x" * 65536)

    def test_refusals(self) -> None:
        daemon, client = self.daemon(), self.client()
        refusals: list[Any] = [{"code": "unknown_type", "message": "no"}]
        daemon.decide = lambda report: refusals.pop(0) if refusals else None
        answer = client.report("net", {"a": 1}, deadline=PATIENCE)
        self.assertEqual((answer.result, answer.code, answer.message), (prism.Result.REFUSED, "unknown_type", "no"))
        for code in ("unknown", "busy", "disk_full", "internal", "store_full"):
            refusals.append({"code": code, "message": ""})
            answer = client.report("net", {"a": 1}, deadline=PATIENCE)
            self.assertEqual((answer.result, answer.code), (prism.Result.STORED, code), "it is sent again")
        refusals.append({"code": "rate_limited", "message": "", "retryMs": 5})
        self.assertIs(client.report("net", {"a": 1}, deadline=PATIENCE).result, prism.Result.STORED)
        unspooled = self.client(spool="")
        refusals += [{"code": "busy", "message": "", "retryMs": 5}] * 3
        self.assertIs(unspooled.report("net", {"a": 1}, deadline=PATIENCE).result, prism.Result.STORED)

    def test_a_lost_connection_is_made_again(self) -> None:
        daemon, client = self.daemon(), self.client()
        count = 0

        def every_seventh(report: dict[str, Any]) -> Any:
            nonlocal count
            count += 1
            return "close" if count % 7 == 0 else None

        daemon.decide = every_seventh
        for _ in range(30):
            client.report("net", {"a": 1})
        self.assertIs(client.report("net", {"a": 1}, deadline=PATIENCE).result, prism.Result.STORED)
        client.flush(PATIENCE)
        self.until(lambda: len(set(daemon.ids)) == 31)

    def test_nonsense_from_the_daemon_ends_the_connection_only(self) -> None:
        daemon, client = self.daemon(), self.client()
        wrong = [{"acked": "x"}, {"acked": -1}, {"acked": 10**9}, [1], {"acked": 1, "refused": [{"seq": 99}]}, 7, {}]
        real = json.dumps
        daemon.decide = lambda report: None

        class Lying:
            loads = staticmethod(json.loads)

            @staticmethod
            def dumps(value: Any) -> str:
                return real(wrong.pop() if wrong else value)

        module = sys.modules[__name__]
        self.addCleanup(setattr, module, "json", json)
        setattr(module, "json", Lying)
        self.assertIs(client.report("net", {"a": 1}, deadline=PATIENCE).result, prism.Result.STORED)
        self.assertEqual(wrong, [])


class SpoolTests(ClientCase):
    def test_the_spool_keeps_what_the_daemon_misses(self) -> None:
        client = self.client()
        for _ in range(99):
            client.report("net", {"a": 1})
        self.assertIs(client.flush(PATIENCE), prism.Result.SPOOLED)
        self.assertIs(client.report("net", {"a": 1}, deadline=0.3).result, prism.Result.SPOOLED)
        self.assertEqual((self.folder / "spool").stat().st_mode & 0o777, 0o700)
        daemon = self.daemon()
        self.until(lambda: len(set(daemon.ids)) == 100 and not self.spool_files())
        self.assertEqual(client.stats().replayed, 100)
        self.assertIs(client.close(), prism.Result.STORED)

    def test_a_folder_that_others_may_write_to_is_not_used(self) -> None:
        (self.folder / "spool").mkdir()
        (self.folder / "spool").chmod(0o777)
        client = self.client()
        client.report("net", {"a": 1})
        self.until(lambda: client.stats().spool_error != 0)
        self.assertIs(client.close(0), prism.Result.QUEUED)
        self.assertEqual(client.stats().dropped_spool, 1)

    def test_losses_are_told(self) -> None:
        told: dict[prism.Loss, int] = dict.fromkeys(prism.Loss, 0)

        def on_loss(loss: prism.Loss, count: int, code: str, message: str) -> None:
            told[loss] += count
            raise RuntimeError("a fault of the program's own function")

        client = self.client(spool_bytes=65536, queue_bytes=65536, on_loss=on_loss)
        dropped = sum(client.report("net", {"a": "x" * 900}).result is prism.Result.DROPPED for _ in range(500))
        client.close(0.1)
        kept = client.stats().spooled
        self.assertEqual(told[prism.Loss.QUEUE], dropped)
        self.assertEqual(told[prism.Loss.QUEUE] + told[prism.Loss.SPOOL], 500 - kept)
        self.assertLessEqual(sum(path.stat().st_size for path in self.spool_files()), 65536)
        self.assertGreater(kept, 40)

    def test_a_mute_daemon(self) -> None:
        daemon, client = self.daemon(), self.client()
        daemon.is_mute = True
        self.assertIs(client.report("net", {"a": 1}, deadline=0.05).result, prism.Result.QUEUED)
        self.until(lambda: client.stats().spool_waiting == 1)
        self.assertIs(client.close(0), prism.Result.SPOOLED)

    def test_damage_costs_one_record(self) -> None:
        spool = Spool(str(self.folder / "spool"), 1 << 20, Files(threading.RLock()))
        for n in range(5):
            spool.append(b'{"reportId":"%d"}' % n)
        file = spool.segments[0].file
        whole = os.pread(file, 4096, 0)
        for at in range(len(whole) * 2):
            damaged = bytearray(whole[:at - len(whole)] if at >= len(whole) else whole)
            if at < len(whole):
                damaged[at] ^= 1 << at % 8
            os.ftruncate(file, 0)
            os.pwrite(file, damaged, 0)
            segment, offset, found, lost = Segment("", file, 0, len(damaged)), 0, 0, 0
            while True:
                offset, _, body, skipped = spool.read(segment, offset)
                lost += skipped
                if body is None:
                    break
                found += 1
                offset += HEADER.size + len(body)
            size = len(whole) // 5
            is_state = 12 <= at % size < 16  # not under the checksum
            wanted = (at - len(whole)) // size if at >= len(whole) else 5 if is_state else 4
            self.assertEqual(found, wanted, f"byte {at}")
            self.assertTrue(found == 5 or lost > 0 or len(damaged) % size == 0, f"byte {at}: the damage is counted")


class ForkTests(ClientCase):
    def test_a_child_goes_on_by_itself(self) -> None:
        daemon, client = self.daemon(), self.client()
        for _ in range(10):
            for _ in range(20):
                client.report("net", {"who": "parent"})
            child = os.fork()
            if child == 0:
                try:
                    is_new = client.stats().accepted == 0 and not client.queue
                    stored = client.report("net", {"who": "child"}, deadline=PATIENCE).result is prism.Result.STORED
                    os._exit(0 if is_new and stored and client.close() is prism.Result.STORED else 1)
                finally:
                    os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertIs(client.flush(PATIENCE), prism.Result.STORED)
        self.assertEqual(len(daemon.reports), 210)
        self.assertEqual(len(set(daemon.ids)), 210)

    def test_a_signal_handler_may_report(self) -> None:
        daemon, client = self.daemon(), self.client()
        before = signal.signal(signal.SIGALRM, lambda *_: client.report("net", {"who": "handler"}) and None)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for _ in range(3000):
            client.report("net", {"who": "main"})
        signal.setitimer(signal.ITIMER_REAL, 0)
        client.flush(PATIENCE)
        mains = sum(report["meta"]["who"] == "main" for report in daemon.reports)
        self.assertEqual(mains, 3000)


class ProgramTests(ClientCase):
    def run_program(self, text: str) -> subprocess.CompletedProcess[str]:
        source = str(Path(__file__).resolve().parents[1] / "src")
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONPATH": source, "PRISM_INGEST": self.path, "PRISM_SPOOL": str(self.folder / "spool")})

    def test_a_program_that_ends_has_sent(self) -> None:
        daemon = self.daemon()
        ran = self.run_program("import prism\nprism.Client().report('net', {'a': 1})\n")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(len(daemon.reports), 1)

    def test_a_program_that_ends_without_a_daemon_has_spooled(self) -> None:
        ran = self.run_program("import prism\nprism.Client().report('net', {'a': 1})\n")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(len(self.spool_files()), 1)

    def test_exceptions_that_nothing_caught(self) -> None:
        daemon = self.daemon()
        ran = self.run_program(
            "import prism, threading\nclient = prism.Client()\nprism.install_excepthook(client)\n"
            "def fail(): raise ValueError('in a thread')\n"
            "thread = threading.Thread(target=fail, name='t1'); thread.start(); thread.join()\nraise KeyError('at the end')\n")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("KeyError: 'at the end'", ran.stderr, "the hook before is called")
        metas = [report["meta"] for report in daemon.reports]
        self.assertEqual([(m["reason"], m["thread"]) for m in metas], [("ValueError", "t1"), ("KeyError", "MainThread")])
        self.assertEqual({report["type"] for report in daemon.reports}, {"appCrash"})
        self.assertIn(b"Traceback (most recent call last)", daemon.payloads[0])
        self.assertEqual((metas[0]["function"], metas[0]["line"]), ("fail", 4))

    def test_any_exception_is_reported(self) -> None:
        daemon = self.daemon()
        before = "class Bad(Exception):\n    def __str__(self): return self.missing\n"
        for statement, reason, message, end in [
            ("raise Bad()", "Bad", "<exception str() failed>", "<exception str() failed>\n"),
            ("Bad.__str__ = lambda self: 5\nraise Bad()", "Bad", "<exception str() failed>", "\n"),
            ("raise OSError(chr(0) * 20000)", "OSError", "\0" * 682 + "…", "…\n"),
            ("raise OSError(chr(0xd800))", "OSError", "?", "OSError: ?\n"),
            ("raise ValueError('é' * 1_100_000)", "ValueError", "é" * 2048 + "…", "é…\n"),
            ("try: raise KeyError('x' * 600_000)\nexcept Exception as e: raise RuntimeError('y' * 600_000) from e",
             "RuntimeError", "y" * 4096 + "…", "y…\n"),
            ("raise type('E' * 20_000, (Exception,), {})('\\n' * 9_000)", "E" * 512 + "…", "\n" * 2048 + "…", "\n"),
        ]:
            with self.subTest(statement):
                daemon.reports.clear(), daemon.payloads.clear()
                ran = self.run_program(f"import prism\nprism.install_excepthook()\n{before}{statement}\n")
                self.assertEqual(ran.returncode, 1)
                self.assertEqual([(r["meta"]["reason"], r["meta"]["message"]) for r in daemon.reports], [(reason, message)])
                trace = daemon.payloads[0].decode()
                self.assertIn("Traceback (most recent call last)", trace)
                self.assertIn(", line ", trace, "a long message does not push the frames out")
                self.assertTrue(trace.endswith(end), trace[-80:])
                self.assertLess(len(daemon.payloads[0]), 65_536)

    def test_of_a_report_that_cannot_be_made_the_type_is_kept(self) -> None:
        daemon = self.daemon()
        ran = self.run_program(
            "import prism, traceback\nprism.install_excepthook()\n"
            "def fail(*of): raise MemoryError()\ntraceback.format_exception = fail\nraise KeyError('x')\n")
        self.assertEqual((ran.returncode, [report["meta"] for report in daemon.reports]), (1, [{"reason": "KeyError"}]))

    def test_an_exception_that_is_not_reported_is_a_loss(self) -> None:
        ran = self.run_program(
            "import prism\nclient = prism.Client(on_loss=lambda *loss: print(*loss))\nprism.install_excepthook(client)\n"
            "client.close()\nraise KeyError('x')\n")
        self.assertEqual(ran.stdout, "Loss.CRASH 1 ClosedError an exception was not reported: the client is closed\n")
        self.assertIn("KeyError: 'x'", ran.stderr)


class HandlerTests(ClientCase):
    def test_log_records(self) -> None:
        daemon, client = self.daemon(), self.client()
        log = logging.getLogger("prism-test")
        log.propagate = False
        handler = prism.Handler(client, type="log", fields=("order",))
        log.addHandler(handler)
        self.addCleanup(log.removeHandler, handler)
        log.warning("order %d is late", 7, extra={"order": 7})
        try:
            raise ValueError("no")
        except ValueError:
            log.exception("x" * 20_000)
        log.warning("\0" * 5_000)
        client.flush(PATIENCE)
        first, second, third = daemon.reports
        self.assertEqual(third["meta"]["message"], "\0" * 682 + "…")
        self.assertEqual(first["meta"]["message"], "order 7 is late")
        self.assertEqual((first["meta"]["level"], first["meta"]["order"]), ("WARNING", 7))
        self.assertEqual((second["meta"]["exception"], len(second["meta"]["message"])), ("ValueError", 4097))
        self.assertIn(b"ValueError: no", daemon.payloads[1])


class AsyncTests(ClientCase):
    def test_many_at_once(self) -> None:
        daemon = self.daemon()

        async def run() -> None:
            options = {"socket": self.path, "spool": str(self.folder / "spool"), "exit_seconds": None}
            async with prism.AsyncClient(**options) as client:
                answers = await asyncio.gather(*(client.report("net", {"n": n}, deadline=PATIENCE) for n in range(200)))
                self.assertEqual({answer.result for answer in answers}, {prism.Result.STORED})
                self.assertIs(client.send("net", {"n": 200}).result, prism.Result.QUEUED)
                self.assertIs(await client.flush(PATIENCE), prism.Result.STORED)
                daemon.is_mute = True
                task = asyncio.ensure_future(client.report("net", {"n": 201}, deadline=PATIENCE))
                await asyncio.sleep(0.05)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.assertEqual(client.client.waiters, {})
                answer = await client.report("net", {"n": 202}, deadline=0.05)
                self.assertIs(answer.result, prism.Result.QUEUED)

        asyncio.run(run())
        self.assertEqual(sorted(report["meta"]["n"] for report in daemon.reports), list(range(201)))


if __name__ == "__main__":
    unittest.main()
