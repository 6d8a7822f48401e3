#!/usr/bin/env python3
"""Writes forward.json: frames of the forward protocol with the events that they hold.

Needs the packages msgpack and fluent-logger. Fluent Bit's and Docker's frames follow their documentation
(docs.fluentbit.io/manual/pipeline/outputs/forward, docs.docker.com/engine/logging/drivers/fluentd).
"""

import base64
import gzip
import json
import struct
import sys

import msgpack
from fluent import event, sender

SECONDS = 1_732_154_081
EVENT_TIME = msgpack.ExtType(0, struct.pack(">II", SECONDS, 123_456_789))


def plain(frame):
    return msgpack.packb(frame, use_bin_type=True)


def old(frame):
    """Without the types str8 and bin: Docker's and old senders' msgpack."""
    return msgpack.packb(frame, use_bin_type=False)


def logger(nanoseconds):
    """What fluent-logger itself writes."""
    return sender.FluentSender("app", nanosecond_precision=nanoseconds)._make_packet(
        "follow", event.sender.EventTime(SECONDS + 0.5) if nanoseconds else SECONDS, {"from": "userA", "n": 3})


def main():
    records = [{"log": f"line {index}", "stream": "stdout"} for index in range(3)]
    entries = [[EVENT_TIME, record] for record in records]
    packed = b"".join(plain(entry) for entry in entries)
    docker = {"container_id": "c" * 64, "container_name": "/web", "source": "stdout", "log": "GET / 200"}
    milli = SECONDS * 1000 + 123
    cases = [
        ("fluent-logger", logger(False), "app.follow", [(SECONDS * 1000, {"from": "userA", "n": 3})], None),
        ("fluent-logger, nanoseconds", logger(True), "app.follow", [(SECONDS * 1000 + 500, {"from": "userA", "n": 3})], None),
        ("Docker", old(["docker.web", SECONDS, docker]), "docker.web", [(SECONDS * 1000, docker)], None),
        ("Docker, async with chunk", plain(["docker.web", SECONDS, docker, {"chunk": "Y2h1bms="}]), "docker.web",
         [(SECONDS * 1000, docker)], "Y2h1bms="),
        ("Fluent Bit, forward mode", plain(["kube.a", entries, {"size": 3, "chunk": "p1", "fluent_signal": 0}]), "kube.a",
         [(milli, record) for record in records], "p1"),
        ("Fluent Bit, with metadata", plain(["kube.a", [[[EVENT_TIME, {"m": 1}], records[0]]], {"size": 1}]), "kube.a",
         [(milli, {"FLUENT_METADATA": {"m": 1}, **records[0]})], None),
        ("Fluentd, packed", plain(["kube.a", packed, {"size": 3, "chunk": "p2"}]), "kube.a",
         [(milli, record) for record in records], "p2"),
        ("packed in a string", old(["kube.a", packed]), "kube.a", [(milli, record) for record in records], None),
        ("compressed", plain(["kube.a", gzip.compress(packed), {"compressed": "gzip", "chunk": "p3"}]), "kube.a",
         [(milli, record) for record in records], "p3"),
        ("compressed in several members", plain(
            ["kube.a", b"".join(gzip.compress(plain(entry)) for entry in entries), {"compressed": "gzip"}]), "kube.a",
         [(milli, record) for record in records], None),
        ("all kinds of values", plain(["t", SECONDS, {
            "nil": None, "yes": True, "small": -5, "large": 2**64 - 1, "least": -(2**63), "float": 0.5, "list": [1, [2]],
            "map": {"a": {"b": "ü\n\x01"}}, 7: "number as key"}]), "t", [(SECONDS * 1000, {
                "nil": None, "yes": True, "small": -5, "large": 2**64 - 1, "least": -(2**63), "float": 0.5,
                "list": [1, [2]], "map": {"a": {"b": "ü\n\x01"}}, "7": "number as key"})], None),
        ("no record, no time", plain(["t", [[SECONDS, "text"], [0, {"a": 1}], 5]]), "t", [(None, {"a": 1})], None),
        ("forward mode without events", plain(["t", [], {"chunk": "p4"}]), "t", [], "p4"),
    ]
    vectors = [
        {"name": name, "frame": base64.b64encode(frame).decode(), "tag": tag, "chunk": chunk,
         "events": [{"time": time, "record": record} for time, record in events]}
        for name, frame, tag, events, chunk in cases]
    json.dump(vectors, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
