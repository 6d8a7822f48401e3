"""The same scenario for each client: reports from eight threads while the daemon is killed, stopped and its disk filled.

PRISM_CLIENT_REPORTS sets how many (100,000 in `make soak-clients`), PRISM_SEED repeats a run.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest
from collections import Counter
from pathlib import Path

from rig import ROOT, Faults, Rig, seed, until

PROGRAMS = {
    "c": [str(ROOT / "clients/c/build/client-load")],
    "swift": [str(ROOT / ".build/debug/client-load-swift")],
    "python": [sys.executable, str(ROOT / "clients/python/tests/client_load.py")],
}
IS_LONG = "PRISM_CLIENT_REPORTS" in os.environ
REPORTS = {"c": int(os.environ.get("PRISM_CLIENT_REPORTS", 8_000)),
           "swift": int(os.environ.get("PRISM_CLIENT_REPORTS", 8_000)),
           "python": int(os.environ.get("PRISM_CLIENT_REPORTS", 3_000))}
SPOOL_BYTES = 4 * 1024 * 1024
CHILD_FIRST = 10_000_000


def read_log(path: Path) -> dict[int, str]:
    """The result of each number; the last line of a killed program may be torn."""
    results: dict[int, str] = {}
    for line in path.read_text().splitlines(keepends=True):
        words = line.split()
        if line.endswith("\n") and len(words) == 2:
            assert int(words[0]) not in results, f"{words[0]} is there twice"
            results[int(words[0])] = words[1]
    return results


class SpoolWatch(threading.Thread):
    """Looks at the spool's size all the time."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.most, self.ended = folder, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.01):
            self.most = max(self.most, sum(self._size(path) for path in self.folder.glob("*")))

    @staticmethod
    def _size(path: Path) -> int:
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0

    def finish(self) -> int:
        self.ended.set()
        self.join()
        return self.most


class Scenario:
    language: str

    def command(self, rig: Rig, log: Path, **flags: int) -> list[str]:
        words = [*PROGRAMS[self.language], "--socket", rig.ingest, "--spool", str(rig.folder / "spool"), "--log", str(log)]
        for name, value in {"spool-bytes": SPOOL_BYTES, **flags}.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def deliver_spool(self, rig: Rig, number: int) -> None:
        """Runs a program that sends what the others left in the spool."""
        spool = rig.folder / "spool"
        ran = subprocess.run(
            self.command(rig, rig.folder / "last.log", reports=1, first=9_000_000_000, threads=1, close=60_000, seed=number,
                         deadline=60_000, share=100),
            capture_output=True, text=True, timeout=300)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        end = time.monotonic() + 120
        with subprocess.Popen(self.command(
                rig, rig.folder / "rest.log", reports=100_000, first=9_100_000_000, threads=1, pace=100_000, seed=number)) as rest:
            try:
                until("the spool is empty", lambda: not list(spool.glob("*.spool")) or time.monotonic() > end)
            finally:
                rest.kill()
        self.assertEqual(list(spool.glob("*.spool")), [])

    def test_everything_arrives_once(self) -> None:
        """Kills, stops, a full disk; forks, execs and signals in the program itself."""
        number = seed()
        with Rig() as rig:
            log = rig.folder / "load.log"
            watch, faults = SpoolWatch(rig.folder / "spool"), Faults(rig, number)
            watch.start()
            faults.start()
            try:
                ran = subprocess.run(
                    [*self.command(rig, log, reports=REPORTS[self.language], threads=8, seed=number, children=3,
                                   pace=400 if IS_LONG else 3000, close=500), "--signals"],
                    capture_output=True, text=True, timeout=1800)
            finally:
                faults.finish()
                most = watch.finish()
            self.assertEqual(ran.returncode, 0, ran.stderr + ran.stdout)
            stats = [json.loads(line) for line in ran.stdout.splitlines()]
            self.deliver_spool(rig, number)
            until("everything is delivered", rig.is_delivered, explain=rig.logs)
            self.check(rig, read_log(log), stats)
            self.assertLessEqual(most, SPOOL_BYTES, "the spool passed its bound")
            print(f"{self.language}: faults {faults.made}, spool at most {most} bytes, "
                  f"results {dict(Counter(read_log(log).values()))}, {stats[-1]}", file=sys.stderr)

    def check(self, rig: Rig, results: dict[int, str], stats: list[dict]) -> None:
        arrived = {n: times for n, times in rig.arrived().items() if n < 9_000_000_000}
        taken = {n for n, word in results.items() if word in ("stored", "queued", "spooled")}
        stored = {n for n, word in results.items() if word == "stored"}
        lost = sum(s["droppedSpool"] + s["refused"] for s in stats)
        self.assertEqual(len(results), REPORTS[self.language] + 3 * 100)
        self.assertEqual({n for n, times in arrived.items() if times != 1}, set(), "arrived more than once")
        self.assertEqual(stored - set(arrived), set(), "was stored and did not arrive")
        self.assertEqual(set(arrived) - taken, set(), "was dropped and arrived")
        self.assertEqual(len(taken) - len(arrived), lost, "a loss was not told")
        self.assertEqual(sum(s["accepted"] for s in stats), len(taken))
        self.assertEqual(sum(s["damagedBytes"] for s in stats), 0)
        payloads = rig.arrived(kind="payload")
        self.assertEqual({n for n in arrived if n % 10 == 0} - set(payloads), set(), "a payload is missing")

    def test_a_killed_program_loses_nothing_that_it_had_spooled(self) -> None:
        number = seed()
        choice = random.Random(number)
        with Rig() as rig:
            results: dict[int, str] = {}
            for round_number in range(12 if IS_LONG else 4):
                if round_number % 2 == 0:
                    rig.end_daemon(signal.SIGKILL)
                log = rig.folder / f"load-{round_number}.log"
                programs = [
                    subprocess.Popen(
                        self.command(rig, log.with_suffix(f".{i}"), reports=1_000_000, first=round_number * 2_000_000 + i * 1_000_000,
                                     threads=4, seed=number + i, share=50, deadline=400, pace=2000),
                        stdout=subprocess.DEVNULL)
                    for i in range(2)]
                until("both programs report", lambda: all(log.with_suffix(f".{i}").exists() for i in range(2)))
                time.sleep(choice.uniform(0.6, 2.5))
                for program in programs:
                    program.kill()
                    program.wait()
                for i in range(2):
                    results |= read_log(log.with_suffix(f".{i}"))
                if rig.daemon and rig.daemon.poll() is not None:
                    rig.start_daemon()
            self.deliver_spool(rig, number)
            until("everything is delivered", rig.is_delivered, explain=rig.logs)
            arrived = rig.arrived()
            safe = {n for n, word in results.items() if word in ("stored", "spooled")}
            self.assertEqual(safe - set(arrived), set(), "was stored or spooled and did not arrive")
            self.assertEqual({n for n, times in arrived.items() if times != 1}, set(), "arrived more than once")
            print(f"{self.language}: {dict(Counter(results.values()))}", file=sys.stderr)
            self.assertTrue({"stored", "spooled"} <= set(results.values()), "the run met both")

    def test_a_small_spool_says_what_it_dropped(self) -> None:
        """Without a daemon, more is reported than the queue and the spool hold."""
        number = seed()
        with Rig() as rig:
            rig.end_daemon()
            log = rig.folder / "load.log"
            watch = SpoolWatch(rig.folder / "spool")
            watch.start()
            ran = subprocess.run(
                self.command(rig, log, reports=40_000, threads=8, seed=number, share=0, close=3000, spool_bytes=100_000),
                capture_output=True, text=True, timeout=300)
            most = watch.finish()
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertLessEqual(most, 100_000)
            rig.start_daemon()
            self.deliver_spool(rig, number)
            until("everything is delivered", rig.is_delivered, explain=rig.logs)
            arrived = {n for n in rig.arrived() if n < 9_000_000_000}
            stats, results = json.loads(ran.stdout), read_log(log)
            dropped = sum(word == "dropped" for word in results.values())
            self.assertEqual(dropped, stats["droppedQueue"])
            self.assertEqual(40_000 - len(arrived), dropped + stats["droppedSpool"], stats)
            self.assertGreater(len(arrived), 100)
            print(f"{self.language}: {len(arrived)} of 40,000 kept in 100,000 bytes; {stats}", file=sys.stderr)


