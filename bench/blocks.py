"""Blocks of reports as prism-collector stores them (docs/collector.md, "Blocks"), with their lines as rows."""

import collections
import ctypes
import ctypes.util
import json
import struct
import zlib

COLUMNS = ("id", "last", "rows", "text_bytes", "received_first", "received_last", "created_first", "created_last", "types",
           "devices", "sum", "body")
DEVICES_MAX = 64
SLOT = 1_800_000

zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]


def text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def packed(lines):
    """A byte that says rows, and a frame of zstd."""
    plain = "\n".join(lines).encode()
    room = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(plain)))
    count = zstd.ZSTD_compress(room, len(room), plain, len(plain), 1)
    return b"\0" + room.raw[:count], len(plain)


class Packet:
    """Reports that came at once: each is its type, when it was made, its meta in JSON, and its payload or None."""

    def __init__(self, device, namespace, kind, id, received, reports):
        (self.device, self.namespace, self.kind, self.id, self.received, self.reports) = (device, namespace, kind, id, received, reports)


def block(first, packets):
    """A row of the table `blocks` in the order of COLUMNS, and the payloads as (report, checksum, payload)."""
    runs, lines, payloads, names, id = [], [], [], {}, first
    made = [created for packet in packets for _, created, *_ in packet.reports]
    received = [packet.received for packet in packets]
    start = (min(made) // SLOT, min(received) // SLOT)
    for packet in packets:
        sizes = [len(payload or b"") for *_, payload in packet.reports] if packet.kind == "payload" else []
        runs.append(text({"i": id, "n": len(packet.reports), "d": packet.device, "s": packet.namespace, "k": packet.kind,
                          "p": str(packet.id), "r": packet.received, "b": False, "c": 0, "z": sizes}))
        for type, created, meta, payload in packet.reports:
            slots = (created // SLOT - start[0], packet.received // SLOT - start[1])
            names.setdefault(packet.namespace, {}).setdefault(packet.kind, {}).setdefault(type, collections.Counter())[slots] += 1
            lines.append(meta)
            if payload:
                payloads.append((id, zlib.crc32(payload), payload))
            id += 1
    devices = sorted({packet.device for packet in packets})
    (head, _), (body, count) = packed(runs), packed(lines)
    body = struct.pack(">I", len(head)) + head + body
    types = text({namespace: {kind: {type: [number for slots, count in sorted(counts.items()) for number in (*slots, count)]
                                     for type, counts in sorted(types.items())} for kind, types in sorted(kinds.items())}
                  for namespace, kinds in sorted(names.items())})
    devices = text(devices) if len(devices) <= DEVICES_MAX else None
    numbers = (first, id - 1, len(lines), count, min(received), max(received), min(made), max(made))
    sum = zlib.crc32(body, zlib.crc32(f"{types}\n{devices or '-'}\n".encode(), zlib.crc32(struct.pack("<8q", *numbers))))
    return (*numbers, types, devices, sum, body), payloads
