"""Fills a store with the reports of a made-up fleet, as the collector would have stored them: 100,000 rows a second and more."""

import itertools
import math
import os
import random
import sqlite3
import subprocess
import time
import uuid
import zlib

from blocks import COLUMNS, Packet, block

DAY = 86_400_000
DAYS = 14
# Type, namespace, rows in a packet, and its share of all packets.
TYPES = [("order", "shop", 20, 20), ("payment", "shop", 20, 15), ("stock", "shop", 40, 10), ("net", "shop", 50, 30),
         ("hostStats", "prism", 12, 20), ("appBoot", "prism", 1, 4)]
CRASHES_PER_PACKET = 0.02
VERSIONS = ["2.3.0", "2.3.1", "2.4.0"]
REASONS = ["SIGSEGV", "SIGABRT", "KeyError", "Fatal error: Index out of range", "Out of memory"]
ROWS_MAX = 16_384


class Fleet:
    def __init__(self, rows, devices, seed=7):
        self.random = random.Random(seed)
        self.rows = rows
        self.now = int(time.time() * 1000) - 60_000
        self.devices = [f"till-{number:06d}" for number in range(1, devices + 1)]
        self.streams = {}

    def packets(self):
        """Ascending in time, over two weeks; a few devices send most."""
        weights = list(itertools.accumulate(weight for *_, weight in TYPES))
        draw, made = self.random.random, 0
        while made < self.rows:
            received = self.now - DAYS * DAY + int(made / self.rows * DAYS * DAY)
            device = self.devices[int(draw() ** 2 * len(self.devices))]
            if draw() < CRASHES_PER_PACKET:
                type, namespace, count, kind = "appCrash", "prism", 1, self.random.choice(["meta", "payload"])
            else:
                type, namespace, most, _ = self.random.choices(TYPES, cum_weights=weights)[0]
                kind, count = "meta", 1 + int(draw() * (2 * most - 1))
            rows = [self.row(type, kind, made + place + 1, received) for place in range(min(count, self.rows - made))]
            self.stream(device, namespace, kind, received, len(rows))
            common = self.common(device)
            reports = [(type, created, own + common, payload) for _, created, own, payload in rows]
            yield Packet(device, namespace, kind, self.packet_id(received, made), received, reports)
            made += len(rows)

    def blocks(self):
        """The rows of `blocks` as after merging, by the day on which they came, and their payloads."""
        packets, first, next, day = [], 1, 1, None
        for packet in self.packets():
            if packets and (next - first >= ROWS_MAX or packet.received // DAY != day):
                yield block(first, packets)
                packets, first = [], next
            packets.append(packet)
            next += len(packet.reports)
            day = packet.received // DAY
        self.last = next - 1
        yield block(first, packets)

    def common(self, device):
        version = VERSIONS[zlib.crc32(device.encode()) % 3]
        return (f',"APP_NAME":"shop-till","APP_VERSION":"{version}","APP_PACKAGE_NAME":"/usr/bin/shop-till","SYS_DEVICE_ID":"{device}",'
                '"SYS_ARCHITECTURE":"x86_64","SYS_SYSTEM_VERSION":"Debian GNU/Linux 12 (bookworm)","SYS_KERNEL":"6.1.0-27-amd64"}')

    def row(self, type, kind, number, received):
        draw = self.random.random
        created = received - 1000 - int(draw() * 60_000)
        head = f'{{"MONITOR_TYPE":"{type}","REPORT_ID":"r{number}","CREATE_TIME":{created}'
        payload = None
        if type == "net":
            tail = (f',"ms":{math.exp(2 + 4 * draw()):.1f},"code":{200 if draw() < .95 else 503},"route":"/{"cart" if draw() < .5 else "pay"}",'
                    f'"net":{{"type":"wifi","rtt":{int(draw() * 80)}}}')
        elif type == "hostStats":
            tail = f',"load":{draw() * 2:.2f},"memoryMByte":{300 + int(draw() * 600)}'
        elif type == "appCrash":
            place = int(draw() ** 3 * 40)
            tail = f',"reason":"{REASONS[place % len(REASONS)]}","frames":["step{"abcdefgh"[place % 8]}()","run{"abcdefgh"[place // 8]}()","main"]'
            payload = b"0x000055d1a0001f2c\n" * 20 if kind == "payload" else None
        else:
            tail = f',"total":{draw() * 90:.2f},"items":{1 + int(draw() * 9)},"currency":"EUR"'
        return f"r{number}", created, head + tail, payload

    def stream(self, device, namespace, kind, received, count):
        entry = self.streams.setdefault((device, namespace, kind), [len(self.streams) + 1, 0, 0, 0])
        entry[1] += 1
        entry[2] += count
        entry[3] = received

    def ledger(self, count):
        lost, waiting = self.random.choice([0, 0, 0, 3]), self.random.choice([0, 2, 17])
        return f"epoch=5eed;stored={count + lost + waiting};delivered={count};expired={lost};evicted=0;cleared=0;dead=0;removed=0"

    def records(self):
        for device in self.devices:
            for place in range(3):
                yield device, f"till-{place}", f'{{"title":"Till {place}","open":true}}', place + 1, self.now - place

    def packet_id(self, received, number):
        return uuid.UUID(int=received << 80 | 7 << 76 | 2 << 62 | number)


def fill_devices(state, fleet):
    """Of remote configuration."""
    database = sqlite3.connect(f"{state}/fleet.db")
    database.executemany(
        "INSERT OR REPLACE INTO configured_devices (device, asked_time, update_time, version, last_applied, last_failed, reason, is_proven) VALUES (?,?,?,?,?,?,?,1)",
        ((device, fleet.now, fleet.now & ~1, 28 + place % 2, fleet.now, "29" if place % 50 == 0 else None, None)
         for place, device in enumerate(fleet.devices)))
    database.commit()
    database.close()


def fill_sqlite(state, fleet):
    """Into the `collector.db` that a collector has made, and that no collector has open."""
    database = sqlite3.connect(f"{state}/collector.db")
    database.execute("PRAGMA synchronous = OFF")
    for row, payloads in fleet.blocks():
        database.execute(f"INSERT INTO blocks VALUES ({','.join('?' * len(row))})", row)
        database.executemany("INSERT INTO payloads VALUES (?, ?, ?)", payloads)
    database.execute("INSERT OR IGNORE INTO days VALUES (0, 1)")
    database.executemany(
        "INSERT INTO streams (id, device, namespace, kind, packets, ledger, received_time) VALUES (?,?,?,?,?,?,?)",
        ((number, *key, packets, fleet.ledger(count), received) for key, (number, packets, count, received) in fleet.streams.items()))
    database.executemany(
        "INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq) VALUES ('shop','till',?,?,?,?,?,0,0,0,0)",
        fleet.records())
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


class PostgreSQL:
    """Into the database that a collector has made."""

    def __init__(self, uri):
        self.command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-A", "-t", "-d", uri]

    def run(self, text):
        return subprocess.run(self.command, input=text, check=True, capture_output=True, text=True).stdout.strip()

    def copy(self, table, lines):
        process = subprocess.Popen([*self.command, "-c", f"COPY {table} FROM STDIN"], stdin=subprocess.PIPE, text=True)
        for line in lines:
            process.stdin.write(line)
        process.stdin.close()
        if process.wait() != 0:
            raise RuntimeError(f"COPY {table} failed")

    def fill(self, fleet):
        days = [time.strftime("%Y-%m-%d", time.gmtime((fleet.now - back * DAY) / 1000)) for back in range(DAYS, 0, -1)]
        for parent, bounds in (("blocks", "('{day} 00:00:00+00') TO (timestamptz '{day} 00:00:00+00' + interval '1 day')"),
                               ("payloads", "('{day}') TO (date '{day}' + 1)")):
            for day in days:
                name = f"{parent}_{day.replace('-', '')}"
                self.run(f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {parent} FOR VALUES FROM {bounds.format(day=day)};")
        first, kept = {}, []
        text = lambda day: time.strftime("%Y-%m-%d", time.gmtime(day * DAY / 1000))  # noqa: E731

        def made():
            for row, payloads in fleet.blocks():
                day = row[4] // DAY
                first.setdefault(day, row[0] & ~1023)
                kept.extend((day, *payload) for payload in payloads)
                received = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row[4] // 1000)) + f".{row[4] % 1000:03d}+00"
                names = [chr(92) + "N" if name is None else name.replace(chr(92), chr(92) * 2) for name in row[8:10]]
                yield "\t".join([received, *map(str, row[:8]), *names, str(row[10]), chr(92) * 2 + "x" + row[11].hex()]) + "\n"

        self.copy("blocks (received, " + ", ".join(COLUMNS) + ")", made())
        self.copy("payloads (day, report, sum, payload)", (
            f"{text(day)}\t{report}\t{sum}\t{chr(92) * 2}x{payload.hex()}\n" for day, report, sum, payload in kept))
        self.copy("streams (device, namespace, kind, packets, ledger, received)", (
            f"{device}\t{namespace}\t{kind[0]}\t{packets}\t{fleet.ledger(count)}\t{time.strftime('%Y-%m-%d %H:%M:%S+00', time.gmtime(received / 1000))}\n"
            for (device, namespace, kind), (_, packets, count, received) in fleet.streams.items()))
        self.copy("records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq)", (
            f"shop\ttill\t{device}\t{id}\t{fields}\t{version}\t{changed}\t0\t0\t0\t0\n" for device, id, fields, version, changed in fleet.records()))
        self.run(f"SELECT setval('report_blocks', {(fleet.last >> 10) + 1});"
                 + "".join(f"INSERT INTO days VALUES ('{text(day)}', {id}) ON CONFLICT (day) DO UPDATE SET first_report = excluded.first_report;"
                           for day, id in first.items()) + "VACUUM ANALYZE blocks;")
