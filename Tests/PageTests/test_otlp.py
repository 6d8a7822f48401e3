"""OTLP through prism and out again: what a backend gets is what a program sent, by another implementation of the protocol."""

import http.server
import pathlib
import threading
import unittest
import urllib.request

import daemon
import rig
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

MESSAGES = {"/v1/logs": logs.ExportLogsServiceRequest, "/v1/traces": traces.ExportTraceServiceRequest, "/v1/metrics": metrics.ExportMetricsServiceRequest}
ANSWERS = {"/v1/logs": logs.ExportLogsServiceResponse, "/v1/traces": traces.ExportTraceServiceResponse, "/v1/metrics": metrics.ExportMetricsServiceResponse}


class Backend(http.server.BaseHTTPRequestHandler):
    received = []

    def do_POST(self):
        request = MESSAGES[self.path]()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.received.append((self.path, self.headers["Content-Type"], request))
        body = ANSWERS[self.path]().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def attribute(list_, key, **value):
    one = list_.add()
    one.key = key
    for name, content in value.items():
        setattr(one.value, name, content)


def log_request():
    request = logs.ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    attribute(resource.resource.attributes, "service.name", string_value="till")
    scope = resource.scope_logs.add()
    scope.scope.name, scope.scope.version = "shop", "1.0"
    record = scope.log_records.add()
    record.time_unix_nano, record.observed_time_unix_nano = 1_732_154_081_000_000_001, 1_732_154_082_000_000_000
    record.severity_number, record.severity_text, record.flags = 13, "WARN", 1
    record.body.string_value = "the pägination is wrong"
    record.trace_id, record.span_id = bytes(range(16)), bytes(range(8))
    attribute(record.attributes, "n", int_value=-(2**53))
    attribute(record.attributes, "x", double_value=1.5)
    attribute(record.attributes, "ok", bool_value=False)
    attribute(record.attributes, "raw", bytes_value=b"\x00\xff")
    inner = record.attributes.add()
    inner.key = "list"
    inner.value.array_value.values.add().string_value = "a"
    return request


def trace_request():
    request = traces.ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.parent_span_id = bytes(range(16)), bytes(range(8)), bytes(range(8, 16))
    span.name, span.kind, span.start_time_unix_nano, span.end_time_unix_nano = "pay", 3, 1_732_154_081_000_000_000, 1_732_154_081_000_000_500
    event = span.events.add()
    event.name, event.time_unix_nano = "retry", 1_732_154_081_000_000_100
    span.links.add().trace_id = bytes(range(1, 17))
    span.status.code, span.status.message = 1, "fine"
    return request


def metric_request():
    request = metrics.ExportMetricsServiceRequest()
    list_ = request.resource_metrics.add().scope_metrics.add().metrics
    metric = list_.add()
    metric.name, metric.unit = "sales", "1"
    metric.sum.is_monotonic, metric.sum.aggregation_temporality = True, 2
    point = metric.sum.data_points.add()
    point.as_int, point.time_unix_nano = -7, 1_732_154_081_000_000_000
    metric = list_.add()
    metric.name = "wait"
    point = metric.histogram.data_points.add()
    point.count, point.sum, point.time_unix_nano = 3, 4.25, 1_732_154_081_000_000_000
    point.bucket_counts.extend([1, 2])
    point.explicit_bounds.extend([0.5])
    metric.histogram.aggregation_temporality = 1
    metric = list_.add()
    metric.name = "size"
    point = metric.exponential_histogram.data_points.add()
    point.scale, point.zero_count, point.count, point.time_unix_nano = -2, 1, 3, 1_732_154_081_000_000_000
    point.positive.offset = -3
    point.positive.bucket_counts.extend([1, 300])
    metric.exponential_histogram.aggregation_temporality = 2
    return request


def records(request):
    """Each record with its resource and its scope, in any grouping."""
    found = []
    for resource in next(iter(request.ListFields()))[1]:
        for scope in next(value for field, value in resource.ListFields() if field.name.startswith("scope_")):
            for record in next(value for field, value in scope.ListFields() if field.name in ("log_records", "spans", "metrics")):
                found.append((resource.resource.SerializeToString(deterministic=True), scope.scope.SerializeToString(deterministic=True),
                              record.SerializeToString(deterministic=True)))
    return found


class RoundTripTests(unittest.TestCase):
    def test_records_come_out_as_they_went_in(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        collector = rig.Collector(senders=True)
        path = pathlib.Path(collector.path("collector.yaml"))
        path.write_text(path.read_text().replace(f"{{ndjson: {collector.path('out')}}}", f'{{otlp: "http://127.0.0.1:{server.server_port}"}}'))
        collector.start()
        port = daemon.free_port()
        types = "periodicTimerSecond: 1\nmonitorList: [{type: otel.log}, {type: otel.span}, {type: otel.metric}]\n"
        one = daemon.Daemon(collector.folder, "otlp", collector.port, f"otlp: {{listen: '127.0.0.1:{port}', namespace: otel}}", {"otel": ""})
        file = pathlib.Path(one.path("namespaces.d/otel.yaml"))
        file.write_text(file.read_text().replace("monitorList: [{type: sample}]\n", "").replace("periodicTimerSecond: 1\n", types))
        try:
            one.start()
            sent = {"/v1/logs": log_request(), "/v1/traces": trace_request(), "/v1/metrics": metric_request()}
            for place, request in sent.items():
                post = urllib.request.Request(f"http://127.0.0.1:{port}{place}", data=request.SerializeToString(), headers={"Content-Type": "application/x-protobuf"})
                with urllib.request.urlopen(post) as answer:
                    self.assertEqual(answer.status, 200)
            wanted = {place: sorted(records(request)) for place, request in sent.items()}
            got = lambda: {place: sorted(sum((records(request) for path, _, request in Backend.received if path == place), [])) for place in sent}
            try:
                daemon.wait_until("all records at the backend", lambda: got() == wanted, seconds=30)
            except TimeoutError:
                self.maxDiff = None
                self.assertEqual(got(), wanted)
            self.assertEqual({kind for _, kind, _ in Backend.received}, {"application/x-protobuf"})
        finally:
            one.stop()
            collector.stop()
            server.shutdown()
            server.server_close()


if __name__ == "__main__":
    unittest.main()
