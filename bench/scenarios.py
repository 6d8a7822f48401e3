"""S1 to S13 and S15 to S17: each is a function that runs once and answers its figures by name."""

import contextlib
import json
import subprocess
import threading
import time

import telemetry
from harness import (
    TOOLS, Balancer, Collector, Daemon, Database, Link, Sink, TableReader, Tails, accepts, free_port, wait_until)


def ingest(programs, events, *load, **daemon):
    """S1: a stream over one connection, answered cumulatively after the sync, the collector down."""
    with Daemon(programs, **daemon) as prism:
        run = prism.load("stream", "--events", events, *load)
        cost = prism.cost
        return {
            "eventsPerSecond": events / run["seconds"],
            "cpuSecondsPerMillion": cost.cpu_seconds * 1e6 / events,
            "handedBytesPerEvent": cost.handed_bytes / events,
            "peakMiB": cost.peak_bytes / 2**20,
        }


def answers(programs, connections, seconds):
    """S1b: so many connections, each sends one event and waits for its answer; once the log has its size, 16 MiB."""
    with Daemon(programs) as prism:
        def lockstep(seconds):
            return prism.load("lockstep", "--connections", connections, "--seconds", seconds, "--events", 10_000_000)

        lockstep(1)
        run = lockstep(seconds)
        return {
            "answersPerSecond": run["events"] / run["seconds"],
            "p50Milliseconds": run["p50Seconds"] * 1e3,
            "p99Milliseconds": run["p99Seconds"] * 1e3,
        }


def beside_flood(programs, seconds, drains):
    """S1c: one connection sends one event and waits for its answer, while another one sends as fast as it can."""
    sink = Sink() if drains else None
    with Daemon(programs, url=f"http://127.0.0.1:{sink.port}" if sink else None,
                namespace_keys="periodicTimerSecond: 1\n") as prism:
        flood = prism.begin_load("stream", "--events", 100_000_000)
        wait_until(lambda: prism.stored("bench") > 500_000, "the flood", interval=0.1)
        run = prism.load("lockstep", "--connections", 1, "--seconds", seconds, "--events", 10_000_000)
        assert flood.poll() is None, "the flood ended before the measurement"
        flood.kill()
        flood.wait()
        if sink:
            sink.stop()
        return {"p50Milliseconds": run["p50Seconds"] * 1e3, "p99Milliseconds": run["p99Seconds"] * 1e3}


def end_to_end(programs, events, rows_per_packet, columns=True):
    """S2: in at the socket, out at the sink, both at once."""
    sink = Sink(expect=events, columns=columns)
    keys = f"maxItem: {rows_per_packet}\nperiodicTimerSecond: 1\nmaxBodyMByte: 16\n"
    with Daemon(programs, url=f"http://127.0.0.1:{sink.port}", namespace_keys=keys) as prism:
        began = time.monotonic()
        prism.load("stream", "--events", events)
        received = sink.result()
        seconds = time.monotonic() - began
        cost = prism.cost
        return {
            "eventsPerSecond": events / seconds,
            "cpuSecondsPerMillion": cost.cpu_seconds * 1e6 / events,
            "wireBytesPerEvent": received["bytes"] / events,
            "handedBytesPerEvent": cost.handed_bytes / events,
            "peakMiB": cost.peak_bytes / 2**20,
        }


def over_link(programs, events, round_trip_milliseconds, loss_percent=0, rate_mbit=0, namespace_keys=""):
    """S9: in at the socket, out over a line with delay and loss, to a receiver that takes several packets at a time."""
    with Link(round_trip_milliseconds, loss_percent, rate_mbit) as link:
        sink = Sink(expect=events, link=link, window=64)
        keys = f"periodicTimerSecond: 1\n{namespace_keys}"
        url = f"http://{Link.FAR_ADDRESS}:{sink.port}"
        with Daemon(programs, url=url, daemon_keys="allowPlain: true\n", namespace_keys=keys, link=link) as prism:
            began = time.monotonic()
            prism.load("stream", "--events", events)
            received = sink.result()
            return {
                "eventsPerSecond": events / (time.monotonic() - began),
                "lineEventsPerSecond": events / received["seconds"],
                "eventsPerPacket": received["requests"] and events / received["requests"],
                "cpuSecondsPerMillion": prism.cost.cpu_seconds * 1e6 / events,
                "payloadShare": received["bytes"] / link.stop(),
                "wireBytesPerEvent": received["bytes"] / events,
            }


