#!/usr/bin/env python3
"""Makes the test vectors of packet version 2 (docs/packet.md): an encoder that shares no code with prism.

usage: make_vectors.py            write the files beside this script
Needs Python's cryptography and zstandard (Debian: python3-cryptography, python3-zstandard). Keys and nonces come from a
fixed seed, so that a second run writes the same bytes (with the same version of the compressors).
"""
import gzip, hashlib, hmac, json, pathlib, random, struct
import zstandard
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

rng = random.Random(20261121)
KEY_BYTES = {"aes-128-gcm": 16, "aes-256-gcm": 32, "aes-128-cbc": 16}
DEVICE = "c0ffee0123456789c0ffee0123456789"
RAW = (Encoding.Raw, PublicFormat.Raw)
LEDGER = "epoch=5eed;stored=9;delivered=2;expired=0;evicted=1;cleared=0;dead=0;removed=0"


def hkdf(key, info, salt=None, count=32):
    return HKDF(hashes.SHA256(), count, salt, info).derive(key)


def headers(kind="meta", count=1, cipher="aes-128-gcm", encoding="gzip", **more):
    fields = {
        "Content-Type": f"application/vnd.prism.{kind}", "Prism-Version": "2", "Prism-Device-Id": DEVICE,
        "Prism-Namespace": "shop", "Prism-Packet-Id": "01932e6a-7c00-7abc-8def-0123456789ab",
        "Prism-Item-Count": str(count), "Prism-Sent-Time": "1732154081007", "Prism-Cipher": cipher,
        "Prism-Key-Id": "main", "Prism-Encoding": encoding,
        "Prism-Depends-On": "01932e6a-7bff-7000-8000-0000000000aa", "Prism-Ledger": LEDGER,
    }
    fields.update(more)
    return {name: value for name, value in fields.items() if value is not None}


def context(fields):
    kind = fields["Content-Type"].rsplit(".", 1)[1]
    names = ["Prism-Depends-On", "Prism-Item-Count", "Prism-Ledger", "Prism-Sent-Time"]
    lines = ["prism2", fields["Prism-Device-Id"], fields["Prism-Namespace"], fields["Prism-Packet-Id"], kind]
    lines += [fields.get(name, "") for name in names] + ([fields["Prism-Form"]] if "Prism-Form" in fields else [])
    return "".join(line + "\n" for line in lines).encode()


def pack(plain, encoding, dictionary=None):
    if encoding == "gzip":
        return gzip.compress(plain, mtime=0)
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=3, dict_data=dictionary).compress(plain)
    return plain


def block(packed, key, cipher, associated):
    if cipher != "aes-128-cbc":
        nonce = rng.randbytes(12)
        return nonce + AESGCM(key).encrypt(nonce, packed, associated)
    nonce, pad = rng.randbytes(16), padding.PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(nonce)).encryptor()
    return nonce + encryptor.update(pad.update(packed) + pad.finalize()) + encryptor.finalize()


def packet(name, lines, payloads=None, fields=None, dictionary=None, packed=None, **more):
    """packed: what stands for the compressed meta block, for packets that are to be refused."""
    fields = fields or headers("meta" if payloads is None else "payload", **more)
    cipher, encoding = fields["Prism-Cipher"], fields["Prism-Encoding"]
    key, bound = rng.randbytes(KEY_BYTES[cipher]), context(fields)
    text = "\n".join(lines).encode()
    blocks = [block(packed or pack(text, encoding, dictionary), key, cipher, bound + b"0")]
    for index, payload in enumerate(payloads or []):
        blocks.append(block(pack(payload, encoding, dictionary), key, cipher, bound + str(index + 1).encode()))
    body = blocks[0]
    if payloads is not None:
        body = struct.pack(f">HB{len(payloads)}I", len(blocks[0]), len(payloads), *map(len, blocks[1:]))
        body += b"".join(blocks)
    if cipher == "aes-128-cbc":
        code_key = hkdf(key, b"prism1 mac")
        fields["Prism-Mac"] = hmac.new(code_key, bound + body, "sha256").hexdigest()
    result = {"name": name, "key": key.hex(), "headers": fields, "body": body.hex(), "lines": lines,
              "payloads": [payload.hex() for payload in payloads or []]}
    if dictionary:
        result["dictionary"] = dictionary.as_bytes().hex()
    return result


