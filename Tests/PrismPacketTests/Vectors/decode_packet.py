"""Decodes one packet with Python's cryptography package, as docs/packet.md says. Reads JSON, writes JSON."""
import gzip, hmac, json, struct, sys
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

packet = json.load(sys.stdin)
key, context, body = (bytes.fromhex(packet[name]) for name in ("key", "context", "body"))
cbc = packet["cipher"] == "aes-128-cbc"


def block(data, index):
    if not cbc:
        return gzip.decompress(AESGCM(key).decrypt(data[:12], data[12:], context + str(index).encode()))
    decryptor = Cipher(algorithms.AES(key), modes.CBC(data[:16])).decryptor()
    padded = decryptor.update(data[16:]) + decryptor.finalize()
    unpadder = padding.PKCS7(128).unpadder()
    return gzip.decompress(unpadder.update(padded) + unpadder.finalize())


if cbc:
    mac_key = HKDF(hashes.SHA256(), 32, None, b"prism1 mac").derive(key)
    assert hmac.compare_digest(hmac.new(mac_key, context + body, "sha256").hexdigest(), packet["mac"])

payloads = []
if packet["kind"] == "meta":
    metas = block(body, 0)
else:
    meta_bytes, count = struct.unpack_from(">HB", body)
    lengths = struct.unpack_from(f">{count}I", body, 3)
    start = 3 + 4 * count
    metas = block(body[start:start + meta_bytes], 0)
    start += meta_bytes
    for index, length in enumerate(lengths):
        payloads.append(block(body[start:start + length], index + 1).hex())
        start += length
    assert start == len(body)
json.dump({"metas": metas.decode().split("\n"), "payloads": payloads}, sys.stdout)