def backlog(programs, events):
    """S3: so many rows wait; the daemon starts again, and then drains them."""
    with Daemon(programs, namespace_keys="maxItem: 1000\nperiodicTimerSecond: 1\nmaxBodyMByte: 16\n") as prism:
        prism.load("stream", "--events", events)
        prism.stop()
        prism.start()
        sink = Sink(expect=events)
        before = prism.cost.cpu_seconds
        prism.set_namespace(f"url: http://127.0.0.1:{sink.port}\n")
        received = sink.result(seconds=1200)
        return {
            "eventsPerSecond": events / received["seconds"],
            "cpuSecondsPerMillion": (prism.cost.cpu_seconds - before) * 1e6 / events,
            "startMilliseconds": prism.start_seconds * 1e3,
            "peakMiB": prism.cost.peak_bytes / 2**20,
        }


def idle(programs, seconds, namespaces=4):
    """S4: configured, with timers and a collector, and nothing to do."""
    names = [f"shop{number}" for number in range(namespaces)]
    with Daemon(programs, namespaces=names, url="http://127.0.0.1:9") as prism:
        time.sleep(30)  # what starts once has ended, and what an idle daemon does every 10 s has been done
        before, began = prism.cost, time.monotonic()
        time.sleep(seconds)
        after, passed = prism.cost, time.monotonic() - began
        return {
            "residentMiB": after.resident_bytes / 2**20,
            "cpuPercent": (after.cpu_seconds - before.cpu_seconds) / passed * 100,
            "wakeupsPerSecond": after.wakeups_since(before) / passed,
        }


def trickle(programs, seconds):
    """S5: 5 events a second and a packet a second: what 1 a second with a packet every 5 s does, in a fifth of the time."""
    sink = Sink()
    keys = "periodicTimerSecond: 1\n"
    with Daemon(programs, url=f"http://127.0.0.1:{sink.port}", namespace_keys=keys) as prism:
        before = prism.cost
        events = 5 * seconds
        prism.load("trickle", "--per-second", 5, "--events", events, "--seconds", seconds * 4)
        time.sleep(2)
        after = prism.cost
        received = sink.stop()
        return {
            "handedOverKiBPerEvent": (after.handed_bytes - before.handed_bytes) / received["items"] / 1024,
            "writtenKiBPerEvent": (after.written_bytes - before.written_bytes) / received["items"] / 1024,
            "eventsPerPacket": received["items"] / received["requests"],
        }