def merged(lines):
    rows, common = [], {}
    for line in lines:
        value = json.loads(line)
        if "$common" in value:
            common = value["$common"]
        else:
            rows.append({**common, **value})
    return rows


ROW = '{"MONITOR_TYPE":"net","REPORT_ID":"r%d","CREATE_TIME":17321540810%02d,"IS_BIZ":false,"ms":%d}'
ROWS = [ROW % (n, n, 7 * n) for n in range(12)]
COMMON = ['{"$common":{"SYS_DEVICE_ID":"d","APP_NAME":"größe ✓","APP_VERSION":"1"}}', '{"$common":{"APP_VERSION":"2"}}',
          '{"$common":{}}']


def dictionary():
    samples = [(ROW % (n, n % 60, n * 31)).encode() for n in range(4000)]
    return zstandard.train_dictionary(4096, samples)


def taken():
    result = []

    def add(*arguments, **more):
        result.append(packet(*arguments, **more))
        result[-1]["metas"] = merged(result[-1]["lines"])

    for cipher in KEY_BYTES:
        for encoding in ("gzip", "zstd", "none"):
            tag = f"{cipher}, {encoding}"
            add(f"meta, {tag}", ROWS[:3], count=3, cipher=cipher, encoding=encoding)
            add(f"payload, {tag}", ROWS[:2], [b"hello", rng.randbytes(300)], count=2, cipher=cipher,
                encoding=encoding)
    add("the first of its stream: no predecessor", ROWS[:1], **{"Prism-Depends-On": None})
    add("no ledger", ROWS[:1], **{"Prism-Ledger": None})
    add("an empty payload", ROWS[:1], [b""])
    add("255 payloads", ["{}"] * 255, [bytes([n]) for n in range(255)], count=255)
    add("common information for all rows", COMMON[:1] + ROWS[:3], count=3)
    add("common information that changes and ends",
        [ROWS[0], COMMON[0], ROWS[1], ROWS[2], COMMON[1], ROWS[3], COMMON[2], ROWS[4]], count=5)
    add("a row's own members win", COMMON[:1] + ['{"APP_VERSION":"own"}', "{}"], count=2)
    add("common information before payloads", COMMON[:1] + ROWS[:2], [b"a", b"b"], count=2)
    words = dictionary()
    extra = {"Prism-Dictionary": str(words.dict_id())}
    add("a dictionary", ROWS, count=12, encoding="zstd", dictionary=words, **extra)
    add("a dictionary and payloads", ROWS[:1], [b"hello " * 9], encoding="zstd", dictionary=words, **extra)
    state = rng.getstate()  # so that the vectors behind these keep their keys
    add("three packets before it have no receipt", ROWS[:1], **{"Prism-Ledger": LEDGER + ";pending=3"})
    add("no sent time: an empty line of the context", ROWS[:1], **{"Prism-Sent-Time": None})
    add("the clock was set since, and a row of an earlier boot",
        ['{"$common":{"SYS_CLOCK_STEP":"-500"}}', ROWS[0], '{"$common":{"SYS_CLOCK_BOOT":"earlier"}}', ROWS[1]], count=2)
    rng.setstate(state)
    return result


