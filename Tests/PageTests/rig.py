"""A collector with a filled store, for the tests of the page and for its screenshots."""

import json
import math
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import blocks  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("PRISM_BINARIES", ROOT / ".build/debug")) / "prism-collector"
DAY = 86_400_000
TOKEN = "reader-token-of-the-tests"
OPERATOR = "operator-token-of-the-tests"
SENDER = "sender-token-of-the-tests"
HOSTILE = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=1</script>"

C_PAYLOAD = """0x000055d1a0001f2c
0x000055d1a0002a10
0x000055d1a0001100
0x00007f33c0029d90

55d1a0000000-55d1a0003000 r-xp 00001000 08:01 1234 /usr/bin/shop-till
7f33c0000000-7f33c0195000 r-xp 00028000 08:01 99 /usr/lib/x86_64-linux-gnu/libc.so.6
"""
PYTHON_PAYLOAD = """Traceback (most recent call last):
  File "/srv/shop/app.py", line {line}, in main
    checkout(basket)
  File "/srv/shop/checkout.py", line 88, in checkout
    total = price(basket)
  File "/srv/shop/price.py", line 14, in price
    return sum(item["price"] for item in basket)
KeyError: 'price'
"""


class Program:
    """A program with files of its own."""

    def __init__(self, folder):
        (self.folder, self.process) = (folder, None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)

    def launch(self, *words):
        with open(self.path("log"), "w") as log:
            self.process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)

    def log(self):
        with open(self.path("log")) as file:
            return file.read()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


class Collector(Program):
    """prism-collector in a folder of its own; `fill` writes while it is down."""

    def __init__(self, tokens=True, remote=True, senders=False):
        """`senders`: they need a token, so the collector knows its devices."""
        super().__init__(tempfile.mkdtemp(prefix="prism-page-"))
        os.makedirs(self.path("remote.d/next"))
        self.write("main.key", "00" * 16)
        self.write("readers", TOKEN + "\n")
        self.write("operators", OPERATOR + "\n")
        self.write("senders", SENDER + "\n")
        self.write("remote.d/shop.yaml", "periodicTimerSecond: 60\nexpirationDay: 14\n")
        self.write("collector.yaml", f"""listen: 127.0.0.1:0
state: {self.path("state")}
keys: [{{id: main, file: main.key}}]
reader: {{listen: "127.0.0.1:0"}}
retentionDay: 30
outputs: [{{ndjson: {self.path("out")}}}]
{"readerTokenFile: readers" if tokens else ""}
{"operatorTokenFile: operators" if tokens else ""}
{"remoteConfig: " + self.path("remote.d") if remote else ""}
{"tokenFile: senders" if senders else ""}
notices: [{{name: ops, url: "http://127.0.0.1:9/hook", on: [newGroup, regressedGroup, silentDevice, count]}}]""")

    def start(self, *flags):
        self.launch(PROGRAM, "--config", self.path("collector.yaml"), *flags)
        for _ in range(400):
            found = re.search(r"reader_port=(\d+)", self.log())
            if found:
                self.url = f"http://127.0.0.1:{found.group(1)}"
                self.port = int(re.search(r" port=(\d+)", self.log()).group(1))
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError("the collector did not start: " + self.log())

    def get(self, path, token=TOKEN):
        request = urllib.request.Request(self.url + "/api/v1" + path, headers={"Authorization": "Bearer " + token})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def fill(self, rows=20_000, devices=40, hostile=False, seed=7):
        """Writes reports straight into the database, as the collector would have stored them."""
        self.start()
        self.stop()
        Filling(self.path("state"), seed, hostile).write(rows, devices)
        return self.start()


