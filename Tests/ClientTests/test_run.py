"""`prismctl run` with real programs and the real daemon."""

import contextlib
import os
import signal
import subprocess
import unittest
from pathlib import Path

from rig import PROGRAMS, Rig, until


class RunTests(unittest.TestCase):
    def setUp(self) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.rig = stack.enter_context(Rig({"jobs": "monitorList: [{type: backup, isUploadPayload: true}]\n"}))

    def command(self, *words: str, kind: str = "backup", deadline: str = "60") -> list[str]:
        return [str(PROGRAMS / "prismctl"), "run", "--ingest", self.rig.ingest, "--namespace", "jobs", "--type", kind,
                "--deadline", deadline, *words]

    def run_program(self, *words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.command(*words, **more), capture_output=True, timeout=120, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PRISM_SPOOL": str(self.rig.folder / "spool")}

    def reports(self, count: int) -> list[dict]:
        def rows(kind: str) -> list[dict]:
            return self.rig.reports(namespace="jobs", kind=kind)
        until("the reports arrive", lambda: len(rows("meta")) == count and self.rig.is_delivered(), explain=self.rig.logs)
        payloads = {row["meta"]["REPORT_ID"]: self.rig.payload(row) for row in rows("payload")}
        return [{**row["meta"], "payload": payloads.get(row["meta"]["REPORT_ID"])} for row in rows("meta")]

    def test_a_program_that_succeeds(self) -> None:
        ran = self.run_program("--", "sh", "-c", "printf 'a\\0b'; printf err >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, b"a\0b", b"err"))
        meta, = self.reports(1)
        self.assertEqual((meta["command"], meta["exitCode"], meta["payload"]), ("sh", 0, None))
        self.assertNotIn("signal", meta)
        self.assertGreaterEqual(meta["durationMs"], meta["userMs"] // 2)
        self.assertGreater(meta["userMs"] + meta["systemMs"], 0)
        self.assertGreater(meta["maxMemoryKByte"], 100)

    def test_a_program_that_fails(self) -> None:
        ran = self.run_program("--name", "nightly", "--", "sh", "-c", "echo cause >&2; seq 1 5000; echo last >&2; exit 7")
        self.assertEqual(ran.returncode, 7)
        self.assertEqual(ran.stdout, "".join(f"{n}\n" for n in range(1, 5001)).encode())
        meta, = self.reports(1)
        self.assertEqual((meta["command"], meta["exitCode"], len(meta["payload"])), ("nightly", 7, 8192))
        self.assertIn(b"5000\n", meta["payload"])
        # What the other stream writes does not push it out.
        self.assertIn(b"cause\n", meta["payload"])
        self.assertIn(b"last\n", meta["payload"])

    def test_signals(self) -> None:
        ran = self.run_program("--", "sh", "-c", "kill -KILL $$")
        self.assertEqual(ran.returncode, 128 + signal.SIGKILL)
        with subprocess.Popen(
                self.command("--", "sh", "-c", "trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.05; done"),
                stdout=subprocess.PIPE, env=self.environment) as program:
            assert program.stdout
            self.assertEqual(program.stdout.readline(), b"ready\n")
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.stdout.readline(), b"ended\n")
            self.assertEqual(program.wait(60), 3)
        first, second = self.reports(2)
        self.assertEqual((first["signal"], first["exitCode"], second["exitCode"]), (9, 137, 3))

    def test_no_signal_is_blocked_in_the_program(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGPIPE):
            with self.subTest(signal=number.name):
                ran = self.run_program("--", "sh", "-c", f"kill -{int(number)} $$; echo survived")
                self.assertEqual((ran.returncode, ran.stdout), (128 + number, b""))
        with subprocess.Popen(self.command("--", "sleep", "600"), env=self.environment) as program:
            children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
            until("the program runs", lambda: any(
                Path(f"/proc/{child}/comm").read_text() == "sleep\n"
                for thread in children.parent.parent.iterdir() for child in (thread / "children").read_text().split()))
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.wait(60), 128 + signal.SIGTERM)
        self.assertEqual([report["signal"] for report in self.reports(7)].count(signal.SIGTERM), 2)

    def test_output_that_can_not_be_written_is_said_and_ends_the_program(self) -> None:
        with open("/dev/full", "wb") as full:
            ran = subprocess.run(
                self.command("--", "sh", "-c", "echo data; sleep 1; exec yes"), stdout=full, stderr=subprocess.PIPE, timeout=120,
                env=self.environment)
            self.assertEqual(ran.returncode, 128 + signal.SIGPIPE)
            ran = subprocess.run(
                self.command("--", "echo", "data"), stdout=full, stderr=subprocess.PIPE, timeout=120, env=self.environment)
        self.assertEqual(ran.returncode, os.EX_IOERR)
        self.assertIn(b"the program's output can't be written: No space left on device", ran.stderr)
        with subprocess.Popen(self.command("--", "yes"), stdout=subprocess.PIPE, env=self.environment) as program:
            assert program.stdout
            program.stdout.readline()
            program.stdout.close()
            self.assertEqual(program.wait(60), 128 + signal.SIGPIPE)
        errors = [report.get("outputError") for report in self.reports(3)]
        self.assertEqual(errors, ["No space left on device"] * 2 + [None])

    def test_what_is_left_behind_does_not_keep_it_waiting(self) -> None:
        ran = self.run_program("--", "sh", "-c", "sleep 600 & echo $!")
        self.assertEqual(ran.returncode, 0)
        os.kill(int(ran.stdout), signal.SIGKILL)

    def test_without_a_daemon_the_report_is_spooled(self) -> None:
        self.rig.end_daemon()
        ran = self.run_program("--", "sh", "-c", "exit 5", deadline="0")
        self.assertEqual(ran.returncode, 5, "the program's exit code stays")
        self.assertIn(b"sent by a later program", ran.stderr)
        self.rig.start_daemon()
        self.assertEqual(self.run_program("--", "true").returncode, 0)
        until("the spool is sent", lambda: self.run_program("--", "true").returncode == 0
              and not list(Path(self.environment["PRISM_SPOOL"]).glob("*.spool")))
        until("it arrives", self.rig.is_delivered)
        codes = [report["meta"]["exitCode"] for report in self.rig.reports(kind="meta")]
        self.assertEqual(codes.count(5), 1)

    def test_a_report_that_no_spool_takes_is_said_to_be_lost(self) -> None:
        self.rig.end_daemon()
        for spool in ("", "/proc/x", "/dev/null/x"):
            for deadline in ("0", "1"):
                with self.subTest(spool=spool, deadline=deadline):
                    ran = subprocess.run(
                        self.command("--", "sh", "-c", "exit 5", deadline=deadline), capture_output=True, timeout=120,
                        env={"PATH": os.environ["PATH"], "HOME": "/proc/x", "PRISM_SPOOL": spool})
                    self.assertEqual(ran.returncode, 5)
                    self.assertIn(b"the report is lost", ran.stderr)

    def test_what_is_wrong_is_said(self) -> None:
        for words, deadline, code, text in (
            (["--", "/nowhere/program"], "60", 127, b"not run"),
            (["--", "/etc/passwd"], "60", 126, b"not run"),
            (["--", "true"], "x", 64, b"--deadline: 0 to 3600 seconds"),
            (["--deadline", "0", "--", "true"], "60", 64, b"given twice"),
            ([], "60", 64, b"usage"),
        ):
            with self.subTest(words=words, deadline=deadline):
                ran = self.run_program(*words, deadline=deadline)
                self.assertEqual(ran.returncode, code, ran.stderr)
                self.assertIn(text, ran.stderr)
        ran = self.run_program("--", "true", kind="unknown")
        self.assertEqual((ran.returncode, b"unknown_type" in ran.stderr), (0, True), ran.stderr)


if __name__ == "__main__":
    unittest.main()
