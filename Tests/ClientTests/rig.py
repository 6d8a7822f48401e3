"""A daemon and a collector of a test's own, and the faults that the client tests make."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("PRISM_PROGRAMS", ROOT / ".build/debug"))
DISK_MBYTE = 96
PATIENCE_SECONDS = 180
"""How long a wait may take before the machine counts as hanging; no verdict depends on it otherwise."""


def seed() -> int:
    """PRISM_SEED, or a new one. It is printed, so that a run can be repeated."""
    value = int(os.environ.get("PRISM_SEED", random.SystemRandom().randrange(1 << 31)))
    print(f"PRISM_SEED={value}", file=sys.stderr, flush=True)
    return value


def until(what: str, condition, seconds: float = PATIENCE_SECONDS, explain=lambda: "") -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s; {explain()}")
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rig:
    """`with Rig() as rig:`; everything is ended and removed at the end."""

    def __init__(self, namespaces: dict[str, str] | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="prism-clients-"))
        self.ingest = str(self.folder / "ingest.sock")
        self.control = str(self.folder / "control.sock")
        self.state = self.folder / "state"
        self.has_own_disk = False
        self.daemon: subprocess.Popen[bytes] | None = None
        self.children: list[subprocess.Popen[bytes]] = []
        self.port = free_port()
        self.namespaces = namespaces or {
            "shop": "monitorList: [{type: sample, isUploadPayload: true}]\n",
        }

    def __enter__(self) -> "Rig":
        try:
            self._configure()
            self._own_disk()
            self._spawn(
                "prism-collector", "--listen", f"127.0.0.1:{self.port}", "--key", f"main={self.folder}/main.key",
                "--state", f"{self.folder}/collector")
            self.start_daemon()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGCONT)
                child.kill()
            child.wait()
        if self.has_own_disk:
            subprocess.run(["umount", "-l", self.state], check=False)
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def _configure(self) -> None:
        for name in ("namespaces.d", "collector", "state", "spool", "crashes"):
            (self.folder / name).mkdir(mode=0o700)
        subprocess.run([PROGRAMS / "prismctl", "keys", "new", self.folder / "main.key"], check=True, capture_output=True)
        (self.folder / "prismd.yaml").write_text(
            f"ingest: {{socket: {self.ingest}}}\ncontrol: {{socket: {self.control}}}\n"
            f"crashSpool: {{folder: {self.folder}/crashes}}\n"
            f"device: {{id: client-test}}\nstate: {self.state}\nkeys: [{{id: main, file: main.key}}]\n")
        for name, text in self.namespaces.items():
            (self.folder / f"namespaces.d/{name}.yaml").write_text(
                f"url: http://127.0.0.1:{self.port}\nperiodicTimerSecond: 1\n{text}")

    def _own_disk(self) -> None:
        """A small disk for the daemon, where that is permitted."""
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MBYTE}m,mode=0700", "tmpfs", self.state], capture_output=True)
        self.has_own_disk = mounted.returncode == 0

    def _spawn(
        self, program: str, *words: str, log: str | None = None, environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{log or program}.log", "ab") as output:
            child = subprocess.Popen(
                [PROGRAMS / program, *words], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **(environment or {})})
        self.children.append(child)
        return child

    def start_daemon(self, waits: bool = True) -> None:
        self.daemon = self._spawn("prismd", "--config", str(self.folder / "prismd.yaml"))
        if waits:
            until("prismd serves", self._serves, explain=self.logs)

    def _serves(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(self.ingest)
            return True
        return False

    def end_daemon(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self.daemon
        self.daemon.send_signal(number)
        self.daemon.wait(PATIENCE_SECONDS)

    def logs(self) -> str:
        return "\n".join(
            f"{path.name}: {line}" for path in sorted(self.folder.glob("*.log"))
            for line in path.read_text(errors="replace").splitlines()[-5:])

    def fill_disk(self, spare: int) -> None:
        """Fills the daemon's disk but for `spare` bytes, as another program would."""
        free = os.statvfs(self.state)
        with open(self.state / "stranger", "wb") as file, contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(4096, free.f_bavail * free.f_bsize - spare))

    def free_disk(self) -> None:
        (self.state / "stranger").unlink(missing_ok=True)

    def status(self) -> dict:
        asked = subprocess.run(
            [PROGRAMS / "prismctl", "status", "--json"], capture_output=True,
            env={**os.environ, "PRISM_CONTROL": self.control}, timeout=PATIENCE_SECONDS)
        return json.loads(asked.stdout) if asked.returncode == 0 else {}

    def is_delivered(self) -> bool:
        """Whether nothing waits in the daemon."""
        names = self.status().get("namespaces")
        return bool(names) and all(
            kinds[kind]["ledger"].get(account, 0) == 0
            for kinds in names.values() for kind in ("meta", "payload") for account in ("waiting", "claimed"))

    def arrived(self, namespace: str = "shop", kind: str = "meta") -> dict[int, int]:
        """The numbers that the collector has, and how often."""
        return dict(Counter(report["meta"].get("n") for report in self.reports(namespace=namespace, kind=kind)))

    def reports(self, **wanted: str) -> list[dict]:
        """What the collector has, in its order: `meta` of each is a document."""
        words = [word for name, value in wanted.items() for word in (f"--{name}", value)]
        asked = subprocess.run(
            [PROGRAMS / "prism-collector", "query", "--state", self.folder / "collector", "--key",
             f"main={self.folder}/main.key", "--limit", "1000000", *words],
            capture_output=True, check=True, timeout=PATIENCE_SECONDS)
        return [json.loads(line) for line in asked.stdout.splitlines()]

    def payload(self, report: dict) -> bytes:
        """As the program gave it."""
        asked = subprocess.run(
            ["curl", "-sS", "--fail", "--unix-socket", self.folder / "collector/reader.sock",
             f"http://prism/reports/{report['id']}/payload"], capture_output=True, check=True, timeout=PATIENCE_SECONDS)
        return asked.stdout

    def crashes(self) -> list[dict]:
        """The metas of the crashes that the collector has."""
        return [report["meta"] for report in self.reports(type="appCrash", kind="meta")]


class Faults(threading.Thread):
    """Ends, stops and starves the daemon, one fault after the other, until `finish`."""

    def __init__(self, rig: Rig, number: int) -> None:
        super().__init__()
        self.rig = rig
        self.random = random.Random(number)
        self.ended = threading.Event()
        self.made: dict[str, int] = {}
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ended.wait(self.random.uniform(0.05, 0.6)):
                kinds = ["kill", "stop", "end"] + (["fill"] if self.rig.has_own_disk else [])
                kind = self.random.choice(kinds)
                self.made[kind] = self.made.get(kind, 0) + 1
                getattr(self, kind)()
        except BaseException as error:  # told by `finish`
            self.error = error

    def pause(self, most: float) -> None:
        self.ended.wait(self.random.uniform(0, most))

    def kill(self) -> None:
        self.rig.end_daemon(signal.SIGKILL)
        self.pause(1.5)
        self.rig.start_daemon()

    def end(self) -> None:
        self.rig.end_daemon(signal.SIGTERM)
        self.pause(0.5)
        self.rig.start_daemon()

    def stop(self) -> None:
        assert self.rig.daemon
        self.rig.daemon.send_signal(signal.SIGSTOP)
        self.pause(3)
        self.rig.daemon.send_signal(signal.SIGCONT)

    def fill(self) -> None:
        self.rig.fill_disk(self.random.randrange(500_000))
        self.pause(1)
        self.rig.free_disk()

    def finish(self) -> None:
        self.ended.set()
        self.join()
        if self.error:
            raise self.error
