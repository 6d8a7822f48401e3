"""Starting programs, feeding them and reading what they cost, for the scenarios."""

import contextlib
import glob
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")
ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".build" / "bench"
KEY = "00112233445566778899aabbccddeeff"


def build_tools():
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("devices", "load", "requests", "sink", "wanlink"):
        source = ROOT / "bench" / f"{name}.c"
        command = ["clang", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", TOOLS / name, source, "-lssl", "-lcrypto", "-lz"]
        subprocess.run(command, check=True)
    kafka = ROOT / "Tests/PrismCollectorTests/Outputs/Kafka/kafka-mock.c"
    subprocess.run(["clang", "-O2", "-o", TOOLS / "kafka-mock", kafka, "-lrdkafka"], check=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port):
    """Whether a program takes connections on this port of the loopback interface."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition, what, seconds=60, interval=0.01):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(interval)


class Cost:
    """What a process has used so far, from /proc."""

    def __init__(self, pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        self.cpu_seconds = (int(fields[11]) + int(fields[12])) / TICKS
        status = dict(
            line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
        self.resident_bytes = int(status["VmRSS"].split()[0]) * 1024
        self.peak_bytes = int(status["VmHWM"].split()[0]) * 1024
        io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
        self.handed_bytes = int(io["wchar"])  # to files; sockets are written to by send
        self.written_bytes = int(io["write_bytes"])  # whole pages of 4 KiB, as the kernel writes them
        self.wakeups = {task.name: self._switches(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}

    def wakeups_since(self, before):
        """Of the threads that live now; one that came and went in between is not seen."""
        return sum(count - before.wakeups.get(task, 0) for task, count in self.wakeups.items())

    @staticmethod
    def _switches(task):
        with contextlib.suppress(FileNotFoundError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    return int(line.split()[1])
        return 0


class Sink:
    """The receiver of bench/sink.c."""

    def __init__(self, expect=None, lines=False, port=None, link=None, window=64, columns=True, otlp=False):
        self.port = port or free_port()
        command = [*(link.far if link else ()), TOOLS / "sink", "--port", str(self.port), "--window", str(window)]
        command += ["--key", KEY, *(["--any"] if link else [])]
        command += ["--expect", str(expect)] if expect else []
        command += [*(["--lines"] if lines else []), *([] if columns else ["--rows"]), *(["--otlp"] if otlp else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        wait_until(self._listens, "the sink")

    def _listens(self):
        listeners = pathlib.Path(f"/proc/{self.process.pid}/net/tcp").read_text()
        return f":{self.port:04X} 00000000:0000 0A" in listeners

    def result(self, seconds=300):
        out, _ = self.process.communicate(timeout=seconds)
        return json.loads(out.splitlines()[-1])

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.result()


class Link:
    """Two network namespaces, joined by a line with delay, loss and rate (bench/wanlink.c). Needs root."""

    FAR_ADDRESS = "10.99.0.2"

    def __init__(self, round_trip_milliseconds, loss_percent, rate_mbit=0):
        self.names = [f"prism-{side}-{os.getpid()}" for side in ("near", "far")]
        self.near, self.far = (["ip", "netns", "exec", name] for name in self.names)
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        self.line = subprocess.Popen(
            [TOOLS / "wanlink", self.names[0], "wan0", self.names[1], "wan0", str(round_trip_milliseconds / 2),
             str(loss_percent), str(rate_mbit)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line.stdout.readline()
        for number, command in enumerate((self.near, self.far), start=1):
            for words in ("link set lo up", f"addr add 10.99.0.{number}/24 dev wan0", "link set wan0 up"):
                subprocess.run([*command, "ip", *words.split()], check=True)
            # As on most machines, and what the peers of the specification were measured with.
            subprocess.run([*command, *"ip route change 10.99.0.0/24 dev wan0 congctl cubic".split()], check=True)
        # The kind of the network is that of the interface with the default route.
        subprocess.run([*self.near, "ip", "route", "add", "default", "via", Link.FAR_ADDRESS], check=True)

    def __enter__(self):
        return self

    def stop(self):
        """Ends the line. - Returns: the bytes that came to it from the near side, those that it lost among them."""
        self.line.terminate()
        return json.loads(self.line.communicate()[1])["ab"]["bytes"]

    def __exit__(self, *_):
        if self.line.poll() is None:
            self.stop()
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=True)


class Daemon:
    """prismd with a folder of its own."""

    def __init__(self, programs, namespaces=("bench",), url=None, daemon_keys="", namespace_keys="", link=None,
                 types="{type: event, isUploadPayload: true}"):
        self.programs = programs
        self.command = link.near if link else ()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-"))
        self.ingest = self.folder / "ingest.sock"
        (self.folder / "namespaces.d").mkdir()
        (self.folder / "state").mkdir(mode=0o700)
        key = self.folder / "key"
        key.write_text(KEY)
        key.chmod(0o600)
        (self.folder / "prismd.yaml").write_text(
            f"ingest: {{socket: {self.ingest}}}\ncontrol: {{socket: {self.folder}/control.sock}}\n"
            f"state: {self.folder}/state\nkeys: [{{id: bench, file: {key}}}]\n"
            'network: {interfaces: {"*": unmetered}}\nlimits: {maxItem: 10000, maxBodyMByte: 64}\n' + daemon_keys)
        for name in namespaces:
            (self.folder / "namespaces.d" / f"{name}.yaml").write_text(
                f"monitorList: [{types}]\nmaxStoreMByte: 65536\n"
                + (f"url: {url}\n" if url else "") + namespace_keys)
        self.start()

    def start(self):
        began = time.monotonic()
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.command, self.programs / "prismd", "--config", self.folder / "prismd.yaml"], stderr=log,
                env=os.environ | {"SWIFT_BACKTRACE": "enable=no"})
        wait_until(self._serves, f"prismd ({self.folder}/log)")
        self.start_seconds = time.monotonic() - began
        wait_until((self.folder / "control.sock").exists, "the control socket")

    def _serves(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text())
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.ingest)) == 0

    def set_namespace(self, text, name="bench"):
        """Changes the namespace's file and waits until it holds."""
        path = self.folder / "namespaces.d" / f"{name}.yaml"
        path.write_text(path.read_text() + text)
        subprocess.run([self.programs / "prismctl", "--control", self.folder / "control.sock", "reload"], check=True,
                       stdout=subprocess.DEVNULL)

    def load(self, *arguments):
        out = subprocess.run([TOOLS / "load", "--unix", self.ingest, *map(str, arguments)], check=True,
                             capture_output=True, text=True).stdout
        return json.loads(out)

    def begin_load(self, *arguments):
        return subprocess.Popen([TOOLS / "load", "--unix", self.ingest, *map(str, arguments)], stdout=subprocess.DEVNULL)

    def stored(self, namespace):
        """Metas that it ever stored, by its own ledger."""
        return self.ledger(namespace)["stored"]

    def status(self):
        """Asks over the control socket: to start prismctl takes 12 ms of the processors that are measured."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.folder / "control.sock"))
            connection.sendall(b'{"command":"status"}\n')
            with connection.makefile() as answer:
                return json.loads(answer.readline())["status"]

    def ledger(self, namespace):
        return self.status()["namespaces"][namespace]["meta"]["ledger"]

    def wait_delivered(self, events, namespace="bench"):
        """Each look is work for the daemon that is measured: so it looks ten times a second."""
        wait_until(lambda: self.ledger(namespace)["delivered"] >= events, "the collector", seconds=300, interval=0.1)

    def records(self, table, namespace="bench"):
        """How many records a table has, by the daemon's status."""
        return self.status()["namespaces"][namespace].get("records", {}).get(table, {}).get("records", 0)

    def flush(self):
        subprocess.run([self.programs / "prismctl", "--control", self.folder / "control.sock", "flush"], check=True,
                       stdout=subprocess.DEVNULL)

    @property
    def cost(self):
        return Cost(self.process.pid)

    def forget_peak(self):
        """`peak_bytes` is that from now on."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def remove(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Database:
    """A PostgreSQL server of its own, on a Unix socket, with Debian's settings."""

    TOOLS = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [""])[-1]

    def __init__(self, folder=None):
        """`folder`: stays; the next server with it has its data."""
        self.isKept = folder is not None
        self.folder = folder or pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-"))
        if not (self.folder / "data").exists():
            self._initialize()
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            self._unprivileged("postgres", "-D", self.folder / "data", "-k", self.folder / "socket", "-c",
                               "listen_addresses="), stderr=self.log)
        wait_until(lambda: b"ready to accept connections" in (self.folder / "log").read_bytes(), "PostgreSQL")

    def _initialize(self):
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o711)
        for name in ("data", "socket"):
            (self.folder / name).mkdir(mode=0o700)
            if os.geteuid() == 0:
                shutil.chown(self.folder / name, "nobody")
        subprocess.run(
            self._unprivileged("initdb", "-D", self.folder / "data", "-U", "prism", "-A", "trust", "-E", "UTF8",
                               "--locale=C"), check=True, capture_output=True)

    @property
    def uri(self):
        return f"postgresql:///postgres?host={self.folder}/socket&user=prism"

    def _unprivileged(self, tool, *words):
        """PostgreSQL refuses root."""
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
        return [*user, f"{self.TOOLS}/{tool}", *words]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.log.close()
        if not self.isKept:
            subprocess.run(["rm", "-rf", self.folder], check=True)


