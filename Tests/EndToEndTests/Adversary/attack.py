"""One hostile local user of the ingest socket, or a good one. Standard library only.

usage: attack.py KIND SOCKET SECONDS [CONNECTIONS]
       attack.py KIND PORT SECONDS CONNECTIONS   of `BOMBS`, over TCP
       attack.py fill SOCKET COUNT       puts COUNT records of 10 KB into the table part of shop
       attack.py good SOCKET COUNT       prints {"answers", "refused", "p50Ms", "p99Ms", "maxMs"} as JSON
       attack.py routes PORT SECONDS CONNECTIONS TOKEN FILE read|unread   asks a collector for the paths in FILE, as a reader
       attack.py post PORT COUNT FOLDER  posts FOLDER/0 to FOLDER/(COUNT-1), whole requests, and prints as `good` does
       attack.py send SOCKET COUNT TYPE  reports TYPE-0 to TYPE-(COUNT-1), prints {"stored", "duplicate", ...} as JSON

An attacker ends by itself after SECONDS, or with the socket; whatever the daemon does to its connections, it opens new ones.
"""

import encodings.idna  # loaded while its file can still be read
import gzip
import json
import os
import selectors
import socket
import struct
import sys
import time

REPORT = b'{"type":"net","meta":{"page":"/home","ms":12,"text":"frames were late"}}\n'
CRASH = b'{"type":"appCrash","meta":{"reason":"SIGSEGV"}}\n'
SHOP_CRASH = b'{"type":"appCrash","namespace":"shop","meta":{"reason":"SIGSEGV","text":"%s"}}\n' % (b"x" * 200)
GET = b"GET /v1/common HTTP/1.1\r\nHost: prism\r\n\r\n"
GREETING = b'{"hello":{"app":{"APP_NAME":"%d"}}}\n'
LIST = b'{"list":{"namespace":"shop","table":"part","limit":1000}}\n'
RECORD = b'{"get":{"namespace":"shop","table":"part","id":"y1"}}\n'
PATCH = b'{"patch":{"namespace":"shop","table":"part","id":"x","fields":{"a":[%s0]}}}\n' % (b"0," * 4000)
LIST_PATH = b"GET /v1/records/part?namespace=shop&limit=1000 HTTP/1.1\r\nHost: prism\r\n\r\n"


def body(line, count):
    return b"POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n" % (len(line) * count) + line * count


# What a connection begins with, and what it then sends for ever; whether it reads its answers.
FLOODS = {
    "reports": (b'{"hello":{"answer":"cumulative"}}\n', REPORT * 500, True),
    "each": (b"", REPORT * 500, True),
    "badLines": (b"", b"x\n" * 32768, True),
    "badLinesUnread": (b"", b"x\n" * 32768, False),
    "cumulativeUnread": (b'{"hello":{"answer":"cumulative"}}\n', b"x\n" * 32768, False),
    "reportsUnread": (b"", REPORT * 500, False),
    "emptyLines": (b"", b"\r\n" * 32768, True),
    "emptyLinesOverHTTP": (GET, b"\r\n" * 32768, True),
    "gets": (b"", GET * 500, True),
    "getsUnread": (b"", GET * 500, False),
    "realtime": (b"", CRASH * 500, True),
    "shopCrashes": (b"", SHOP_CRASH * 200, True),
    "greetings": (b"", b"".join(GREETING % n + REPORT for n in range(500)), True),
    "lists": (b"", LIST * 500, True),
    "listsUnread": (b"", LIST * 500, False),
    "listsInBodies": (b"", body(LIST, 2000), False),
    "listsOverHTTP": (b"", LIST_PATH * 500, False),
    "records": (b"", RECORD * 500, True),
    "recordsUnread": (b"", RECORD * 500, False),
    "patchesUnread": (b"", PATCH * 50, False),
    "commonInBodies": (b"", body(b'{"common":{}}\n', 9000), False),
    "longMetas": (b"", b'{"type":"net","meta":{' + b'"a":1,' * 500_000 + b'"b":2}}\n', True),
}



def varint(number):
    text = b""
    while number > 127:
        text, number = text + bytes([number & 127 | 128]), number >> 7
    return text + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(text=b"x", more=b""):
    return b"\x09" + struct.pack("<Q", 1795677748711000000) + field(5, field(1, text)) + more


def otlp(content, kind="x-protobuf", coding=b"gzip"):
    head = b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/%s\r\n" % kind.encode()
    content = gzip.compress(content) if coding == b"gzip" else content
    return head + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding, len(content)) + content


def logs(records):
    return otlp(field(1, field(2, b"".join(field(2, one) for one in records))))


def long(first, text):
    return first + struct.pack(">I", len(text)) + text


def event(value):
    return b"\x92\xce" + struct.pack(">I", int(time.time())) + b"\x81\xa1a" + value


def forward(events, coding=b"gzip"):
    events = gzip.compress(events) if coding == b"gzip" else events
    return b"\x93\xa3app" + long(b"\xc6", events) + b"\x82\xaacompressed\xa4%s\xa5chunk\xa2c1" % coding