def refused():
    result = []

    def add(why, vector, change=None, **fields):
        body = bytearray.fromhex(vector["body"])
        if change:
            body = change(body)
        vector["headers"].update(fields)
        vector["headers"] = {name: value for name, value in vector["headers"].items() if value is not None}
        result.append({"name": vector["name"], "key": vector["key"], "headers": vector["headers"],
                       "body": bytes(body).hex(), "why": why})

    def flip(at):
        return lambda body: body[:at] + bytes([body[at] ^ 1]) + body[at + 1:] if at >= 0 else flip(len(body) + at)(body)

    changes = {
        "Prism-Device-Id": "c0ffee0123456789c0ffee0123456788", "Prism-Namespace": "shoq",
        "Prism-Packet-Id": "01932e6a-7c00-7abc-8def-0123456789aa",
        "Prism-Depends-On": "01932e6a-7bff-7000-8000-0000000000ab",
        "Prism-Ledger": LEDGER.replace("evicted=1", "evicted=0"),
        "Prism-Sent-Time": "1732154081008",
    }
    for cipher, why in (("aes-128-gcm", "decryptionFailed"), ("aes-128-cbc", "macMismatch")):
        for name, value in changes.items():
            add(why, packet(f"another {name}, {cipher}", ROWS[:2], count=2, cipher=cipher), **{name: value})
        add(why, packet(f"another count, {cipher}", ROWS[:2], count=2, cipher=cipher), **{"Prism-Item-Count": "3"})
        for name in ("Prism-Depends-On", "Prism-Ledger"):
            add(why, packet(f"{name} taken away, {cipher}", ROWS[:2], count=2, cipher=cipher), **{name: None})
    state = rng.getstate()  # so that the vectors behind these keep their keys
    for name, value in (("another count of packets without a receipt", ";pending=2"), ("none of them any more", "")):
        add("decryptionFailed", packet(name, ROWS[:1], **{"Prism-Ledger": LEDGER + ";pending=3"}),
            **{"Prism-Ledger": LEDGER + value})
    rng.setstate(state)
    add("macMismatch", packet("no code", ROWS[:1], cipher="aes-128-cbc"), **{"Prism-Mac": None})
    add("macMismatch", packet("a changed body, aes-128-cbc", ROWS[:1], cipher="aes-128-cbc"), flip(20))
    add("decryptionFailed", packet("a changed nonce", ROWS[:1]), flip(0))
    add("decryptionFailed", packet("a changed ciphertext", ROWS[:1]), flip(20))
    add("decryptionFailed", packet("a changed tag", ROWS[:1]), flip(-1))
    add("decryptionFailed", packet("an empty body of a meta packet", ROWS[:1]), lambda body: b"")
    add("shortHeader", packet("a cut header", ROWS[:1], [b"a"]), lambda body: body[:5])
    add("lengthMismatch", packet("a byte too many", ROWS[:1], [b"a"]), lambda body: body + b"\0")
    add("lengthMismatch", packet("a byte too few", ROWS[:1], [b"a"]), lambda body: body[:-1])
    add("countMismatch", packet("fewer rows than the header says", ROWS[:2], count=3))
    add("countMismatch", packet("more rows than the header says", ROWS[:3], count=2))
    add("countMismatch", packet("common lines are no rows", COMMON[:1] + ROWS[:1], count=2))
    add("countMismatch", packet("another number of payloads than of rows", ROWS[:2], [b"a"], count=2))
    for told in ("gzip", "zstd", "none"):
        for used in ("gzip", "zstd", "none"):
            if used != told:
                add("unpackFailed", packet(f"{used} that is said to be {told}", ROWS[:1], encoding=used),
                    **{"Prism-Encoding": told})
    plain = ROWS[0].encode()
    skippable = bytes.fromhex("502a4d1800000000")
    gz, zs = gzip.compress(plain, mtime=0), zstandard.ZstdCompressor().compress(plain)
    add("unpackFailed", packet("a cut gzip member", ROWS[:1], packed=gz[:-1]))
    add("unpackFailed", packet("bytes after the gzip member", ROWS[:1], packed=gz + b"\0"))
    add("unpackFailed", packet("a cut zstd frame", ROWS[:1], packed=zs[:-1], encoding="zstd"))
    add("unpackFailed", packet("two zstd frames", ROWS[:1], packed=zs + zs, encoding="zstd"))
    add("unpackFailed", packet("a skippable zstd frame", ROWS[:1], packed=skippable, encoding="zstd"))
    add("unpackFailed", packet("common information that is no object", ['{"$common":{"a":1}', ROWS[0]]))
    add("unpackFailed", packet("common information beside another key", ['{"$common":{"a":1},"b":{}}', ROWS[0]]))
    add("tooLarge", packet("a line of over 10,240 bytes", ['{"a":"%s"}' % ("x" * 10_240)]))
    words, state = dictionary(), rng.getstate()
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    add("unpackFailed", packet("a zstd frame without its size", ROWS[:1], packed=frame, encoding="zstd"))
    rng.setstate(state)
    add("unpackFailed", packet("a dictionary that is not named", ROWS[:2], count=2, encoding="zstd", dictionary=words))
    add("unpackFailed", packet("another dictionary than it names", ROWS[:2], count=2, encoding="zstd"),
        **{"Prism-Dictionary": "1"})
    return result


