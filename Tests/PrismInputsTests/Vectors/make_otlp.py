#!/usr/bin/env python3
"""Writes otlp.json: OTLP requests in protobuf with the JSON that protobuf's own library makes of them.

Needs the package opentelemetry-proto. Ids are hexadecimal in OTLP's JSON, where protobuf's library writes base64.
"""

import base64
import json
import math
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as m
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as t

TIME = 1_732_154_081_123_456_789


def value(content):
    if isinstance(content, bool):
        return AnyValue(bool_value=content)
    if isinstance(content, int):
        return AnyValue(int_value=content)
    if isinstance(content, float):
        return AnyValue(double_value=content)
    if isinstance(content, bytes):
        return AnyValue(bytes_value=content)
    if isinstance(content, str):
        return AnyValue(string_value=content)
    result = AnyValue()
    if isinstance(content, list):
        result.array_value.SetInParent()
        result.array_value.values.extend(value(one) for one in content)
    elif isinstance(content, dict):
        result.kvlist_value.SetInParent()
        result.kvlist_value.values.extend(attributes(content))
    return result


def attributes(pairs):
    return [KeyValue(key=key, value=value(content)) for key, content in pairs.items()]


MIXED = {
    "string": "grün \"quoted\" \\ \n\t\x01 \U0001f600", "empty": "", "yes": True, "no": False, "zero": 0,
    "negative": -(2**63), "large": 2**63 - 1, "double": 0.1, "tiny": 1e-7, "whole": 3.0, "huge": 1.7976931348623157e308,
    "nan": math.nan, "infinite": math.inf, "minus": -math.inf, "bytes": b"\x00\xff\x10", "nothing": None,
    "list": [1, "two", [3.5, {"deep": b"x"}]], "empty list": [], "map": {"a": {"b": [True]}}, "empty map": {},
}
RESOURCE = Resource(
    attributes=attributes({"service.name": "shop", "service.version": "4.2.0", "prism.namespace": "shop", "n": 7}),
    dropped_attributes_count=2)
SCOPE = InstrumentationScope(name="app.cart", version="1.0", attributes=attributes({"k": "v"}), dropped_attributes_count=1)

LOGS = ExportLogsServiceRequest(resource_logs=[
    ResourceLogs(resource=RESOURCE, schema_url="https://opentelemetry.io/schemas/1.27.0", scope_logs=[
        ScopeLogs(scope=SCOPE, schema_url="https://example.org/scope", log_records=[
            LogRecord(
                time_unix_nano=TIME, observed_time_unix_nano=TIME + 1, severity_number=9, severity_text="INFO",
                body=value("started"), attributes=attributes(MIXED), dropped_attributes_count=3, flags=1,
                trace_id=bytes(range(16)), span_id=bytes(range(8)), event_name="order.paid"),
            LogRecord(
                time_unix_nano=TIME, severity_number=17, body=value({"text": "failed", "codes": [1, 2]}),
                attributes=attributes({
                    "exception.type": "KeyError", "exception.message": "'price'",
                    "exception.stacktrace": "Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'price'\n"})),
            LogRecord(),
        ])]),
    ResourceLogs(scope_logs=[ScopeLogs(log_records=[LogRecord(observed_time_unix_nano=5)])]),
    ResourceLogs(),
])

TRACES = ExportTraceServiceRequest(resource_spans=[
    t.ResourceSpans(resource=RESOURCE, scope_spans=[t.ScopeSpans(scope=SCOPE, spans=[
        t.Span(
            trace_id=bytes(range(16)), span_id=b"\xff" * 8, trace_state="a=b", parent_span_id=bytes(8), flags=257,
            name="GET /cart", kind=2, start_time_unix_nano=TIME, end_time_unix_nano=TIME + 10**9,
            attributes=attributes(MIXED), dropped_attributes_count=1, dropped_events_count=2, dropped_links_count=3,
            events=[t.Span.Event(time_unix_nano=TIME, name="exception", attributes=attributes({"a": 1})), t.Span.Event()],
            links=[t.Span.Link(trace_id=bytes(16), span_id=bytes(8), trace_state="x=y", attributes=attributes({"l": 2}), flags=1)],
            status=t.Status(code=2, message="timed out")),
        t.Span(name="second"),
    ])])])


def exemplar(**number):
    return m.Exemplar(
        filtered_attributes=attributes({"user": "u1"}), time_unix_nano=TIME, span_id=bytes(range(8)),
        trace_id=bytes(range(16)), **number)


POINT = dict(attributes=attributes({"route": "/cart"}), start_time_unix_nano=TIME, time_unix_nano=TIME + 60)
METRICS = ExportMetricsServiceRequest(resource_metrics=[
    m.ResourceMetrics(resource=RESOURCE, scope_metrics=[m.ScopeMetrics(scope=SCOPE, metrics=[
        m.Metric(name="g", description="d", unit="By", metadata=attributes({"m": 1}), gauge=m.Gauge(data_points=[
            m.NumberDataPoint(as_double=-0.5, flags=1, **POINT), m.NumberDataPoint(as_int=-7, exemplars=[exemplar(as_int=9)], **POINT)])),
        m.Metric(name="s", sum=m.Sum(aggregation_temporality=2, is_monotonic=True, data_points=[
            m.NumberDataPoint(as_int=2**62, **POINT)])),
        m.Metric(name="h", histogram=m.Histogram(aggregation_temporality=1, data_points=[m.HistogramDataPoint(
            count=6, sum=1.5, bucket_counts=[1, 2, 3], explicit_bounds=[0.5, 1.0], min=0.0, max=9.25,
            exemplars=[exemplar(as_double=0.25)], **POINT), m.HistogramDataPoint(count=0)])),
        m.Metric(name="e", exponential_histogram=m.ExponentialHistogram(
            aggregation_temporality=2, data_points=[m.ExponentialHistogramDataPoint(
                count=5, sum=-2.5, scale=-3, zero_count=1, zero_threshold=1e-9, min=-4.0, max=4.0,
                positive=m.ExponentialHistogramDataPoint.Buckets(offset=-2, bucket_counts=[1, 300]),
                negative=m.ExponentialHistogramDataPoint.Buckets(offset=4), exemplars=[exemplar(as_double=1.0)], **POINT)])),
        m.Metric(name="q", summary=m.Summary(data_points=[m.SummaryDataPoint(
            count=3, sum=6.0, quantile_values=[m.SummaryDataPoint.ValueAtQuantile(quantile=0.5, value=2.0)], **POINT)])),
        m.Metric(name="nothing"),
    ])])])

IDS = {"traceId", "spanId", "parentSpanId"}


def with_hex_ids(node):
    if isinstance(node, list):
        return [with_hex_ids(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: base64.b64decode(content).hex() if key in IDS else with_hex_ids(content) for key, content in node.items()}


def main():
    vectors = []
    for signal, message in ("logs", LOGS), ("traces", TRACES), ("metrics", METRICS):
        text = json_format.MessageToDict(message, use_integers_for_enums=True)
        vectors.append({
            "signal": signal, "protobuf": base64.b64encode(message.SerializeToString()).decode(),
            "request": with_hex_ids(text)})
    json.dump(vectors, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
