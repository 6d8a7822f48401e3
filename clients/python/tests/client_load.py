"""The scenario program of Tests/ClientTests, with the flags and the log of clients/c/tests/client_load.c."""

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import prism  # noqa: E402


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--socket", "--spool", "--log"):
        parser.add_argument(name)
    defaults = {"--spool-bytes": 0, "--threads": 8, "--reports": 1000, "--seed": 0, "--first": 0, "--share": 30,
                "--deadline": 2000, "--pace": 0, "--children": 0, "--close": 10000}
    for name, value in defaults.items():
        parser.add_argument(name, type=int, default=value)
    parser.add_argument("--signals", action="store_true")
    parser.add_argument("--inherits-nothing", action="store_true")
    return parser.parse_args()


class Load:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.told = dict.fromkeys(prism.Loss, 0)
        self.client = prism.Client(
            socket=options.socket, spool=options.spool, spool_bytes=options.spool_bytes or 64 << 20,
            app_name="client-load-python", app_version=prism.__version__, on_loss=self.on_loss)
        self.log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.lock = threading.Lock()
        self.next = options.first
        self.at_once = self.slow = 0
        self.longest = 0.0

    def on_loss(self, loss: prism.Loss, count: int, code: str, message: str) -> None:
        self.told[loss] += count

    def report(self, number: int, chance: random.Random) -> None:
        waits = chance.randrange(100) < self.options.share
        payload = bytes([ord("a") + number % 26]) * 200 if number % 10 == 0 else None
        start = time.perf_counter()
        answer = self.client.report(
            "sample", {"n": number, "text": f"an order of {number % 97} items"}, namespace="shop", payload=payload,
            deadline=self.options.deadline / 1000 if waits else 0)
        if not waits:
            took = time.perf_counter() - start
            self.at_once += 1
            self.slow += took > 0.001
            self.longest = max(self.longest, took)
        os.write(self.log, f"{number} {answer.result.value}\n".encode())

    def thread(self, index: int) -> None:
        chance = random.Random(self.options.seed * 31 + index)
        while True:
            with self.lock:
                number = self.next
                self.next += 1
            if number >= self.options.first + self.options.reports:
                return
            self.report(number, chance)
            if self.options.pace:
                time.sleep(self.options.pace / 1_000_000)

    def close(self) -> None:
        self.client.flush(self.options.close / 1000)
        stats = self.client.stats()
        closed = self.client.close(0)
        line = json.dumps({
            "pid": os.getpid(), "closed": closed.value, "accepted": stats.accepted, "stored": stats.stored,
            "refused": self.told[prism.Loss.REFUSED], "droppedQueue": stats.dropped_queue,
            "droppedSpool": self.told[prism.Loss.SPOOL], "damagedBytes": stats.damaged_bytes, "connects": stats.connects,
            "atOnce": self.at_once, "slow": self.slow, "longestMicros": int(self.longest * 1e6)})
        os.write(1, line.encode() + b"\n")

    def child(self, index: int) -> None:
        """Reports with the client that it inherited, then becomes a program that has inherited nothing."""
        chance = random.Random(self.options.seed + index)
        self.told = dict.fromkeys(prism.Loss, 0)
        for n in range(100):
            self.report(self.options.first + (index + 1) * 10_000_000 + n, chance)
        self.close()
        os.execv(sys.executable, [sys.executable, __file__, "--inherits-nothing"])

    def run(self) -> int:
        if self.options.signals:
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
        threads = [threading.Thread(target=self.thread, args=(index,)) for index in range(self.options.threads)]
        for thread in threads:
            thread.start()
        children = []
        for index in range(self.options.children):
            time.sleep(0.1)
            child = os.fork()
            if child == 0:
                try:
                    self.child(index)
                finally:
                    os._exit(5)
            children.append(child)
        for thread in threads:
            thread.join()
        failed = [child for child in children if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0]
        self.close()
        signal.setitimer(signal.ITIMER_REAL, 0)  # at its end Python gives the signal its default back, which is death
        return 4 if failed else 0


def main() -> int:
    options = flags()
    if options.inherits_nothing:
        own = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}
        # The list itself needed one, which is closed now.
        return 3 if any(Path(f"/proc/self/fd/{file}").exists() for file in own) else 0
    return Load(options).run()


if __name__ == "__main__":
    sys.exit(main())
