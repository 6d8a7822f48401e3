"""What the checks with programs of others share: the OpenTelemetry SDK from PyPI, a program that uses it, a daemon."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.environ.get("PRISM_SDK_TOOLS", os.path.join(ROOT, ".build", "sdk-tools"))
REQUIREMENTS = os.path.join(ROOT, "Tests", "SDK", "requirements.txt")

# Exports spans, log records and a metric. Arguments: the run's name, how many, "gzip" or not, further backends.
EXPORT = """
import logging, os, sys
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

logging.basicConfig(level=logging.ERROR)
run, count, isGzip = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "gzip"
compression = Compression.Gzip if isGzip else Compression.NoCompression
resource = Resource.create({"service.name": "till", "run": run})

# Where everything goes: prism, and what it is compared with.
bases = [os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]] + sys.argv[4:]

traces = TracerProvider(resource=resource)
for base in bases:
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(base + "/v1/traces", compression=compression)))
tracer = traces.get_tracer("shop", "1.0")
for number in range(count):
    with tracer.start_as_current_span(f"{run} span {number}") as span:
        span.set_attributes({"n": number, "ratio": number / 3, "tags": ["a", "b"]})
        span.add_event("paid", {"cents": number})

logs = LoggerProvider(resource=resource)
for base in bases:
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(base + "/v1/logs", compression=compression)))
logger = logs.get_logger("shop")
for number in range(count):
    logger.emit(body=f"{run} log {number}", severity_number=SeverityNumber.INFO, attributes={"n": number, "text": "ä\\n"})

readers = [
    PeriodicExportingMetricReader(
        OTLPMetricExporter(base + "/v1/metrics", compression=compression), export_interval_millis=3600000)
    for base in bases]
metrics = MeterProvider(resource=resource, metric_readers=readers)
metrics.get_meter("shop").create_counter(f"{run}.sales").add(count)
for provider in (traces, logs, metrics):
    provider.shutdown()
"""


def tools():
    python = os.path.join(TOOLS, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
        result = subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS])
        if result.returncode != 0:
            shutil.rmtree(TOOLS)
            sys.exit("PyPI can't be reached; it needs what is in Tests/SDK/requirements.txt")
    return python


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Daemon:
    """A prismd in a folder of its own, with the inputs of OTLP, Fluent forward, statsd and syslog."""

    def __init__(self, binaries, python, namespaces, more=""):
        self.binaries, self.python, self.child = binaries, python, None
        self.folder = tempfile.mkdtemp(prefix="prism-sdk-")
        self.otlp, self.forward, self.statsd, self.syslog = free_port(), free_port(), free_port(), free_port()
        self.environment = dict(
            os.environ, PRISM_CONTROL=self.path("control.sock"), SWIFT_BACKTRACE="enable=no",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{self.otlp}")
        os.mkdir(self.path("state"), 0o700)
        os.mkdir(self.path("namespaces.d"))
        self.write("prismd.yaml", f"""\
ingest: {{socket: {self.path("ingest.sock")}}}
control: {{socket: {self.path("control.sock")}}}
state: {self.path("state")}
otlp: {{listen: 127.0.0.1:{self.otlp}}}
forward: {{listen: 127.0.0.1:{self.forward}, socket: {self.path("forward.sock")}}}
statsd: {{listen: 127.0.0.1:{self.statsd}, socket: {self.path("statsd.sock")}}}
syslog: {{listen: 127.0.0.1:{self.syslog}, socket: {self.path("log.sock")}}}
{more.format(folder=self.folder)}""")
        for name, text in namespaces.items():
            self.write(f"namespaces.d/{name}.yaml", text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(text)

    def spawn(self, name, arguments, port):
        """Starts a program of prism, and waits until it serves."""
        with open(self.path("log"), "a") as log:
            child = subprocess.Popen(
                [os.path.join(self.binaries, name), *arguments], stdout=log, stderr=log, env=self.environment)
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return child
            except OSError:
                if child.poll() is not None or time.monotonic() > end:
                    sys.exit(f"{name} does not start: " + open(self.path("log")).read()[-2000:])
                time.sleep(0.05)

    def start(self):
        self.child = self.spawn("prismd", ["--config", self.path("prismd.yaml")], self.otlp)

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def run(self, script, *arguments):
        return subprocess.Popen([self.python, "-c", script, *map(str, arguments)], env=self.environment)

    def export_while_killed(self, *arguments):
        """The exporter sends again what was not answered; the daemon is killed meanwhile."""
        exporter = self.run(EXPORT, *arguments)
        for _ in range(3):
            time.sleep(0.4)
            self.kill()
            self.start()
        assert exporter.wait() == 0

    def ctl(self, *arguments):
        return subprocess.run(
            [os.path.join(self.binaries, "prismctl"), *arguments], env=self.environment, check=True,
            capture_output=True).stdout

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