def zstd(first, blocks):
    """A frame with a window of 8 MiB: `first`, then blocks of 128 KiB of one byte, in 4 bytes each (RFC 8878)."""
    def block(size, kind, content, is_last):
        return (size << 3 | kind << 1 | is_last).to_bytes(3, "little") + content
    return b"\x28\xb5\x2f\xfd\x00\x68" + block(len(first), 0, first, 0) + b"".join(
        block(1 << 17, 1, b"\x01", at == blocks - 1) for at in range(blocks))


# What each connection sends once over TCP: few KiB that become much more.
BOMBS = {
    "otlpControls": lambda: logs([record(b"\x01" * 4_000_000)]),
    "otlpAttributes": lambda: logs([record(more=field(6, b"") * 1_900_000)]),
    "otlpRecords": lambda: logs([record(b"\x01" * 200)] * 9_000),
    "otlpEmpty": lambda: logs([b""] * 9_999),
    "otlpJSON": lambda: otlp(
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":[%s0]}]}]}]}' % (b"0," * 390_000), "json"),
    "otlpZstd": lambda: otlp(zstd(b"", 150), coding=b"zstd"),
    "forwardZstd": lambda: forward(zstd(event(b"\xdb" + struct.pack(">I", 80 << 17)), 80), b"zstd"),
    "forwardDoubles": lambda: forward(
        event(b"\xdd" + struct.pack(">I", 1_700_000) + b"\xcb\x00\x10\x00\x00\x00\x00\x00\x00" * 1_700_000)),
    "forwardControls": lambda: forward(event(long(b"\xdb", b"\x01" * 15_000_000))),
    "forwardEvents": lambda: forward(event(b"\xbf" + b"\x01" * 31) * 190_000),
}

# What a connection sends before it falls silent.
SILENCES = {
    "idle": b"",
    "half": REPORT[:-20],
    "payloads": b'{"type":"net","meta":{"a":1},"payloadBytes":1000000}\n' + b"p" * 900_000,
    "bodies": b"POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: 4000000\r\n\r\n" + b" " * 3_000_000,
    "refusedLast": b'{"type":"net","meta":{"a":1},"payload":"!!"}\n',
}


class Client:
    """A connection that sends what it is given as far as the socket takes it."""

    def __init__(self, path, first, then, reads):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.connect(path)
        self.rest, self.then, self.reads = memoryview(first or then), then, reads

    def events(self):
        return (selectors.EVENT_READ if self.reads else 0) | (selectors.EVENT_WRITE if self.rest else 0)

    def go(self, events):
        """False: the daemon closed it."""
        if events & selectors.EVENT_READ and not self.socket.recv(65536):
            return False
        if events & selectors.EVENT_WRITE and self.rest:
            self.rest = self.rest[self.socket.send(self.rest) :]
            if not self.rest and self.then:
                self.rest = memoryview(self.then)
        return True


def flood(kind, path, end, count):
    first, then, reads = FLOODS[kind] if kind in FLOODS else (SILENCES[kind], b"", True)
    selector, clients = selectors.DefaultSelector(), set()
    while time.monotonic() < end and os.path.exists(path):
        while len(clients) < count:
            try:
                client = Client(path, first, then, reads)
            except OSError:
                break  # the backlog is full, or no descriptor is left
            clients.add(client)
            if client.events():
                selector.register(client.socket, client.events(), client)
        events = selector.select(0.05) if selector.get_map() else time.sleep(0.05) or []
        for key, ready in events:
            client = key.data
            try:
                if client.go(ready):
                    if client.events() != key.events:
                        selector.modify(client.socket, client.events() or selectors.EVENT_READ, client)
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            selector.unregister(client.socket)
            client.socket.close()
            clients.discard(client)


def bombs(kind, port, end, count):
    data, opened = BOMBS[kind](), []
    while time.monotonic() < end:
        while len(opened) < count:
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(data)
            client.setblocking(False)
            opened.append(client)
        time.sleep(0.1)
        for client in list(opened):
            try:
                if client.recv(1):
                    client.close()  # answered: once more
                opened.remove(client)
            except BlockingIOError:
                pass
            except OSError:
                opened.remove(client)


def messages(port, end, count):
    """Syslog over TCP and UDP and statsd over UDP of IPv6, at one port: what becomes most in memory, all the time."""
    text = b"<13>" + b"\x01" * 60_000 + b"\n"
    streams = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for client in streams:
        client.setblocking(False)
    syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    statsd = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    for number in range(1 << 40):
        if time.monotonic() > end:
            break
        for client in list(streams):
            try:
                client.send(text)
            except BlockingIOError:
                pass
            except OSError:
                streams.remove(client)
        syslog.sendto(text[:-1], ("127.0.0.1", port))
        statsd.sendto(b"\n".join(b"%x:%x|s|#\x01:%x" % (at, number, at) for at in range(3000)), ("::1", port))
        time.sleep(0.01)


def fill(path, count):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(path)
    answers = client.makefile("rb")
    for number in range(count):
        put = {"namespace": "shop", "table": "part", "id": f"y{number}", "fields": {"a": "x" * 10_000}}
        client.sendall(json.dumps({"put": put}).encode() + b"\n")
        assert b"stored" in answers.readline()


def connects(path, end):
    while time.monotonic() < end and os.path.exists(path):
        opened = []
        for _ in range(500):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            try:
                client.connect(path)
            except OSError:
                pass  # the backlog is full: go on
            opened.append(client)
        for client in opened:
            client.close()


def good(path, count):
    waits, refused = [], 0
    client, answers = None, None
    for _ in range(count):
        begun = time.monotonic()
        while True:
            try:
                if client is None:
                    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    client.settimeout(600)
                    client.connect(path)
                    answers = client.makefile("rb")
                client.sendall(REPORT)
                if b'"stored"' in answers.readline():
                    break
            except (BlockingIOError, ConnectionError):
                time.sleep(0.001)  # the backlog is full, or it was refused
            refused += 1
            client.close()
            client = None
        waits.append((time.monotonic() - begun) * 1000)
        time.sleep(0.002)
    summary(waits, refused)


def routes(port, end, count, token, paths, reads):
    """Each connection asks for every path, beginning at one of its own, and then again."""
    head = "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nAccept-Encoding: gzip\r\n\r\n"
    requests, opened, begun = [(head % path).encode() for path in paths], {}, 0
    selector = selectors.DefaultSelector()
    while time.monotonic() < end:
        while len(opened) < count:
            client = socket.create_connection(("127.0.0.1", port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            at = begun % len(requests)
            opened[client], begun = memoryview(b"".join(requests[at:] + requests[:at])), begun + 1
            selector.register(client, selectors.EVENT_WRITE | (selectors.EVENT_READ if reads else 0))
        for key, ready in selector.select(0.05):
            client = key.fileobj
            try:
                ended = ready & selectors.EVENT_READ and not client.recv(65536)
                if ready & selectors.EVENT_WRITE:
                    opened[client] = opened[client][client.send(opened[client]) :]
                    if not opened[client]:
                        opened[client] = memoryview(b"".join(requests))
            except BlockingIOError:
                continue
            except OSError:
                ended = True
            if ended:
                selector.unregister(client)
                client.close()
                del opened[client]


def post(port, count, folder):
    waits, refused, client = [], 0, None
    for number in range(count):
        with open(f"{folder}/{number}", "rb") as file:
            request = file.read()
        begun = time.monotonic()
        while True:
            try:
                if client is None:
                    client = socket.create_connection(("127.0.0.1", port), 600)
                    answers = client.makefile("rb")
                client.sendall(request)
                status, length = answers.readline(), 0
                while (line := answers.readline().strip()):
                    length = int(line[15:]) if line.lower().startswith(b"content-length:") else length
                answers.read(length)
                if b" 200 " in status:
                    break
            except ConnectionError:
                pass
            refused += 1
            client.close()
            client = None
            time.sleep(0.01)
        waits.append((time.monotonic() - begun) * 1000)
        time.sleep(0.002)
    summary(waits, refused)


def summary(waits, refused):
    waits.sort()
    figures = {"answers": len(waits), "refused": refused, "p50Ms": waits[len(waits) // 2]}
    figures["p99Ms"], figures["maxMs"] = waits[len(waits) * 99 // 100], waits[-1]
    print(json.dumps(figures))


def send(path, count, kind):
    """Under ids that others may give, too."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(600)
    client.connect(path)
    answers, statuses = client.makefile("rb"), {"stored": 0, "duplicate": 0}
    for number in range(count):
        meta = {"n": number, "uid": os.getuid()}
        report = {"type": kind, "namespace": "shop", "reportId": f"{kind}-{number}", "meta": meta}
        client.sendall(json.dumps(report).encode() + b"\n")
        answer = json.loads(answers.readline())
        status = "duplicate" if answer.get("duplicate") else answer.get("status", "refused")
        statuses[status] = statuses.get(status, 0) + 1
    print(json.dumps(statuses))


def main():
    kind, path, number = sys.argv[1], sys.argv[2], float(sys.argv[3])
    end = time.monotonic() + number
    if kind == "good":
        good(path, int(number))
    elif kind == "post":
        post(int(path), int(number), sys.argv[4])
    elif kind == "routes":
        count, token, file, reads = sys.argv[4:]
        with open(file) as paths:
            routes(int(path), end, int(count), token, paths.read().split("\n"), reads == "read")
    elif kind == "send":
        send(path, int(number), sys.argv[4])
    elif kind == "fill":
        fill(path, int(number))
    elif kind in BOMBS:
        bombs(kind, int(path), end, int(sys.argv[4]))
    elif kind == "messages":
        messages(int(path), end, int(sys.argv[4]))
    elif kind == "connects":
        connects(path, end)
    else:
        flood(kind, path, end, int(sys.argv[4]))


main()
