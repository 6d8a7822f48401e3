"""Receipts, keys of devices and sealed payloads as docs/packet.md describes them."""
import hashlib, hmac, re, zlib
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_BYTES = {"aes-128-gcm": 16, "aes-256-gcm": 32, "aes-128-cbc": 16}  # all ciphers of packets
NUMBER, ID = "0|[1-9][0-9]{0,18}", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
FORMS = {"Prism-Encoding": "gzip|zstd|none", "Prism-Device-Id": "[!-~]{1,256}", "Prism-Packet-Id": ID,
         "Prism-Namespace": "[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "Prism-Item-Count": NUMBER}
OPTIONAL_FORMS = {"Prism-Depends-On": ID, "Prism-Sent-Time": NUMBER, "Prism-Dictionary": NUMBER, "Prism-Form": "columns",
                  "Prism-Ledger": "[!-~]{1,1024}"}
CONTEXT = ("Prism-Depends-On", "Prism-Item-Count", "Prism-Ledger", "Prism-Sent-Time")


class Refused(Exception):
    pass


def check(condition, why):
    if not condition:
        raise Refused(why)


def check_headers(headers):
    """Headers in another form than prism's may be those of an attacker, or mean two things."""
    check(headers.get("Content-Type") in ("application/vnd.prism.meta", "application/vnd.prism.payload"), "contentType")
    for name, form in [*FORMS.items(), *((name, OPTIONAL_FORMS[name]) for name in OPTIONAL_FORMS if name in headers)]:
        check(re.fullmatch(form, headers.get(name, "")), "header")


def cipher_of(headers, key):
    cipher = headers.get("Prism-Cipher")
    check(cipher in KEY_BYTES, "header")
    check(len(key) == KEY_BYTES[cipher], "keyLength")
    return cipher


def hkdf(key, info, salt=None, count=32):
    return HKDF(hashes.SHA256(), count, salt, info).derive(key)


def context(headers):
    lines = ["prism2", headers["Prism-Device-Id"], headers["Prism-Namespace"], headers["Prism-Packet-Id"]]
    lines += [headers["Content-Type"].rsplit(".", 1)[1]] + [headers.get(name, "") for name in CONTEXT]
    lines += [headers["Prism-Form"]] if "Prism-Form" in headers else []
    return "".join(line + "\n" for line in lines).encode()


def receipt(headers, answer, key):
    code = hmac.new(hkdf(key, b"prism2 receipt"), context(headers) + hashlib.sha256(answer).digest(), "sha256")
    return f"{headers['Prism-Packet-Id']} {code.hexdigest()}"


def is_receipt(text, headers, answer, key):
    return hmac.compare_digest(text, receipt(headers, answer, key))


def device_key(master, key_id, device, cipher):
    check(cipher in KEY_BYTES, "header")
    return hkdf(master, b"prism device\0" + device.encode(), key_id.encode(), KEY_BYTES[cipher])


def gunzip(packed, size_max):
    """One member and nothing behind it, of at most size_max bytes."""
    stream = zlib.decompressobj(31)
    try:
        plain = stream.decompress(packed, size_max + 1)
    except zlib.error:
        raise Refused("unpackFailed") from None
    check(len(plain) <= size_max, "tooLarge")
    check(stream.eof and not stream.unused_data, "unpackFailed")
    return plain


def unseal(sealed, private_key, device, namespace, report, size_max=64 << 20):
    check(sealed[:4] == b"PSL1" and len(sealed) >= 52, "shortHeader")
    check(len(private_key) == 32, "keyLength")
    key, own = X25519PrivateKey.from_private_bytes(private_key), sealed[4:36]
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    associated = f"prism2 seal\n{device}\n{namespace}\n{report}\n".encode()
    try:  # a public key of low order makes no secret: ValueError
        material = hkdf(key.exchange(X25519PublicKey.from_public_bytes(own)), b"prism2 seal", own + public, 44)
        packed = AESGCM(material[:32]).decrypt(material[32:], sealed[36:], associated)
    except (InvalidTag, ValueError):
        raise Refused("decryptionFailed") from None
    return gunzip(packed, size_max)
