"""Programs of another commit and those of this one work together: forwards, back, and with reports that wait.

usage: PRISM_OLD=FOLDER PRISM_NEW=FOLDER python3 -m unittest test_upgrade      each with prismd, prismctl, prism-collector

scripts/test-upgrade builds both and runs this. Standard library only.
"""

import hashlib
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

PROGRAMS = {"old": os.environ["PRISM_OLD"], "new": os.environ["PRISM_NEW"]}
# Collectors before `reader:` print each new report. They and their daemons speak version 1 of packets, which no newer program
# takes: between an old and a new one reports wait.
PRINTS = "reader" not in subprocess.run(
    [f"{PROGRAMS['old']}/prism-collector", "--help"], capture_output=True, text=True, check=True).stdout
PATIENCE = float(os.environ.get("PRISM_PATIENCE", "60"))
COUNT = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(what, check):
    end = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come in {PATIENCE} s")
        time.sleep(0.1)


class Route:
    """A daemon and collectors under one address; each collector has a state of its own."""

    def __init__(self, folder):
        self.folder, self.port, self.sent = folder, free_port(), 0
        self.daemon = self.collector = None
        self.readers = {}
        os.makedirs(f"{folder}/daemon/state", 0o700)
        os.makedirs(f"{folder}/daemon/namespaces.d")
        self.write("daemon/main.key", "00112233445566778899aabbccddeeff\n", 0o600)
        self.write("main.key", "00112233445566778899aabbccddeeff\n", 0o600)
        self.write("daemon/prismd.yaml", f"""
ingest: {{socket: {folder}/ingest.sock}}
control: {{socket: {folder}/control.sock}}
state: {folder}/daemon/state
keys: [{{id: main, file: main.key}}]
device: {{id: till-14}}
""")
        self.write("daemon/namespaces.d/shop.yaml", f"""
url: http://127.0.0.1:{self.port}
keyId: main
periodicTimerSecond: 1
monitorList: [{{type: order}}]
""")

    def write(self, name, text, mode=0o644):
        path = f"{self.folder}/{name}"
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def start(self, name, version, arguments, log=None):
        with open(f"{self.folder}/{log or name}.log", "ab") as log:
            return subprocess.Popen(
                [f"{PROGRAMS[version]}/{name}", *arguments], stdout=log, stderr=log, umask=0o077,
                env={**os.environ, "SWIFT_BACKTRACE": "enable=no"})

    def log(self, name):
        with open(f"{self.folder}/{name}.log", errors="replace") as file:
            return file.read()[-2000:]

    def start_daemon(self, version):
        self.daemon = self.start("prismd", version, ["--config", f"{self.folder}/daemon/prismd.yaml"])
        self.version = version
        wait("the ingest socket", lambda: self.daemon.poll() is not None or self.answers())
        if self.daemon.poll() is not None:
            raise AssertionError("prismd ended: " + self.log("prismd"))

    def answers(self):
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(f"{self.folder}/ingest.sock")
            return True
        except OSError:
            return False

    def start_collector(self, version, state=None):
        state = state or version
        os.makedirs(f"{self.folder}/{state}", 0o700, exist_ok=True)
        reader = self.readers.setdefault(state, free_port())
        self.prints = PRINTS and version == "old"
        end = "" if self.prints else f"reader: {{listen: 127.0.0.1:{reader}}}\n"
        self.write("collector.yaml", f"""
listen: 127.0.0.1:{self.port}
state: {self.folder}/{state}
keys: [{{id: main, file: main.key}}]
{end}""")
        options = ["--print"] if self.prints else []
        self.collector = self.start(
            "prism-collector", version, ["--config", f"{self.folder}/collector.yaml", *options], f"{state}-collector")
        self.state = state
        wait("the collector", lambda: self.collector.poll() is not None or self.is_ready())
        if self.collector.poll() is not None:
            raise AssertionError("prism-collector ended: " + self.log(f"{state}-collector"))

    def is_ready(self):
        try:
            path = "healthz" if self.prints else "readyz"
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self, name):
        process = getattr(self, name)
        if process:
            process.terminate()
            process.wait(30)
        setattr(self, name, None)

    def send(self):
        lines = b"".join(
            json.dumps({"namespace": "shop", "type": "order", "meta": {"n": self.sent + n}}).encode() + b"\n"
            for n in range(COUNT))
        self.sent += COUNT
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{self.folder}/ingest.sock")
            connection.settimeout(PATIENCE)
            connection.sendall(lines)
            answers = connection.makefile("rb")
            for _ in range(COUNT):
                answer = json.loads(answers.readline())
                assert answer["status"] == "stored", answer

    def numbers(self):
        """What the collector that runs has."""
        if self.prints:
            with open(f"{self.folder}/{self.state}-collector.log") as file:
                return [json.loads(line)["meta"]["n"] for line in file if line.startswith('{"') and line.endswith("}\n")]
        found, after = [], 0
        while True:
            url = f"http://127.0.0.1:{self.readers[self.state]}/reports?namespace=shop&limit=1000&after={after}"
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                page = json.load(answer)["reports"]
            found += [report["meta"]["n"] for report in page]
            if len(page) < 1000:
                return found
            after = page[-1]["id"]

    def dead(self):
        return self.prismctl("dead", "list")

    def prismctl(self, *words):
        return subprocess.run(
            [f"{PROGRAMS[self.version]}/prismctl", *words],
            env={**os.environ, "PRISM_CONTROL": f"{self.folder}/control.sock"},
            capture_output=True, text=True, check=True).stdout.strip()


class UpgradeTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="prism-upgrade-")
        self.route = Route(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        for name in ("daemon", "collector"):
            self.addCleanup(self.route.stop, name)

    def arrives(self, numbers):
        """All of them, each once, and nothing is a dead letter."""
        wait(f"{len(numbers)} reports", lambda: len(self.route.numbers()) >= len(numbers))
        self.assertEqual(sorted(self.route.numbers()), list(numbers))
        self.assertEqual(self.route.dead(), "no dead letters")

    def arrives_or_waits(self, numbers, is_pair):
        """Whether they arrive. A pair of an old and a new program that share no version of packets keeps them."""
        if is_pair or not PRINTS:
            self.arrives(numbers)
            return True
        wait("a refused attempt", lambda: "last failure" in self.route.prismctl("status"))
        self.assertEqual(self.route.dead(), "no dead letters")
        return False

    def check_daemon_upgrade(self, collector):
        route = self.route
        route.start_daemon("old")
        route.start_collector(collector)
        route.send()
        self.arrives_or_waits(range(COUNT), collector == "old")
        route.stop("collector")
        route.send()
        route.stop("daemon")
        route.start_daemon("new")
        route.start_collector(collector)
        route.send()
        if self.arrives_or_waits(range(3 * COUNT), collector == "new"):
            return
        route.stop("collector")
        route.start_collector("new")
        self.arrives(range(COUNT, 3 * COUNT))

    def test_daemon_first(self):
        """The daemon is upgraded before the collector, with reports that wait."""
        self.check_daemon_upgrade("old")

    def test_collector_first(self):
        """The collector is newer than the daemon, which is upgraded later, with reports that wait."""
        self.check_daemon_upgrade("new")

    def test_collector_replaced(self):
        """Reports that the old collector did not take reach the new one, each once."""
        route = self.route
        for daemon in ("old",) if PRINTS else ("old", "new"):
            route.start_daemon(daemon)
            first = route.sent
            route.start_collector("old", f"old-{daemon}")
            route.send()
            self.arrives(range(first, first + COUNT))
            route.stop("collector")
            route.send()
            route.start_collector("new", f"new-{daemon}")
            if PRINTS:
                self.arrives_or_waits((), is_pair=False)
                route.stop("daemon")
                route.start_daemon("new")
            self.arrives(range(first + COUNT, first + 2 * COUNT))
            route.stop("collector")
            route.stop("daemon")

    def test_back(self):
        """A step back loses nothing: the old daemon either goes on with the reports, or leaves them for the new one."""
        route = self.route
        route.start_daemon("new")
        route.send()
        route.stop("daemon")
        try:
            route.start_daemon("old")
            route.start_collector("new")
            self.arrives(range(COUNT))
        except AssertionError as fault:
            self.assertIn("prismd ended", str(fault))
            route.start_daemon("new")
            route.start_collector("new")
            self.arrives(range(COUNT))

    def test_database_of_the_old_collector(self):
        """The new collector goes on with it, or refuses it in words and leaves it as it is."""
        route = self.route
        route.start_daemon("old")
        route.start_collector("old")
        route.send()
        self.arrives(range(COUNT))
        route.collector.kill()  # so that its last commits are in the log
        route.stop("collector")
        before = self.digests("old")
        try:
            route.start_collector("new", "old")
            self.arrives(range(COUNT))
        except AssertionError as fault:
            self.assertIn("version", str(fault))
            self.assertEqual(self.digests("old"), before)
            route.start_collector("old", "old")
            self.arrives(range(COUNT))

    def digests(self, state):
        """Of the files that hold reports."""
        result = {}
        for name in ("collector.db", "collector.db-wal"):
            with open(f"{self.folder.name}/{state}/{name}", "rb") as file:
                result[name] = hashlib.sha256(file.read()).hexdigest()
        return result


if __name__ == "__main__":
    unittest.main()
