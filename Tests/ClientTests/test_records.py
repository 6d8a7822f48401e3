"""Records of the clients in C and Python: puts and watches while the daemon is killed, stopped and its disk filled.

PRISM_CLIENT_REPORTS sets how many puts (in `make soak-clients`), PRISM_SEED repeats a run.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

from rig import PATIENCE_SECONDS, PROGRAMS, ROOT, Faults, Rig, seed, until

sys.path.insert(0, str(ROOT / "clients/python/src"))

import prism  # noqa: E402

PUTS = int(os.environ.get("PRISM_CLIENT_REPORTS", 10_000)) // 40
PAUSE_MS = 20
THREADS, RECORDS = 4, 5
NAMESPACES = {"shop": "monitorList: [{type: sample}]\nrecords: [{table: part}]\nrecordIntervalSecond: 1\n"}


class RecordTests(unittest.TestCase):
    def check(self, rig: Rig, last: dict[str, tuple[int, int]]) -> None:
        """Each record has its last number and version, here and, once all is sent, at the collector."""
        client = prism.Client(socket=rig.ingest, spool="")
        found = {record["id"]: (record["fields"]["n"], record["version"])
                 for record in client.list_records("part", namespace="shop", deadline=PATIENCE_SECONDS)}
        self.assertEqual(found, last)
        flushed = subprocess.run(
            [PROGRAMS / "prismctl", "flush", "--wait", "--timeout", str(PATIENCE_SECONDS)], capture_output=True, text=True,
            env={**os.environ, "PRISM_CONTROL": rig.control}, timeout=2 * PATIENCE_SECONDS)
        self.assertEqual(flushed.returncode, 0, flushed.stderr)
        with contextlib.closing(sqlite3.connect(f"file:{rig.folder}/collector/collector.db?mode=ro", uri=True)) as base:
            rows = base.execute("SELECT id, fields FROM records").fetchall()
        self.assertEqual({identifier: json.loads(fields)["n"] for identifier, fields in rows},
                         {identifier: number for identifier, (number, _) in last.items()})

    def test_c(self) -> None:
        number = seed()
        with Rig(NAMESPACES) as rig:
            faults = Faults(rig, number)
            faults.start()
            try:
                ran = subprocess.run(
                    [ROOT / "clients/c/build/record-load", rig.ingest, str(THREADS), str(PUTS), str(PAUSE_MS)], capture_output=True, text=True,
                    timeout=1200)
            finally:
                faults.finish()
            self.assertEqual(ran.returncode, 0, ran.stderr + ran.stdout)
            words = [line.split() for line in ran.stdout.splitlines()]
            self.assertGreater(sum(faults.made.values()), 0)
            print(f"c: faults {faults.made}, {ran.stderr.strip()}", file=sys.stderr)
            self.assertEqual(len(words), THREADS * RECORDS)
            self.check(rig, {identifier: (int(n), int(version)) for identifier, n, version in words})

    def test_python(self) -> None:
        number = seed()
        with Rig(NAMESPACES) as rig:
            client = prism.Client(socket=rig.ingest, spool="")
            last: dict[str, tuple[int, int]] = {}
            seen: list[prism.Change] = []
            errors: list[BaseException] = []
            watch = client.watch_table("part", namespace="shop")

            def put(thread: int) -> None:
                try:
                    for n in range(1, PUTS + 1):
                        identifier = f"p{thread}-{n % RECORDS}"
                        version = last.get(identifier, (0, prism.ABSENT))[1]
                        stored = client.put_record(
                            "part", identifier, {"n": n}, namespace="shop", if_version=version, deadline=120)
                        last[identifier] = (n, stored)
                        time.sleep(PAUSE_MS / 1000)
                except BaseException as error:  # told below
                    errors.append(error)

            def follow() -> None:
                for change in watch:
                    seen.append(change)

            faults = Faults(rig, number)
            threads = [threading.Thread(target=put, args=(i,)) for i in range(THREADS)] + [threading.Thread(target=follow)]
            for thread in threads:
                thread.start()
            faults.start()
            try:
                for thread in threads[:-1]:
                    thread.join(1200)
            finally:
                faults.finish()
            self.assertEqual(errors, [])
            status = rig.status()
            self.assertIn("part", status["namespaces"]["shop"]["records"])
            generation = THREADS * PUTS
            until("the watch comes to the last change", lambda: bool(seen) and seen[-1].generation >= generation,
                  explain=lambda: str(seen[-3:]))
            watch.close()
            threads[-1].join(PATIENCE_SECONDS)
            self.assertGreater(sum(faults.made.values()), 0)
            print(f"python: faults {faults.made}, {len(seen)} changes were told", file=sys.stderr)
            numbers = [change.generation for change in seen]
            self.assertEqual(numbers, sorted(set(numbers)), "each is newer than the one before")
            self.check(rig, last)


if __name__ == "__main__":
    unittest.main()