def packet(programs):
    """S6: from the rows to the bytes of a packet, against libdeflate and GCM alone on the same bytes."""
    out = subprocess.run([programs / "packet-bench"], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def many_namespaces(programs, events, count):
    """S7: so many namespaces are configured, 10 of them busy."""
    names = [f"n{number}" for number in range(count)]
    return ingest(programs, events, "--namespace", ",".join(names[:10]), namespaces=names)


@contextlib.contextmanager
def receiver(programs, store):
    """prism-collector on SQLite, or on a PostgreSQL of its own."""
    with contextlib.ExitStack() as stack:
        uri = stack.enter_context(Database()).uri if store == "PostgreSQL" else None
        yield stack.enter_context(Collector(programs, uri))


def collector(programs, events, rows, senders, store="SQLite", window=4):
    """S8: the collector alone; each sender has `window` packets on their way, each of which names the one before it."""
    packets = max(window, events // rows // senders)
    with receiver(programs, store) as prism:
        prism.load(senders=1, rows=10, packets=20, window=1)  # what starts once has started
        before = prism.cost
        seconds = prism.load(senders, rows, packets, window)
        after, events = prism.cost, senders * rows * packets
        return {
            "eventsPerSecond": events / seconds,
            "cpuSecondsPerMillion": (after.cpu_seconds - before.cpu_seconds) * 1e6 / events,
            "peakMiB": after.peak_bytes / 2**20,
        }


def large_fleet(programs, store, interval=300, outage=60):
    """S18: 50,000 devices over TLS, 20,000 of them with connections that stay open. The collector dies for a minute."""
    with receiver(programs, store) as prism, contextlib.ExitStack() as stack:
        fronts = [stack.enter_context(Balancer(prism)) for _ in range(4)]

        def begin(seconds, *more):
            return [prism.devices(7500, interval, seconds, "--tls", "--close", "--first", 20_000 + 7500 * number,
                                  "--patience", seconds + interval, *more, port=front.port)
                    for number, front in enumerate(fronts)]

        kept = [prism.devices(5000, 60, 3 * interval + outage, "--tls", "--idle", "--first", 5000 * number, port=front.port)
                for number, front in enumerate(fronts)]
        stack.callback(lambda: [process.kill() for process in kept])
        time.sleep(60)
        before = prism.cost
        calm = [json.loads(process.communicate()[0]) for process in begin(interval)]
        after, descriptors = prism.cost, prism.descriptors
        back = begin(interval)
        time.sleep(interval / 10)
        prism.kill()
        time.sleep(outage)
        prism.start()
        returned = [json.loads(process.communicate()[0]) for process in back]
        return {
            "p50Milliseconds": 1000 * max(seen["p50Seconds"] for seen in calm),
            "p99Milliseconds": 1000 * max(seen["p99Seconds"] for seen in calm),
            "neverServed": sum(seen["never"] for seen in calm + returned),
            "waitingAtEnd": sum(seen["waiting"] for seen in returned),
            "cpuPercent": 100 * (after.cpu_seconds - before.cpu_seconds) / interval,
            "descriptors": descriptors,
            "peakMiB": max(after.peak_bytes, prism.cost.peak_bytes) / 2**20,
        }


def fleet(programs, devices, interval, seconds, strangers, store="SQLite"):
    """S17: a fleet posts to one collector with default limits; the strangers' bodies never end."""
    with receiver(programs, store) as prism:
        before = prism.cost
        seen = prism.serve(devices, interval, seconds, strangers)
        after = prism.cost
        return {
            "p50Milliseconds": seen["p50Seconds"] * 1000, "p99Milliseconds": seen["p99Seconds"] * 1000,
            "neverServed": seen["never"], "refused": seen["refused"],
            "cpuPercent": (after.cpu_seconds - before.cpu_seconds) / seconds * 100, "peakMiB": after.peak_bytes / 2**20,
        }


@contextlib.contextmanager
def other_side(output, folder):
    """The line of `outputs` for a side that takes everything and keeps nothing, but for files."""
    if output == "NDJSON":
        yield f"{{name: bench, ndjson: {folder}/lines}}"
    elif output == "Kafka":
        command = [TOOLS / "kafka-mock", "3", "3"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as brokers:
            yield f'{{name: bench, kafka: "{brokers.stdout.readline().strip()}"}}'
            brokers.stdin.close()
    else:
        sink = Sink(otlp=True)
        yield f'{{name: bench, otlp: "http://127.0.0.1:{sink.port}", encoding: {"json" if "JSON" in output else "protobuf"}}}'
        sink.stop()


def outputs(programs, output, events, records):
    """S15: a store with events, and with records that came over OTLP, is handed on. It is measured from the first look on that
    saw reports handed on."""
    name = 'prism_collector_output_reports_total{output="bench",outcome="delivered"}'
    with Collector(programs) as prism:
        prism.stop()
        telemetry.fill(prism.folder / "state", events, records)
        with other_side(output, prism.folder) as line:
            prism.start(f"outputs: [{line}]\n")
            wait_until(lambda: prism.metric(name) > 0, output)
            first, began, before = prism.metric(name), time.monotonic(), prism.cost
            wait_until(lambda: prism.metric(name) >= events + records, output, seconds=300, interval=0.05)
            seconds, after, reports = time.monotonic() - began, prism.cost, events + records - first
            prism.stop()
        return {
            "reportsPerSecond": reports / seconds,
            "cpuSecondsPerMillion": (after.cpu_seconds - before.cpu_seconds) * 1e6 / reports,
            "peakMiB": after.peak_bytes / 2**20,
        }


def growth(programs, events, parts, store="SQLite"):
    """S8: the collector's rate while its database grows by `parts` times so many events."""
    (rows, senders, rates) = (100, 8, [])
    with receiver(programs, store) as prism:
        prism.load(senders=1, rows=10, packets=20, window=1)  # what starts once has started
        for _ in range(parts):
            rates.append(events / prism.load(senders, rows, events // rows // senders, window=4))
        return {"eventsPerSecond": rates[-1], "ofFirst": rates[-1] / rates[0], "peakMiB": prism.cost.peak_bytes / 2**20}


def route(programs, events, namespace_keys="", store="SQLite"):
    """S8: in at the daemon's socket, at rest at the collector, by the daemon's ledger; the CPU time is that of both."""
    keys = f"periodicTimerSecond: 1\nmaxBodyMByte: 16\n{namespace_keys}"
    with receiver(programs, store) as end:
        with Daemon(programs, url=f"http://127.0.0.1:{end.port}", namespace_keys=keys) as prism:
            began = time.monotonic()
            prism.load("stream", "--events", events)
            prism.wait_delivered(events)
            seconds = time.monotonic() - began
            return {
                "eventsPerSecond": events / seconds,
                "cpuSecondsPerMillion": (prism.cost.cpu_seconds + end.cost.cpu_seconds) * 1e6 / events,
                "peakMiB": max(prism.cost.peak_bytes, end.cost.peak_bytes) / 2**20,
            }


def dictionary(programs, events, rows_per_packet):
    """S8: bodies' bytes at the collector before a namespace has a dictionary, and with it. The first minute teaches."""
    keys = f"dictionary: true\nmaxItem: {rows_per_packet}\nperiodicTimerSecond: 1\nmaxBodyMByte: 16\n"
    with Collector(programs) as end, Daemon(programs, url=f"http://127.0.0.1:{end.port}", namespace_keys=keys) as prism:
        delivered = 0

        def wire_bytes(count):
            nonlocal delivered
            before, delivered = end.metric("prism_collector_received_bytes_total"), delivered + count
            prism.load("stream", "--events", count)
            prism.wait_delivered(delivered)
            return (end.metric("prism_collector_received_bytes_total") - before) / count

        def has_dictionary():
            time.sleep(3)
            wire_bytes(rows_per_packet)
            return end.metric('prism_collector_dictionary_questions_total{outcome="served"}') > 0

        without = wire_bytes(events)
        wait_until(has_dictionary, "a dictionary", seconds=300)
        return {"wireBytesPerEvent": wire_bytes(events), "wireBytesPerEventWithout": without}


def requests(programs, protocol, events, batch):
    """S10: batches over TCP in the protocol of another input, each answered after the sync; the collector down."""
    port = free_port()
    keys = f"{protocol}: {{listen: 127.0.0.1:{port}, namespace: bench}}\n"
    with Daemon(programs, daemon_keys=keys, types="{type: otel.log}, {type: app}") as prism:
        wait_until(lambda: accepts(port), protocol)
        done = subprocess.run(
            [TOOLS / "requests", protocol, "--tcp", str(port), "--events", str(events), "--batch", str(batch)],
            capture_output=True, check=True, text=True)
        run, cost = json.loads(done.stdout), prism.cost
        stored = prism.stored("bench")
        if stored != run["events"]:
            raise RuntimeError(f"{protocol}: {stored} stored of {run['events']}")
        return {
            "eventsPerSecond": run["events"] / run["seconds"],
            "cpuSecondsPerMillion": cost.cpu_seconds * 1e6 / run["events"],
            "peakMiB": cost.peak_bytes / 2**20,
        }


def host(programs, seconds):
    """S11: the metrics of the host every 5 s, twelve times as often as is usual; nothing else to do."""
    keys = "host: {intervalSecond: 5, namespace: bench}\n"
    with Daemon(programs, daemon_keys=keys, types="{type: hostMetrics}, {type: appBoot}") as prism:
        time.sleep(6)  # what starts once has ended
        before, began = prism.cost, time.monotonic()
        time.sleep(seconds)
        return {"cpuPercent": (prism.cost.cpu_seconds - before.cpu_seconds) / (time.monotonic() - began) * 100}


def tails(programs, events, readers, turns, store="SQLite", rate=0):
    """S12: S8 with `readers` live tails open and without them, alternately, while `rate` events a second are offered; 0: the
    collector is at its limit."""
    rows, senders = 100, 4
    (packets, seconds, shown) = (events // rows // senders, {0: 0.0, readers: 0.0}, 0)
    with receiver(programs, store) as prism:
        prism.load(senders=1, rows=10, packets=20, window=1)  # what starts once has started
        for turn in range(2 * turns):
            count = 0 if turn % 2 == 0 else readers
            with Tails(prism, count) as open_tails:
                seconds[count] += prism.load(senders, rows, packets, window=4, rate=rate)
            shown += open_tails.reports
            if count and open_tails.silent:
                raise RuntimeError(f"{open_tails.silent} of {count} tails showed nothing")
    stored = turns * senders * rows * packets
    return {
        "eventsPerSecond": stored / seconds[readers],
        "ofNoTails": seconds[0] / seconds[readers],
        "shownPerSecond": shown / seconds[readers],
    }


def recorder(programs, events, crashes):
    """S16: a stream with a crash after each part of it. All of it is sent; or it is kept, and each crash lets 200 events go."""
    part = events // crashes

    def sent(types, keys=""):
        sink = Sink()
        with Daemon(programs, url=f"http://127.0.0.1:{sink.port}", types=types + ", {type: appCrash}",
                    namespace_keys=f"periodicTimerSecond: 1\n{keys}") as prism:
            for crash in range(crashes):
                prism.load("stream", "--events", part, "--start", crash * part)
                prism.load("stream", "--events", 1, "--start", crash, "--type", "appCrash")
            prism.flush()
            wait_until(lambda: not any(prism.ledger("bench")[name] for name in ("waiting", "claimed")), "the sink",
                       seconds=300, interval=0.1)
            delivered = prism.ledger("bench")["delivered"]
        return sink.stop()["bytes"], delivered

    all_bytes, all_delivered = sent("{type: event}")
    assert all_delivered == events + crashes, all_delivered
    trigger = "triggers: [{name: crash, on: appCrash, types: [event], before: 200, everySecond: 0, maxMByteDay: 1024}]\n"
    bytes, delivered = sent("{type: event, keep: ring}", trigger)
    assert delivered == crashes * 201, delivered
    return {"ofSendingAll": bytes / all_bytes, "wireBytesPerEvent": bytes / events,
            "wireBytesPerEventSentAll": all_bytes / events}


def price_lines(rows, count, version):
    """`count` of so many rows, in pairs whose fields `sum` come to 0: the first row with the last, and so on inwards.

    A transaction of the server has whole pairs. The rows of a pair are far apart in the order of ids, so that no beginning of
    the table has the sum 0."""
    for first in range(count // 2):
        for row, sign in ((first, 1), (rows - 1 - first, -1)):
            fields = {"sum": sign * (first + version), "name": f"article {row}", "price": row % 10_000, "tax": 19}
            yield json.dumps({"id": f"sku-{row:07}", "fields": fields})


def records_down(programs, rows):
    """S13: a table of so many rows is put at the server and taken by a daemon, while a reader adds its rows up. The daemon asks
    when it is told to (`prismctl flush`), so that the work is measured and not the interval."""
    keys = f"recordIntervalSecond: 3600\nrecords: [{{table: price, direction: down, scope: fleet, maxRecord: {rows}}}]\n"
    with Collector(programs) as end, Daemon(programs, namespace_keys=keys) as prism:
        began = time.monotonic()
        end.put_records("price", price_lines(rows, rows, 1))
        put_seconds = time.monotonic() - began
        time.sleep(2)  # what starts once has ended
        idle_bytes, reader = prism.cost.resident_bytes, TableReader(prism, "price", "sum", rows)
        prism.forget_peak()
        with reader:
            began = time.monotonic()
            prism.set_namespace(f"url: http://127.0.0.1:{end.port}\n")
            prism.flush()
            wait_until(lambda: prism.records("price") == rows, "the table", seconds=600)
            seconds = time.monotonic() - began
            wait_until(lambda: reader.passes or reader.error, "a reader of the whole table", seconds=300)
            peak_bytes = prism.cost.peak_bytes
            # More than 1,000 changes: the whole table comes again, and is swapped under the reader.
            before = len(reader.generations)
            end.put_records("price", price_lines(rows, max(2000, rows // 20), 2))
            prism.flush()
            wait_until(lambda: len(reader.generations) > before or reader.error, "the table again", seconds=600)
            wait_until(lambda: holds(reader, 2), "its newest state", seconds=600)
        peak_bytes = max(peak_bytes, prism.cost.peak_bytes)
        seen = [increment(end, prism, reader, rows, version) for version in range(3, 8)]
        with TableReader(prism, "price", "sum", rows) as last:
            wait_until(lambda: last.passes or last.error, "a reader of the increments", seconds=300)
        return {
            "rowsPerSecond": rows / seconds,
            "rowsPutPerSecond": rows / put_seconds,
            "peakMiBAboveIdle": (peak_bytes - idle_bytes) / 2**20,
            "incrementMilliseconds": sorted(seen)[2] * 1e3,
            "passesOfReader": reader.passes,
        }


def holds(reader, version):
    """Whether the first row has been changed that often."""
    page, _ = reader.page(reader.connect(), limit=1)
    return page["records"][0]["fields"]["sum"] == version


def increment(end, prism, reader, rows, version):
    """Seconds from `prismctl flush` until a reader that waits is answered: a process, the question, its answer, the commit."""
    connection = reader.connect()
    wait_until(lambda: holds(reader, version - 1), "the change before", seconds=60)
    _, tag = reader.page(connection, limit=1)
    seen = []

    def wait():
        reader.page(connection, limit=1, headers={"If-None-Match": tag}, wait=60)
        seen.append(time.monotonic())

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    end.put_records("price", price_lines(rows, 1000, version))
    began = time.monotonic()
    prism.flush()
    waiting.join(timeout=60)
    if not seen or not holds(reader, version):
        raise RuntimeError("the increment was not seen")
    return seen[0] - began
