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
    return "".join(line + "\n" for line in lines + [fields.get(name, "") for name in names]).encode()


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
    words = dictionary()
    add("unpackFailed", packet("a dictionary that is not named", ROWS[:2], count=2, encoding="zstd", dictionary=words))
    add("unpackFailed", packet("another dictionary than it names", ROWS[:2], count=2, encoding="zstd"),
        **{"Prism-Dictionary": "1"})
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


folder = pathlib.Path(__file__).parent
for name, vectors in (("packets", taken()), ("packets-refused", refused()), ("receipts", receipts()),
                      ("device-keys", device_keys()), ("sealed-payloads", sealed()),
                      ("dictionaries", dictionaries())):
    (folder / f"{name}.json").write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n")
    print(f"{name}.json: {len(vectors)}")
