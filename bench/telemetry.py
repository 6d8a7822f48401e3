"""Fills a store with events as bench/load sends them, and with logs, spans and metrics as they come over OTLP."""

import itertools
import json
import random
import sqlite3
import time
import uuid

from blocks import Packet, block

(ROWS_PER_PACKET, ROWS_PER_BLOCK, DEVICES) = (100, 16_000, 50)
MODELS = ["gateway-200", "kiosk-7", "terminal-x2", "camera-4k", "meter-nb2", "panel-15"]
PAGES = ["/home/feed", "/home/detail", "/cart", "/checkout/pay", "/settings/network", "/profile"]
COMMON = {"APP_NAME": "shop-till", "APP_VERSION": "2.4.0", "APP_PACKAGE_NAME": "/usr/bin/shop-till", "SYS_DEVICE_ID": "till-000001",
          "SYS_ARCHITECTURE": "x86_64", "SYS_SYSTEM_VERSION": "Debian GNU/Linux 12 (bookworm)", "SYS_KERNEL": "6.1.0-27-amd64"}


def attribute(key, **value):
    return {"key": key, "value": value}


class Telemetry:
    def __init__(self, seed=5):
        self.random = random.Random(seed)
        self.now = int(time.time() * 1000) - 3_600_000

    def hexadecimal(self, digits):
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def event(self, number, nanoseconds):
        draw = self.random
        return "event", {
            "seq": number, "uid": self.hexadecimal(16), "dev": {"model": draw.choice(MODELS), "os": "debian-12.7"},
            "page": draw.choice(PAGES), "ms": draw.randrange(8000), "mem": draw.randrange(100, 356), "cpu": draw.randrange(1000) / 10, "fps": draw.randrange(30, 61),
            "code": 200, "ok": True, "rid": self.hexadecimal(16), "msg": "cache miss, fetched from origin"}

    def otlp(self, number, nanoseconds):
        """40 records of one kind after the other, of three services that take turns."""
        service, time = number // 200 % 3, str(nanoseconds)
        attributes = [attribute("http.method", stringValue="GET"), attribute("http.status", intValue="200"),
                      attribute("ratio", doubleValue=self.random.random()), attribute("ok", boolValue=True),
                      attribute("url", stringValue=f"https://shop.example/cart/{self.random.randrange(10**6)}")]
        ids = {"traceId": self.hexadecimal(32), "spanId": self.hexadecimal(16)}
        type, members = [
            ("otel.log", {"timeUnixNano": time, "observedTimeUnixNano": time, "severityNumber": 9, "severityText": "INFO",
                          "body": {"stringValue": f"request {number} finished"}, "attributes": attributes, **ids, "flags": 1}),
            ("otel.span", {**ids, "parentSpanId": self.hexadecimal(16), "name": "GET /cart", "kind": 2, "startTimeUnixNano": time,
                           "endTimeUnixNano": time, "attributes": attributes, "status": {"code": 1},
                           "events": [{"timeUnixNano": time, "name": "retry", "attributes": attributes[:2]}]}),
            ("otel.metric", {"name": "http.duration", "unit": "ms", "histogram": {"aggregationTemporality": 2, "dataPoints": [
                {"attributes": attributes[:2], "startTimeUnixNano": time, "timeUnixNano": time, "count": "10", "sum": 123.5,
                 "bucketCounts": ["1", "2", "3", "4"], "explicitBounds": [10, 20.5, 30], "min": 1.5, "max": 33}]}}),
        ][number // 40 % 3]
        resource = [attribute("service.name", stringValue=f"shop-{service}"), attribute("host.name", stringValue=f"host-{service}")]
        return type, members | {"OTEL_RESOURCE": {"attributes": resource}, "OTEL_SCOPE": {"name": "shop", "version": "1.0"}}

    def packets(self, events, records):
        kinds = [(self.event, "bench", number) for number in range(events)] + [(self.otlp, "otel", number) for number in range(records)]
        for first in range(0, len(kinds), ROWS_PER_PACKET):
            received, reports = self.now + first // ROWS_PER_PACKET, []
            for make, namespace, number in kinds[first:first + ROWS_PER_PACKET]:
                type, members = make(number, received * 1_000_000 + number % 1_000_000)
                head = {"MONITOR_TYPE": type, "REPORT_ID": str(uuid.UUID(int=self.random.getrandbits(128))), "CREATE_TIME": received}
                reports.append((type, received, json.dumps(members | head | COMMON, separators=(",", ":")), None))
            id = uuid.UUID(int=received << 80 | 7 << 76 | 2 << 62 | first)
            yield Packet(f"till-{first // ROWS_PER_PACKET % DEVICES:06d}", namespace, "meta", id, received, reports)


def fill(state, events, records):
    """Into the `collector.db` that a collector has made, and that no collector has open. Both counts are multiples of a packet's
    rows."""
    database, first = sqlite3.connect(f"{state}/collector.db"), 1
    packets = Telemetry().packets(events, records)
    while packs := list(itertools.islice(packets, ROWS_PER_BLOCK // ROWS_PER_PACKET)):
        row, _ = block(first, packs)
        database.execute(f"INSERT INTO blocks VALUES ({','.join('?' * len(row))})", row)
        first += row[2]
    database.execute("INSERT OR IGNORE INTO days VALUES (0, 1)")
    database.commit()
    database.close()