class CTests(Scenario, unittest.TestCase):
    language = "c"

    def test_a_call_without_a_deadline_never_waits(self) -> None:
        """While the daemon is stopped, gone or slow, no such call gives up the processor."""
        with Rig() as rig:
            for fault in ("none", "stopped", "gone"):
                if fault == "stopped" and rig.daemon:
                    rig.daemon.send_signal(signal.SIGSTOP)
                if fault == "gone":
                    rig.end_daemon(signal.SIGKILL)
                ran = subprocess.run(
                    self.command(rig, rig.folder / f"{fault}.log", reports=20_000, threads=8, share=0, close=100, pace=50),
                    capture_output=True, text=True, timeout=300)
                stats = json.loads(ran.stdout)
                print(f"c, {fault}: {stats}", file=sys.stderr)
                self.assertEqual(stats["atOnce"], 20_000)
                # A page of the queue that is touched for the first time may wait for the kernel.
                self.assertLessEqual(stats["waits"], 20, fault)


class SwiftTests(Scenario, unittest.TestCase):
    language = "swift"


class PythonTests(Scenario, unittest.TestCase):
    language = "python"


class SharedSpoolTests(unittest.TestCase):
    def test_each_language_sends_what_the_other_left(self) -> None:
        for writer, reader in (("c", "python"), ("python", "c")):
            with self.subTest(writer=writer), Rig() as rig:
                sides = {"c": CTests(), "python": PythonTests()}
                rig.end_daemon()
                subprocess.run(
                    sides[writer].command(rig, rig.folder / "load.log", reports=500, threads=2, share=0, close=2000),
                    check=True, capture_output=True, timeout=120)
                rig.start_daemon()
                sides[reader].deliver_spool(rig, 1)
                until("everything is delivered", rig.is_delivered, explain=rig.logs)
                arrived = {n: times for n, times in rig.arrived().items() if n < 9_000_000_000}
                self.assertEqual(arrived, dict.fromkeys(range(500), 1))


if __name__ == "__main__":
    unittest.main()