def headers_refused():
    """Headers that are not prism's. Each block is right, as far as the cipher that is said makes a right one."""
    result = []

    def add(why, vector, sent):
        fields = {name: value for name, value in {**vector["headers"], **sent}.items() if value is not None}
        result.append({"name": vector["name"], "key": vector["key"], "headers": fields, "body": vector["body"], "why": why})

    # GCM encrypts in counter mode, from the counter 2 on: without the tag, a cipher that proves nothing reads the packet.
    for cipher, other in (("aes-128-gcm", "aes-128-ctr"), ("aes-256-gcm", "aes-256-ctr")):
        vector = packet(f"{other}: a captured packet of another device", ROWS[:2], count=2, cipher=cipher)
        body = bytes.fromhex(vector["body"])
        vector["body"] = (body[:12] + bytes.fromhex("00000002") + body[12:-16]).hex()
        add("header", vector, {"Prism-Cipher": other, "Prism-Device-Id": "c0ffee0123456789c0ffee0123456788"})
    for cipher in ("nonsense", "", "AES-128-GCM", "aes128", "id-aes128-GCM", "aes-192-gcm", "aes-128-ccm", "aes-128-ocb",
                   "aes-128-cfb", "aes-128-ecb", "aes-256-cbc", "aes-128-cbc-hmac-sha256", "chacha20-poly1305", "null",
                   "aes-128-gcm aes-128-cbc", None):
        add("header", packet(f"the cipher {cipher}", ROWS[:1]), {"Prism-Cipher": cipher})
    for cipher, other in (("aes-128-gcm", "aes-256-gcm"), ("aes-256-gcm", "aes-128-gcm"), ("aes-256-gcm", "aes-128-cbc")):
        add("keyLength", packet(f"the key of {cipher} for {other}", ROWS[:1], cipher=cipher), {"Prism-Cipher": other})
    vector = packet("a code in upper case", ROWS[:1], cipher="aes-128-cbc")
    add("macMismatch", vector, {"Prism-Mac": vector["headers"]["Prism-Mac"].upper()})
    add("macMismatch", packet("a code that is no ASCII", ROWS[:1], cipher="aes-128-cbc"), {"Prism-Mac": "größe"})
    for encoding in ("nonsense", "", "GZIP", "deflate", None):
        add("header", packet(f"the encoding {encoding}", ROWS[:1]), {"Prism-Encoding": encoding})
    for kind in ("application/json", "application/vnd.prism.records", "application/vnd.prism.meta; charset=utf-8", None):
        add("contentType", packet(f"the type {kind}", ROWS[:1]), {"Content-Type": kind})
    own = {"Prism-Packet-Id": "01932E6A-7c00-7abc-8def-0123456789ab", "Prism-Depends-On": "before", "Prism-Item-Count": "01",
           "Prism-Sent-Time": "-1", "Prism-Dictionary": "1x"}
    for name, value in own.items():
        add("header", packet(f"{name}: {value}", ROWS[:1], **{name: value}), {})
    return result


