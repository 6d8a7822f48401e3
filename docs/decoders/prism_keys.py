"""Receipts, keys of devices and sealed payloads as docs/packet.md describes them."""
import gzip, hashlib, hmac
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CONTEXT = ("Prism-Depends-On", "Prism-Item-Count", "Prism-Ledger", "Prism-Sent-Time")


class Refused(Exception):
    pass


def check(condition, why):
    if not condition:
        raise Refused(why)


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
    return hkdf(master, b"prism device\0" + device.encode(), key_id.encode(), 32 if cipher == "aes-256-gcm" else 16)


def unseal(sealed, private_key, device, namespace, report):
    check(sealed[:4] == b"PSL1" and len(sealed) >= 52, "shortHeader")
    key, own = X25519PrivateKey.from_private_bytes(private_key), sealed[4:36]
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    material = hkdf(key.exchange(X25519PublicKey.from_public_bytes(own)), b"prism2 seal", own + public, 44)
    associated = f"prism2 seal\n{device}\n{namespace}\n{report}\n".encode()
    return gzip.decompress(AESGCM(material[:32]).decrypt(material[32:], sealed[36:], associated))
