"""Opens packets of version 2 as docs/packet.md says: a reference to start from, or to compare with."""
import hmac, io, json, struct
import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
import prism_columns
from prism_keys import Refused, check, check_headers, cipher_of, context, gunzip, hkdf

LINE_MAX = 10_240


def decrypt(block, key, cipher, associated):
    try:
        if cipher in ("aes-128-gcm", "aes-256-gcm"):
            return AESGCM(key).decrypt(block[:12], block[12:], associated)
        check(cipher == "aes-128-cbc", "header")  # check_mac came before
        decryptor = Cipher(algorithms.AES(key), modes.CBC(block[:16])).decryptor()
        padded, unpadder = decryptor.update(block[16:]) + decryptor.finalize(), padding.PKCS7(128).unpadder()
        return unpadder.update(padded) + unpadder.finalize()
    except (InvalidTag, ValueError):
        raise Refused("decryptionFailed") from None


def unpack(packed, headers, dictionary, size_max):
    encoding, named = headers["Prism-Encoding"], int(headers.get("Prism-Dictionary", 0))
    if encoding == "none":
        return packed
    if encoding == "gzip":
        return gunzip(packed, size_max)
    check(encoding == "zstd", "header")
    try:
        check(packed[:4] == b"\x28\xb5\x2f\xfd", "unpackFailed")
        check(zstandard.get_frame_parameters(packed).dict_id == named, "unpackFailed")
        size = zstandard.frame_content_size(packed)  # -1: the frame does not say it
        check(size >= 0, "unpackFailed")
        check(size <= size_max, "tooLarge")
        words = zstandard.ZstdCompressionDict(dictionary) if named else None
        zstd = zstandard.ZstdDecompressor(dict_data=words, max_window_size=1 << 23)
        # First with a bound, for a frame may make more than it says; then to the end, which the reader does not tell.
        check(len(zstd.stream_reader(io.BytesIO(packed)).read(size + 1)) == size, "unpackFailed")
        stream = zstd.decompressobj()
        plain = stream.decompress(packed)
        check(stream.eof and not stream.unused_data, "unpackFailed")
        return plain
    except zstandard.ZstdError:
        raise Refused("unpackFailed") from None


def rows_of(text):
    check(text[:1] == b"{", "unpackFailed")
    rows, common = [], {}
    for line in text.split(b"\n"):
        check(len(line) <= LINE_MAX, "tooLarge")
        if line.startswith(b'{"$common":{'):
            try:
                value = json.loads(line.decode())
            except (ValueError, RecursionError):
                raise Refused("unpackFailed") from None
            check(list(value) == ["$common"], "unpackFailed")
            common = value["$common"]
        else:
            try:
                rows.append({**common, **json.loads(line.decode())})
            except (ValueError, TypeError, RecursionError):
                raise Refused("metaSyntax") from None
    return rows


def check_mac(headers, bound, body, key):
    if cipher_of(headers, key) == "aes-128-cbc":
        code = hmac.new(hkdf(key, b"prism1 mac"), bound + body, "sha256").hexdigest()
        check(hmac.compare_digest(code.encode(), headers.get("Prism-Mac", "").encode()), "macMismatch")


def open_dictionary(question, namespace, answer, body, key):
    """The dictionary in the answer to GET /prism/dictionary; question and answer are headers."""
    headers = {**question, **answer, "Prism-Namespace": namespace, "Prism-Encoding": "gzip"}
    bound = context(headers)
    check_mac(headers, bound, body, key)
    packed = decrypt(body, key, headers["Prism-Cipher"], bound + b"0")
    return unpack(packed, {"Prism-Encoding": "gzip"}, None, 112_640)


def open_packet(headers, body, key, dictionary=None, size_max=64 << 20):
    check_headers(headers)
    cipher, bound = cipher_of(headers, key), context(headers)
    check_mac(headers, bound, body, key)
    blocks = [body]
    if headers["Content-Type"].endswith("payload"):
        check(len(body) >= 3 and len(body) >= 3 + 4 * body[2], "shortHeader")
        sizes = [struct.unpack_from(">H", body)[0], *struct.unpack_from(f">{body[2]}I", body, 3)]
        start = 3 + 4 * body[2]
        check(start + sum(sizes) == len(body), "lengthMismatch")
        blocks = [body[start + sum(sizes[:n]):start + sum(sizes[:n + 1])] for n in range(len(sizes))]
    packed = [decrypt(block, key, cipher, bound + str(index).encode()) for index, block in enumerate(blocks)]
    head = None
    if "Prism-Form" in headers:
        check(headers["Prism-Form"] == "columns" and len(packed) == 1, "unpackFailed")
        head = prism_columns.head_of(packed[0], int(headers["Prism-Item-Count"]), size_max)
        packed[0] = packed[0][prism_columns.HEAD_BYTES:]
    plain = [unpack(block, headers, dictionary, size_max) for block in packed]
    if head:
        plain[0] = prism_columns.text_of(head, plain[0])
    rows = rows_of(plain[0])
    check(len(rows) == int(headers["Prism-Item-Count"]), "countMismatch")
    check(not headers["Content-Type"].endswith("payload") or len(plain) - 1 == len(rows), "countMismatch")
    return rows, plain[1:]