def receipts():
    result = []
    for number, answer in enumerate((b"", b'{"duplicate":true}', "größe".encode())):
        fields = headers("payload" if number else "meta", count=number + 1)
        key = rng.randbytes(16 if number < 2 else 32)
        code_key = hkdf(key, b"prism2 receipt")
        code = hmac.new(code_key, context(fields) + hashlib.sha256(answer).digest(), "sha256").hexdigest()
        result.append({"key": key.hex(), "headers": fields, "answer": answer.hex(), "context": context(fields).hex(),
                       "receipt": f"{fields['Prism-Packet-Id']} {code}"})
    return result


def device_keys():
    result = []
    for master_bytes, key_id, device in ((32, "main", DEVICE), (16, "fleet-2026", "a"), (64, "größe", "d" * 256)):
        master = rng.randbytes(master_bytes)
        for cipher, count in KEY_BYTES.items():
            key = hkdf(master, b"prism device\0" + device.encode(), key_id.encode(), count)
            result.append({"master": master.hex(), "keyId": key_id, "deviceId": device, "cipher": cipher,
                           "key": key.hex()})
    return result


def sealed():
    result = []
    for name, payload in (("text", b"Segmentation fault\n" * 40), ("empty", b""), ("noise", rng.randbytes(70_000))):
        receiver, ephemeral = (X25519PrivateKey.from_private_bytes(rng.randbytes(32)) for _ in range(2))
        public, own = (key.public_key().public_bytes(*RAW) for key in (receiver, ephemeral))
        material = hkdf(ephemeral.exchange(X25519PublicKey.from_public_bytes(public)), b"prism2 seal", own + public, 44)
        associated = f"prism2 seal\n{DEVICE}\nshop\nr-{name}\n".encode()
        box = AESGCM(material[:32]).encrypt(material[32:], gzip.compress(payload, mtime=0), associated)
        secret = receiver.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        result.append({"name": name, "privateKey": secret.hex(), "publicKey": public.hex(), "deviceId": DEVICE,
                       "namespace": "shop", "reportId": f"r-{name}", "sealed": (b"PSL1" + own + box).hex(),
                       "payload": payload.hex()})
    return result


def dictionaries():
    """Answers to GET /prism/dictionary: `headers` are the question's, `answer` those of the answer."""
    result, words = [], dictionary()
    for cipher in KEY_BYTES:
        for why in (None, "another Prism-Packet-Id", "another namespace", "another device"):
            asked = {"Content-Type": "application/vnd.prism.dictionary", "Prism-Device-Id": DEVICE,
                     "Prism-Namespace": "shop", "Prism-Packet-Id": "01932e6a-7c00-7abc-8def-0123456789ab"}
            key, bound, answer = rng.randbytes(KEY_BYTES[cipher]), context(asked), {}
            body = block(gzip.compress(words.as_bytes(), mtime=0), key, cipher, bound + b"0")
            answer = {"Content-Type": asked.pop("Content-Type"), "Prism-Dictionary": str(words.dict_id())}
            if cipher == "aes-128-cbc":
                answer["Prism-Mac"] = hmac.new(hkdf(key, b"prism1 mac"), bound + body, "sha256").hexdigest()
            if why == "another Prism-Packet-Id":
                asked["Prism-Packet-Id"] = "01932e6a-7c00-7abc-8def-0123456789aa"
            if why == "another device":
                asked["Prism-Device-Id"] = "another"
            asked.pop("Prism-Namespace")
            refusal = "macMismatch" if cipher == "aes-128-cbc" else "decryptionFailed"
            result.append({
                "name": f"{why or 'a dictionary'}, {cipher}", "key": key.hex(),
                "namespace": "shoq" if why == "another namespace" else "shop",
                "headers": {"Prism-Version": "2", **asked, "Prism-Cipher": cipher, "Prism-Key-Id": "main"},
                "answer": answer, "body": body.hex(), "why": refusal if why else "",
                "dictionary": "" if why else words.as_bytes().hex()})
    return result