class Collector:
    """prism-collector with a folder of its own, on SQLite, or on a database."""

    def __init__(self, programs, store=None):
        self.programs = programs
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-"))
        self.key = self.folder / "key"
        self.key.write_text(KEY)
        self.key.chmod(0o600)
        self.port = free_port()
        self.store = store
        self.start()

    def start(self, keys=""):
        """`keys`: lines of its file."""
        # A load is of few devices.
        (self.folder / "limits.yaml").write_text(
            f"deviceRowPerDay: 1000000000\ndeviceMBytePerDay: 1048576\nproxy: {{trusted: [127.0.0.1]}}\n{keys}")
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "prism-collector", "--listen", f"127.0.0.1:{self.port}", "--key", f"main={self.key}",
                 "--key", f"bench={self.key}", "--state", self.folder / "state", "--config", self.folder / "limits.yaml",
                 *(["--store", self.store] if self.store else [])],
                stderr=log, env=os.environ | {"SWIFT_BACKTRACE": "enable=no"})
        wait_until(self._serves, f"prism-collector ({self.folder}/log)")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _serves(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text())
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def load(self, senders, rows, packets, window, rate=0):
        """Seconds for packets of so many rows, each sender with `window` of them on their way. `rate`: events a second that
        all offer together; 0: as many as the collector takes."""
        out = subprocess.run(
            [self.programs / "collector-bench", str(self.port), self.key, *map(str, (senders, rows, packets, window, rate))],
            check=True, capture_output=True, text=True)
        return json.loads(out.stdout)["seconds"]

    def devices(self, count, interval, seconds, *more, port=None):
        """Starts so many devices, each with a connection, that post a packet of 10 rows each `interval` seconds."""
        return subprocess.Popen(
            [TOOLS / "devices", "--to", f"127.0.0.1:{port or self.port}", "--key", KEY, "--devices", str(count),
             "--interval", str(interval), "--seconds", str(seconds), *map(str, more)], stdout=subprocess.PIPE, text=True)

    def serve(self, devices, interval, seconds, strangers=0):
        """Runs devices beside connections that prove nothing. Answers the times and counts that they saw."""
        return json.loads(self.devices(devices, interval, seconds, "--strangers", strangers).communicate()[0])

    def put_records(self, table, lines, namespace="bench"):
        """Changes records of the fleet, a thousand lines in a transaction."""
        subprocess.run(
            [self.programs / "prism-collector", "record", "put", "--namespace", namespace, "--table", table, "--key",
             f"main={self.key}", "--state", self.folder / "state"],
            input="".join(line + "\n" for line in lines).encode(), check=True, stdout=subprocess.DEVNULL)

    @property
    def reader_socket(self):
        return self.folder / "state" / "reader.sock"

    @property
    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def cost(self):
        return Cost(self.process.pid)

    def metric(self, name):
        """The value of a metric, with its labels as they are written; 0: it is not there."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[:1] != "#")
        return float(lines.get(name, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        subprocess.run(["rm", "-rf", self.folder], check=True)


class Balancer:
    """haproxy with TLS before a collector: several, as one may open 20,000 files at most here."""

    CONFIGURATION = """\