class Filling:
    TYPES = [("shop", "order", 30), ("shop", "payment", 24), ("shop", "stock", 12), ("shop", "net", 40), ("prism", "appBoot", 4),
             ("prism", "hostStats", 14), ("prism", "appCrash", 1)]

    def __init__(self, state, seed, hostile):
        self.random = random.Random(seed)
        self.database = sqlite3.connect(state + "/collector.db")
        self.register = sqlite3.connect(state + "/fleet.db")
        self.hostile = hostile
        self.now = int(time.time() * 1000)

    def write(self, rows, devices):
        names = [f"till-{number:04d}" for number in range(1, devices + 1)]
        if self.hostile:
            names[0] = "<script>window.attacked=1</script>"
        types = list(self.TYPES) + ([("shop", HOSTILE, 3)] if self.hostile else [])
        self.streams = {}
        weights = [weight for _, _, weight in types]
        packets, first = [], 1
        for number, received in enumerate(self.times(rows), 1):
            namespace, name, _ = self.random.choices(types, weights)[0]
            device = names[int(self.random.random() ** 1.5 * devices)]
            meta, payload = self.meta(namespace, name, device, number)
            kind = "payload" if payload is not None else "meta"
            self.stream(device, namespace, kind, received)
            created = received - self.random.randint(100, 90_000)
            meta["CREATE_TIME"] = created
            packet = uuid.UUID(int=(received << 80) | (7 << 76) | (2 << 62) | number)
            packets.append(blocks.Packet(device, namespace, kind, packet, received, [(name, created, json.dumps(meta), payload)]))
            if len(packets) == 1000 or number == rows:
                row, payloads = blocks.block(first, packets)
                self.database.execute(f"INSERT INTO blocks VALUES ({','.join('?' * len(row))})", row)
                self.database.executemany("INSERT INTO payloads VALUES (?, ?, ?)", payloads)
                packets, first = [], number + 1
        self.database.execute("INSERT OR IGNORE INTO days VALUES (0, 1)")
        self.finish_streams()
        self.records(names)
        for name in {names[0], "till-0001", names[-1]}:
            self.commands(name)
        self.database.commit()
        self.versions(names)

    def times(self, rows):
        """Ascending, over 14 days, more of them by day."""
        start = self.now - 14 * DAY
        found = []
        while len(found) < rows:
            at = start + self.random.random() * 14 * DAY
            if self.random.random() < 0.35 + 0.65 * max(0, math.sin((at % DAY) / DAY * 2 * math.pi - 1.6)):
                found.append(int(at))
        return sorted(found)

    def meta(self, namespace, name, device, number):
        version = self.random.choices(["2.3.0", "2.3.1", "2.4.0"], [1, 4, 6])[0]
        meta = {"MONITOR_TYPE": name, "REPORT_ID": f"r{number}", "CREATE_TIME": self.now, "APP_NAME": "shop-till", "APP_VERSION": version,
                "SYS_DEVICE_ID": device, "SYS_SYSTEM_VERSION": "Debian 12, 6.1.0-27-amd64"}
        payload = None
        if name in ("order", "payment"):
            meta.update(total=round(self.random.lognormvariate(3, .8), 2), items=self.random.randint(1, 9), currency="EUR")
        if name == "net":
            meta.update(ms=round(self.random.lognormvariate(4.2, .7), 1), code=self.random.choices([200, 404, 503], [95, 3, 2])[0],
                        route=self.random.choice(["/cart", "/pay", "/stock"]), net={"type": "wifi", "rtt": self.random.randint(3, 80)})
        if name == "hostStats":
            meta.update(load=round(self.random.random() * 2, 2), memoryMByte=self.random.randint(300, 900))
        if name == "appCrash":
            meta, payload = self.crash(meta, number)
        if name == HOSTILE:
            meta.update({HOSTILE: HOSTILE, "formula": "=HYPERLINK(\"http://example.com\")", "__proto__": {"x": 1}, "nested": {"deep": [HOSTILE]}})
        return meta, payload

    def crash(self, meta, number):
        which = self.random.choices(range(5 if self.hostile else 4), [6, 3, 2, 1, 3][:5 if self.hostile else 4])[0]
        if which == 0:
            meta.update(reason="SIGSEGV", signal=11, pid=number)
            return meta, C_PAYLOAD.encode()
        if which == 1:
            meta.update(reason="KeyError", message="'price'", thread="MainThread", function="price")
            return meta, PYTHON_PAYLOAD.format(line=40 + number % 3).encode()
        if which == 2:
            meta.update(reason="Fatal error: Index out of range", frames=[
                {"function": "Basket.item(at:)", "file": "Basket.swift"}, {"function": "CheckoutView.body.getter", "file": "CheckoutView.swift"},
                {"function": "main", "file": "main.swift"}, {"module": "shop", "buildId": "ab" * 20, "offset": "0x1f2c"}])
            return meta, None
        if which == 3:
            meta.update(reason="SIGABRT", stack="#0 0x00007f10 in raise () at raise.c:50\n#1 0x00007f20 in abort () at abort.c:79\n#2 0x0000558a in save_receipt () at receipt.c:212")
            return meta, None
        meta.update(reason=HOSTILE, stack=HOSTILE + "\n    at " + HOSTILE)
        return meta, HOSTILE.encode()

    def stream(self, device, namespace, kind, received):
        key = (device, namespace, kind)
        if key not in self.streams:
            self.streams[key] = [len(self.streams) + 1, 0, received, 0]
        entry = self.streams[key]
        entry[1] += 1
        entry[2] = received
        return entry[0]

    def finish_streams(self):
        for place, ((device, namespace, kind), (number, count, received, _)) in enumerate(self.streams.items()):
            lost = self.random.choice([0, 0, 0, 3, 40])
            waiting = self.random.choice([0, 2, 17, 230])
            delivered = count + (25 if place == 3 else 0)
            stored = delivered + lost + waiting - (9 if place == 5 else 0)
            waiting = 0 if place == 5 else waiting
            ledger = f"epoch=5eed;stored={stored};delivered={delivered};expired={lost};evicted=0;cleared=0;dead=0;removed=0"
            self.database.execute("INSERT INTO streams VALUES (?,?,?,?,NULL,?,?,?,NULL)",
                                  (number, device, namespace, kind, max(1, count // 8), ledger, received))

    def records(self, names):
        for name in names:
            for place in range(self.random.randint(1, 3)):
                fields = {"title": HOSTILE if self.hostile else f"Till {place + 1}", "lanes": self.random.randint(1, 4), "open": place == 0}
                self.database.execute("INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq) VALUES ('shop','till',?,?,?,?,?,?,0,0,0)",
                                      (name, f"till-{place + 1}", json.dumps(fields), place + 1, self.now - self.random.randint(0, DAY), self.now))
        # The server changed two records of some devices last: they have the first change, and not the second.
        wanted = {"title": HOSTILE if self.hostile else "Display", "brightness": 40}
        for name in {names[0], "till-0001"}:
            for number, fetched in [(1, self.now), (2, 0)]:
                self.database.execute("INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq, reported, fetched_time) VALUES ('shop','setting',?,?,?,2,?,?,1,?,0,?,?)",
                                      (name, f"display-{number}", json.dumps(wanted), self.now, self.now, number, json.dumps({**wanted, "brightness": 30}), fetched))
            self.database.execute("INSERT INTO record_tables VALUES ('shop',?,'setting',2,0,1)", (name,))

    def commands(self, name):
        """As docs/records.md has them: name, arguments, and the device's answer."""
        text = HOSTILE if self.hostile else "3 packets were sent"
        for place, fields in enumerate([
                {"name": "flush", "state": "done", "result": text, "stateTime": self.now}, {"name": "collect", "args": {"lines": 200, "unit": "shop-till"}, "state": "running", "stateTime": self.now},
                {"name": HOSTILE if self.hostile else "restart", "state": "refused", "result": {"reason": text}, "stateTime": self.now}, {"name": "flush"},
                {"name": "reload", "expires": self.now - DAY}]):
            self.database.execute("INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq, insert_seq) VALUES ('shop','prism.command',?,?,?,1,?,?,0,0,0)",
                                  (name, str(uuid.UUID(int=self.random.getrandbits(128))), json.dumps({"expires": self.now + DAY, "signature": "c2ln", **fields}), self.now - place, self.now))

    def versions(self, names):
        served = (self.register.execute("SELECT value FROM remote_facts WHERE name = 'version'").fetchone() or [29])[0]
        for place, name in enumerate(names):
            failed = str(served) if place % 9 == 4 else None
            reason = (HOSTILE if self.hostile else "periodicTimerSecond: is 0, must be 1 to 86400") if failed else None
            self.register.execute("INSERT OR REPLACE INTO configured_devices VALUES (?,?,?,?,?,?,?,NULL,1)",
                                  (name, self.now - self.random.randint(0, DAY), (self.now - DAY) & ~1, served - 1 if failed else self.random.choice([served - 1, served, served]), self.now - DAY, failed, reason))
        self.register.commit()