class Block:
    """A block of columns, written call by call: nothing is chosen here."""

    def __init__(self):
        self.near, self.far, self.columns, self.words = b"", b"", 0, 0

    def number(self, number):
        while number > 127:
            self.near += bytes([number & 127 | 128])
            number >>= 7
        self.near += bytes([number])
        return self

    def signed(self, number):
        return self.number(2 * number if number >= 0 else -2 * number - 1)

    def run(self, data):
        if len(data) < 256:
            self.near += data
        else:
            self.far += data
        return self

    def text(self, text):
        return self.number(len(text.encode())).run(text.encode())

    def integers(self, values, mode=0, width=None):
        self.number(mode)
        for _ in range(mode):
            self.signed(values[0])
            values = [after - before for before, after in zip(values, values[1:])]
        least = min(values)
        width = max(values[n] - least for n in range(len(values))).bit_length() + 7 >> 3 if width is None else width
        self.signed(least).number(width)
        for plane in range(width):
            self.run(bytes(value - least >> 8 * plane & 255 for value in values))
        return self

    def kind(self, kind, words=0):
        self.columns, self.words = self.columns + 1, self.words + words
        return self.number(kind)

    def shapes(self, *texts):
        self.number(len(texts))
        for text in texts:
            self.text(text)
        return self

    def data(self):
        near, self.near = self.near, b""
        return self.number(len(near)).near + near + self.far

    def head(self, lines, other):
        text = "\n".join(lines).encode()
        found = {"lines": len(lines), "text": len(text), "columns": self.columns, "words": self.words, **other}
        return struct.pack(">4I", *found.values())


def bits(flags):
    return bytes(sum(flag << place for place, flag in enumerate(flags[n:n + 8])) for n in range(0, len(flags), 8))