global
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 60s
  option forwardfor
  retries 0
frontend packets
  bind 127.0.0.1:{port} ssl crt {folder}/both.pem
  default_backend collectors
backend collectors
  server one 127.0.0.1:{collector}
"""

    def __init__(self, collector):
        self.port, self.folder = free_port(), pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-"))
        both = self.folder / "both.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             "/CN=localhost", "-keyout", self.folder / "key.pem", "-out", self.folder / "certificate.pem"], check=True,
            capture_output=True)
        both.write_text("".join((self.folder / name).read_text() for name in ("key.pem", "certificate.pem")))
        (self.folder / "haproxy.cfg").write_text(
            self.CONFIGURATION.format(port=self.port, folder=self.folder, collector=collector.port))
        self.process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", self.folder / "haproxy.cfg"],
                                        stderr=subprocess.DEVNULL)
        wait_until(self._listens, "haproxy")

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        subprocess.run(["rm", "-rf", self.folder], check=True)


class TableReader:
    """Reads a table of records at the daemon over HTTP, page after page and all the while, and sums a field of all rows.

    What it reads between two changes has `rows` rows, or none, and the sum 0; else `faults` has it."""

    def __init__(self, daemon, table, field, rows, namespace="bench"):
        (self.table, self.field, self.rows, self.namespace) = (table, field, rows, namespace)
        self.path = str(daemon.ingest)
        (self.passes, self.faults, self.generations) = (0, [], set())
        (self.isEnded, self.error) = (False, None)
        self.thread = threading.Thread(target=self._run, daemon=True)

    def connect(self):
        connection = http.client.HTTPConnection("localhost", timeout=120)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.path)
        return connection

    def page(self, connection, after="", limit=1000, headers=None, wait=0):
        """A page as the daemon answers it, and its tag; None where nothing changed."""
        query = f"namespace={self.namespace}&limit={limit}"
        query += (f"&after={after}" if after else "") + (f"&wait={wait}" if wait else "")
        connection.request("GET", f"/v1/records/{self.table}?{query}", headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 304:
            return None, answer.headers["ETag"]
        if answer.status != 200:
            raise RuntimeError(f"{self.table}: {answer.status} {body[:200]}")
        return json.loads(body), answer.headers["ETag"]

    def _read(self, connection):
        """One pass; a table that changed meanwhile is left."""
        rows, total, after, generation = 0, 0, "", None
        while True:
            page, _ = self.page(connection, after)
            if generation not in (None, page["generation"]) or self.isEnded:
                return
            generation = page["generation"]
            rows += len(page["records"])
            total += sum(record["fields"][self.field] for record in page["records"])
            if not page["more"]:
                break
            after = page["records"][-1]["id"]
        self.passes += rows > 0
        self.generations.add(generation)
        if rows not in (0, self.rows) or total != 0:
            self.faults.append(f"generation {generation}: {rows} rows with the sum {total}")

    def _run(self):
        try:
            connection = self.connect()
            while not self.isEnded:
                self._read(connection)
                time.sleep(0.01)
        except Exception as error:  # it is told where the reader ends
            self.error = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.isEnded = True
        self.thread.join(timeout=120)
        if self.error:
            raise self.error
        if self.faults:
            raise RuntimeError(f"a reader saw half a table: {'; '.join(self.faults[:3])}")


class Tails:
    """Readers of a collector's live tail, each on a connection of its own that it keeps, as the page's EventSource does."""

    def __init__(self, collector, count):
        self.path = str(collector.reader_socket)
        self.isEnded = False
        self.counts = [0] * count
        self.threads = [threading.Thread(target=self._read, args=(place,), daemon=True) for place in range(count)]

    def _read(self, place):
        last, connection = None, None
        while not self.isEnded:
            if connection is None:
                connection = http.client.HTTPConnection("localhost")
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.connect(self.path)
            try:
                connection.request("GET", "/api/v1/tail", headers={"Last-Event-ID": last} if last else {})
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException):
                connection = None
                continue
            if answer.status != 200:
                raise RuntimeError(f"the tail answers {answer.status} {body[:200]}")
            self.counts[place] += body.count(b"event: report\n")
            last = body.rsplit(b"id: ", 1)[1].split(b"\n", 1)[0].decode() if b"id: " in body else last
            time.sleep(0.3)  # its `retry`

    @property
    def reports(self):
        return sum(self.counts)

    @property
    def silent(self):
        return self.counts.count(0)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.isEnded = True
        for thread in self.threads:
            thread.join(timeout=15)
