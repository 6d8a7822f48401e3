"""Simulated devices: what they do in a month, the packets that tell it (docs/packet.md), and the truth to compare rates with."""

import contextlib
import gzip
import http.client
import json
import random
import struct
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from planted import APP, NUMBERS, VERSIONS

HOUR, DAY = 3_600_000, 86_400_000
DAYS = 30
HOURS_A_DAY = 3
ROWS_MAX = 40
YEAR = 365 * DAY
NAMES = ("Prism-Depends-On", "Prism-Item-Count", "Prism-Ledger", "Prism-Sent-Time")


@dataclass
class Use:
    """An app in an hour of a device. `day`: that on which the collector is to count it."""

    device: str
    app: str
    version: str
    day: int
    seconds: int
    sessions: int
    crashed_sessions: int
    crashes: int
    is_lost: bool = False


@dataclass
class Crash:
    """One of a planted bug. `template`: the rows that a real daemon sent, by kind."""

    language: str
    version: int
    bug: str
    template: dict[str, tuple[dict, bytes]]
    device: str = ""


class Device:
    """One device. Its faults: `offset` of its clock, `offline` days, those of an earlier boot without a clock (`unset`), `lost` hours, and
    a packet that is lost on `gap_day`."""

    def __init__(self, number: int, languages: list[str], choice: random.Random) -> None:
        self.id = f"simulated-{number:02d}"
        self.languages = languages
        self.random = random.Random(choice.getrandbits(64))
        self.offset = 0
        self.offline = self.unset = range(0)
        self.lost: set[tuple[int, int]] = set()
        self.gap_day = -1
        self.book = f"{choice.getrandbits(30):06x}"
        self.number = 0
        self.upgrades = {
            language: [0, *(max(0, 6 * place + choice.randint(-2, 2)) for place in range(1, len(VERSIONS)))] for language in languages}
        self.rows: dict[str, list[tuple[dict, bytes]]] = {"meta": [], "payload": []}
        self.chain: dict[str, str] = {}

    def version(self, language: str, day: int) -> int:
        return max(version for version, first in zip(VERSIONS, self.upgrades[language]) if first <= day)

    def row(self, kind: str, type_name: str, meta: dict, at: int, payload: bytes, day: int) -> None:
        whole = {"MONITOR_TYPE": type_name, "CREATE_TIME": at + self.offset, "IS_BIZ": False, "SYS_DEVICE_ID": self.id, **meta}
        if day in self.unset:
            whole.update(CREATE_TIME=at % (YEAR // 2), SYS_CLOCK_BOOT="earlier")
        self.rows[kind].append((whole, payload))


@dataclass
class Month:
    """What happens: one seed makes one month."""

    choice: random.Random
    start: int
    devices: list[Device]
    crashes: dict[tuple[str, int, str], Crash]
    is_fixed: Callable[[str, str, int, int], bool]
    """Whether a bug does not happen: of language, bug, version and day."""
    uses: list[Use] = field(default_factory=list)
    happened: list[tuple[str, Crash]] = field(default_factory=list)
    """Those that reach the collector, with their device."""

    def live(self, device: Device, day: int, forced: list[tuple[str, str]] = ()) -> None:
        """A day of a device: some hours in which its apps are used, and crash. `forced` crashes happen in the first hour."""
        if day == 0:
            device.number = 1
        for place, hour in enumerate(sorted(device.random.sample(range(1, 23), HOURS_A_DAY))):
            end, is_lost = self.start + day * DAY + hour * HOUR, (day, place) in device.lost or day == device.gap_day
            apps = []
            for language in device.languages:
                version = device.version(language, day)
                bugs = [bug for bug in "AB" if device.random.random() < 0.04 and not self.is_fixed(language, bug, version, day)]
                bugs += [bug for app, bug in forced if app == language and place == 0]
                seconds, sessions = device.random.randrange(600, 3600), device.random.randrange(2, 5)
                apps.append({"name": APP.format(language), "version": NUMBERS[version], "seconds": seconds, "sessions": sessions,
                             "crashedSessions": min(len(bugs), sessions), "crashes": len(bugs)})
                counted = device.unset.stop if day in device.unset else day
                self.uses.append(Use(device.id, APP.format(language), NUMBERS[version], counted, seconds, sessions, min(len(bugs), sessions),
                                     len(bugs), is_lost))
                for bug in bugs:
                    self.crash(device, self.crashes[language, version, bug], end - device.random.randrange(seconds * 1000), day, is_lost)
            meta = {"REPORT_ID": f"{device.id}-{device.number}", "book": device.book, "number": device.number, "seconds": 3600,
                    "part": 0, "apps": apps, "leftOut": 0}
            device.number += 1
            if (day, place) not in device.lost:
                device.row("meta", "appHealth", meta, end, b"", day)

    def crash(self, device: Device, crash: Crash, at: int, day: int, is_lost: bool) -> None:
        name = f"crash-{self.choice.getrandbits(80):020x}"
        if not is_lost:
            self.happened.append((device.id, crash))
        elif device.gap_day < 0:
            return  # with its hour
        for kind, (meta, payload) in crash.template.items():
            own = {key: value for key, value in meta.items()
                   if not key.startswith("SYS_") and key not in ("CREATE_TIME", "MONITOR_TYPE", "IS_BIZ", "breadcrumbs")}
            device.row(kind, "appCrash", {**own, "REPORT_ID": name}, at, payload, day)


class Sender:
    """Seals rows into packets and posts them until they are taken."""

    def __init__(self, port: int, key: bytes, now) -> None:
        self.port, self.key, self.now = port, key, now
        self.answers: Counter[int] = Counter()

    def send_all(self, devices: list[Device], day: int) -> None:
        """What waits on devices that are online."""
        online = [(device, kind) for device in devices if day not in device.offline for kind in device.rows]
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda stream: self.send(*stream, day), online))

    def send(self, device: Device, kind: str, day: int) -> None:
        rows = device.rows[kind]
        while rows:
            part = rows[:ROWS_MAX]
            del rows[:ROWS_MAX]
            number = (max(1, self.now() + device.offset) << 80) | (7 << 76) | (2 << 62) | random.SystemRandom().getrandbits(62)
            packet = str(uuid.UUID(int=number))
            after, device.chain[kind] = device.chain.get(kind), packet
            # A damaged store of the device lost this one; the next one names it.
            if day != device.gap_day:
                self.post(device, kind, part, packet, after)

    def post(self, device: Device, kind: str, rows: list[tuple[dict, bytes]], packet: str, after: str | None) -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            headers = {
                "Prism-Version": "2", "Prism-Namespace": "prism", "Prism-Device-Id": device.id, "Prism-Packet-Id": packet,
                "Prism-Item-Count": str(len(rows)), "Prism-Cipher": "aes-128-gcm", "Prism-Key-Id": "main", "Prism-Encoding": "gzip",
                "Prism-Sent-Time": str(self.now() + device.offset), "Content-Type": f"application/vnd.prism.{kind}",
                **({"Prism-Depends-On": after} if after else {})}
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)) as connection:
                connection.request("POST", f"/prism/{kind}", self.body(kind, headers, rows), headers)
                answer = connection.getresponse()
                text = answer.read()
            self.answers[answer.status] += 1
            if answer.status == 200:
                return
            if answer.status not in (425, 429, 503):
                raise AssertionError(f"{device.id}: {answer.status} {text!r}")
            time.sleep(0.5)
        raise AssertionError(f"{device.id}: its packet was not taken")

    def body(self, kind: str, headers: dict[str, str], rows: list[tuple[dict, bytes]]) -> bytes:
        lines = ["prism2", headers["Prism-Device-Id"], headers["Prism-Namespace"], headers["Prism-Packet-Id"], kind]
        bound = "".join(f"{line}\n" for line in [*lines, *(headers.get(name, "") for name in NAMES)]).encode()
        metas = "\n".join(json.dumps(meta, separators=(",", ":")) for meta, _ in rows).encode()
        blocks = [self.block(text, bound + str(place).encode())
                  for place, text in enumerate([metas, *(payload for _, payload in rows)][:len(rows) + 1 if kind == "payload" else 1])]
        if kind == "meta":
            return blocks[0]
        sizes = struct.pack(f">HB{len(rows)}I", len(blocks[0]), len(rows), *map(len, blocks[1:]))
        return sizes + b"".join(blocks)

    def block(self, text: bytes, bound: bytes) -> bytes:
        nonce = random.SystemRandom().randbytes(12)
        return nonce + AESGCM(self.key).encrypt(nonce, gzip.compress(text, 1, mtime=0), bound)


@dataclass
class Figures:
    """Of a version in some days, from uses."""

    seconds: int = 0
    sessions: int = 0
    crashed_sessions: int = 0
    crashes: int = 0
    crashed_seconds: int = 0
    devices: set[str] = field(default_factory=set)
    crashed: set[str] = field(default_factory=set)

    def add(self, use: Use) -> None:
        self.seconds += use.seconds
        self.sessions += use.sessions
        self.crashed_sessions += use.crashed_sessions
        self.crashes += use.crashes
        self.crashed_seconds += use.seconds if use.crashes else 0
        self.devices.add(use.device)
        if use.crashes:
            self.crashed.add(use.device)


def figures(uses: list[Use], days: range) -> dict[tuple[str, str], Figures]:
    found: dict[tuple[str, str], Figures] = defaultdict(Figures)
    for use in uses:
        if use.day in days:
            found[use.app, use.version].add(use)
    return found