def columns():
    """Packets with columns, and those that must be refused: `why` says the reason."""
    result = []

    def add(name, lines, block, why="", fields=None, sent=None, count=None, said=None):
        found = headers(count=count or len(lines), **{"Prism-Form": "columns", **(fields or {})})
        data, head = block.data(), block.head(lines, said or {})
        vector = packet(name, lines, fields=found, packed=head + pack(data, found["Prism-Encoding"]))
        vector["headers"] = {key: value for key, value in {**found, **(sent or {})}.items() if value is not None}
        result.append({**vector, "why": why})

    def one(values):
        """A block of one shape, up to its column; and its lines."""
        return Block().shapes('{"v":\n}').integers([1] * len(values)), ['{"v":%s}' % value for value in values]

    for rows in (1, 3, 300):  # small runs lie near, large ones far
        many = range(rows)
        block, lines = one(["1.50"] * rows)
        add(f"a constant, {rows} rows", lines, block.kind(0).text("1.50"))
        values = [('{"a":[1]}', "1e400", "-0", "[]", "null")[n % 5] for n in many]
        block, lines = one(values)
        add(f"values as they are, {rows} rows", lines, block.kind(1).text("".join(f"{v}\n" for v in values)))
        values = [f"größe \\u00e9 {n * n}" for n in many]
        block, lines = one([f'"{v}"' for v in values])
        add(f"strings, {rows} rows", lines, block.kind(2).text("".join(f"{v}\n" for v in values)))
        words = ['"a"', "7", "null"]
        block, lines = one([words[n % 3] for n in many])
        block.kind(3, words=3).number(3).text("".join(f"{w}\n" for w in words)).integers([n % 3 for n in many])
        add(f"words, {rows} rows", lines, block)
        flags = [n % 3 == 0 for n in many]
        block, lines = one([str(flag).lower() for flag in flags])
        add(f"booleans, {rows} rows", lines, block.kind(4).run(bits(flags)))
        values = [rng.randbytes(8) for _ in many]
        block, lines = one([f'"{v.hex()}"' for v in values])
        add(f"hexadecimal, {rows} rows", lines, block.kind(5).number(8).run(b"".join(values)))
        values = [v if n % 2 else b"" for n, v in enumerate(values)]
        block, lines = one([f'"{v.hex()}"' for v in values])
        block.kind(6).number(8).run(bits([v != b"" for v in values])).run(b"".join(values))
        add(f"hexadecimal with gaps, {rows} rows", lines, block)
        for base, digits, form in ((10, 0, "%d"), (10, 4, "%04d"), (16, 3, "%03x")):
            values = [n * 7 for n in many]
            block, lines = one([f'"id-{form % v}"' for v in values])
            block.kind(7).text("id-").number(base).number(digits).integers(values)
            add(f"ids of base {base}, {digits} digits, {rows} rows", lines, block)
        for mode in range(min(3, rows)):
            values = [(-1) ** n * n ** 4 for n in many]
            block, lines = one(values)
            add(f"integers, mode {mode}, {rows} rows", lines, block.kind(8).number(0).number(0).integers(values, mode))
        values = [n * 25 - 50 for n in many]
        block, lines = one(["%.2f" % (v / 100) for v in values])
        add(f"two fraction digits, {rows} rows", lines, block.kind(8).number(2).number(2).integers(values))
        block, lines = one([str(v / 100) for v in values])
        add(f"one or two fraction digits, {rows} rows", lines, block.kind(8).number(1).number(2).integers(values))
    ends = [-(1 << 63), (1 << 63) - 1, 0]
    block, lines = one(ends)
    add("the ends of 64 bits", lines, block.kind(8).number(0).number(0).integers(ends))
    block, lines = one(ends)
    block.kind(8).number(0).number(0).number(1).signed(ends[0])  # differences that wrap around
    wrapped = [(b - a + (1 << 63)) % (1 << 64) - (1 << 63) for a, b in zip(ends, ends[1:])]
    block.signed(min(wrapped)).number(8)
    for plane in range(8):
        block.run(bytes(value - min(wrapped) >> 8 * plane & 255 for value in wrapped))
    add("differences that wrap around", lines, block)

    lines = [COMMON[0], ROWS[0], '{"v":1}', "{ }", '{"v":2}', ROWS[1]]
    for cipher in KEY_BYTES:
        for encoding in ("gzip", "zstd", "none"):
            block = Block().shapes('{"MONITOR_TYPE":"net","REPORT_ID":\n,"CREATE_TIME":\n,"IS_BIZ":false,"ms":\n}',
                                   '{"v":\n}').integers([0, 1, 2, 0, 2, 1])
            block.kind(1).text(f"{lines[0]}\n{lines[3]}\n")
            block.kind(2).text("r0\nr1\n").kind(8).number(0).number(0).integers([1732154081000, 1732154081001])
            block.kind(8).number(0).number(0).integers([0, 7]).kind(8).number(0).number(0).integers([1, 2])
            add(f"two shapes, and lines without one, {cipher}, {encoding}", lines, block, count=5,
                fields={"Prism-Cipher": cipher, "Prism-Encoding": encoding})

    def bad(name, why, change=lambda block: None, values=("7",) * 40, **more):
        block, lines = one(values)
        change(block)
        add(name, lines, block, why, **more)

    def constant(block):
        block.kind(0).text("7")

    bad("the form is taken away", "decryptionFailed", constant, sent={"Prism-Form": None})
    bad("more lines than two a row", "countMismatch", constant, said={"lines": 81})
    bad("fewer rows than the header says", "countMismatch", constant, count=41)
    bad("a text of 2 GiB", "tooLarge", constant, said={"text": 1 << 31})
    bad("65,537 words", "tooLarge", constant, said={"words": 65_537})
    bad("4,097 columns", "tooLarge", constant, said={"columns": 4097})
    for more in ({"text": 279 + 1}, {"text": 279 + 80}, {"lines": 39}, {"lines": 41}, {"columns": 0}, {"columns": 2},
                 {"words": 1}, {"lines": 0}):
        bad(f"another number of {more}", "unpackFailed", constant, said=more)
    bad("a column too many", "unpackFailed", lambda block: block.kind(0).text("7").kind(0).text("7"))
    bad("no column", "unpackFailed")
    bad("a kind that is not one", "unpackFailed", lambda block: block.kind(9).text("7"))
    bad("an empty constant", "unpackFailed", lambda block: block.kind(0).text(""), values=("",) * 40)
    bad("a constant that makes 32 MB", "unpackFailed", lambda block: block.kind(0).text("7" * 800_000))
    bad("a word that is not there", "unpackFailed",
        lambda block: block.kind(3, words=1).number(1).text("7\n").integers([0] * 39 + [1]))
    bad("a word below 0", "unpackFailed",
        lambda block: block.kind(3, words=1).number(1).text("7\n").integers([0] * 39 + [-1]))
    bad("an empty word", "unpackFailed",
        lambda block: block.kind(3, words=1).number(1).text("\n").integers([0] * 40), values=("",) * 40)
    bad("more words than the head says", "unpackFailed",
        lambda block: block.kind(3, words=1).number(2).text("7\n8\n").integers([0] * 40))
    bad("more words in a text than its number", "unpackFailed",
        lambda block: block.kind(3, words=1).number(1).text("7\n8\n").integers([0] * 40))
    bad("fewer values than rows", "unpackFailed", lambda block: block.kind(1).text("7\n" * 39))
    bad("more values than rows", "unpackFailed", lambda block: block.kind(1).text("7\n" * 41))
    bad("a value without its end", "unpackFailed", lambda block: block.kind(1).text("7\n" * 39 + "7"))
    bad("a mode that is not one", "unpackFailed", lambda block: block.kind(8).number(0).number(0).number(3).signed(0))
    bad("integers of nine bytes", "unpackFailed",
        lambda block: block.kind(8).number(0).number(0).integers([7] * 40, width=9))
    bad("bytes that are missing", "unpackFailed", lambda block: block.kind(8).number(0).number(0).integers([7] * 39, width=1))
    bad("bytes behind all columns", "unpackFailed", lambda block: block.kind(0).text("7").run(b"x"))
    bad("far bytes behind all columns", "unpackFailed", lambda block: block.kind(0).text("7").run(b"x" * 256))
    bad("a digit too many", "unpackFailed",
        lambda block: block.kind(7).text("").number(10).number(1).integers([7] * 39 + [10]), values=('"7"',) * 40)
    bad("ids of base 2", "unpackFailed",
        lambda block: block.kind(7).text("").number(2).number(1).integers([1] * 40), values=('"1"',) * 40)
    bad("more least digits than most", "unpackFailed", lambda block: block.kind(8).number(1).number(0).integers([7] * 40))
    bad("nineteen fraction digits", "unpackFailed", lambda block: block.kind(8).number(19).number(19).integers([7] * 40))
    for name, texts, order in (("a shape without rows", ('{"v":\n}', '{"w":\n}'), [1] * 40),
                               ("a shape without values", ('{"v":7}',), [1] * 40),
                               ("a shape that is not there", ('{"v":\n}',), [1] * 39 + [2]),
                               ("a shape below 0", ('{"v":\n}',), [1] * 39 + [-1])):
        block = Block().shapes(*texts).integers(order)
        add(name, ['{"v":7}'] * 40, block.kind(0).text("7").kind(0).text("7"), "unpackFailed", said={"columns": len(texts)})
    return result


folder = pathlib.Path(__file__).parent
for name, vectors in (("packets", taken()), ("packets-refused", refused()), ("receipts", receipts()),
                      ("device-keys", device_keys()), ("sealed-payloads", sealed()),
                      ("dictionaries", dictionaries()), ("columns", columns()), ("headers-refused", headers_refused())):
    (folder / f"{name}.json").write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n")
    print(f"{name}.json: {len(vectors)}")
