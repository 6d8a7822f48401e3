"""A receiver: accepts packets of version 2, stores each once in SQLite, and answers with the receipt (docs/packet.md).
Usage: receiver.py PORT KEY-ID=KEY-FILE DATABASE. It needs python3-cryptography and python3-zstandard."""
import http.server, json, re, sqlite3, sys, threading
from prism_keys import Refused, receipt
from prism_packet import open_packet

BODY_MAX = 8 << 20
LOCK = threading.Lock()  # a connection that is kept open must not hold up the others: each has its thread


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        size = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,8}", size) or int(size) > BODY_MAX:
            self.close_connection = True  # the body is not read
            return self.refuse(413, "tooLarge")
        headers, body = {name.title(): value for name, value in self.headers.items()}, self.rfile.read(int(size))
        if headers.get("Content-Type") != "application/vnd.prism." + self.path.rsplit("/", 1)[-1]:
            return self.refuse(415, "contentType")
        names = [name.title() for name in self.headers if name.title().startswith("Prism-")]
        if len(names) > len(set(names)):
            return self.refuse(400, "header")  # which of the two is meant?
        if headers.get("Prism-Version") != "2":
            return self.refuse(503, "version")
        if headers.get("Prism-Key-Id") != KEY_ID:
            return self.refuse(401, "unknownKey")
        try:
            metas, payloads = open_packet(headers, body, KEY)
            answer = self.store(headers, metas, payloads)
        except Refused as refused:
            return self.refuse(400, str(refused))
        self.answer(200, answer, {"Prism-Receipt": receipt(headers, answer, KEY)})

    def store(self, headers, metas, payloads):
        """One transaction, at rest before the answer: a packet that comes again changes nothing."""
        device, namespace, packet = (headers[f"Prism-{name}"] for name in ("Device-Id", "Namespace", "Packet-Id"))
        with LOCK, DATABASE:
            row = DATABASE.execute("INSERT OR IGNORE INTO packet VALUES (?, ?, ?)", (device, namespace, packet))
            known = row.rowcount == 0
            if not known:
                DATABASE.executemany("INSERT INTO report VALUES (?, ?, ?, ?)", [
                    (device, namespace, json.dumps(meta), payloads[index] if payloads else None)
                    for index, meta in enumerate(metas)])
        return b'{"duplicate":true}' if known else b"{}"

    def refuse(self, status, code):
        refusal = {"message": f"the packet is refused: {code}", "code": code, "packetId": self.headers.get("Prism-Packet-Id")}
        self.answer(status, json.dumps(refusal).encode(), {})

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port, key, path = sys.argv[1:]
    KEY_ID, key_file = key.split("=", 1)
    with open(key_file) as file:
        KEY = bytes.fromhex(file.read().strip())
    DATABASE = sqlite3.connect(path, check_same_thread=False)
    DATABASE.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                           "CREATE TABLE IF NOT EXISTS packet (device TEXT, namespace TEXT, id TEXT,"
                           " PRIMARY KEY (device, namespace, id));"
                           "CREATE TABLE IF NOT EXISTS report (device TEXT, namespace TEXT, meta TEXT, payload BLOB);")
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver).serve_forever()
