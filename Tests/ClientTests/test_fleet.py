"""Planted bugs in five languages, in a simulated month: groups, rates and states at the collector (docs/reliability.md).

Programs with two bugs each are built in five versions, stripped, with their debug files apart. Three real daemons take their real
crashes. Simulated devices repeat these over a month by the collector's clock, which clock.c moves. PRISM_DEVICES sets how many
devices there are, PRISM_SEED repeats a run.
"""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import time
import unittest
from collections import Counter
from pathlib import Path

import planted
from fleet import DAY, DAYS, HOUR, YEAR, Crash, Device, Figures, Month, Sender, figures
from planted import APP, KEYS, NUMBERS, VERSIONS
from rig import PROGRAMS, ROOT, Rig, seed, until

DEVICES = int(os.environ.get("PRISM_DEVICES", "50"))
DAEMONS = ["real-1", "real-2", "real-3"]
LATE = {3: 12, 5: 27}
"""The days on which debug files come of versions that crashed before."""
FIXED_DAY = 14
AWAY = range(10, 25)


class Fleet(Rig):
    """Three daemons and a collector whose clock is set by hand."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = start
        self.set_clock(start)

    def set_clock(self, now: int) -> None:
        self.behind = int(time.time() - now / 1000) * 1000
        with open(self.folder / "clock", "r+b" if (self.folder / "clock").exists() else "wb") as file:
            file.write((self.behind // 1000).to_bytes(8, sys.byteorder))

    @property
    def now(self) -> int:
        """By the collector's clock, milliseconds since 1970."""
        return int(time.time() * 1000) - self.behind

    def __enter__(self) -> "Fleet":
        try:
            subprocess.run([PROGRAMS / "prismctl", "keys", "new", self.folder / "main.key"], check=True, capture_output=True)
            source, library = Path(__file__).with_name("clock.c"), self.folder / "clock.so"
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", library], check=True)
            self.start_collector()
            for name in DAEMONS:
                self.start_real(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def start_collector(self) -> None:
        (self.folder / "collector").mkdir(mode=0o700, exist_ok=True)
        self.collector = self._spawn(
            "prism-collector", "--listen", f"127.0.0.1:{self.port}", "--key", f"main={self.folder}/main.key", "--state",
            f"{self.folder}/collector", environment={
                "LD_PRELOAD": f"{self.folder}/clock.so", "PRISM_CLOCK_BEHIND": f"{self.folder}/clock"})
        until("the collector serves", lambda: self.reader("GET", "/session") is not None, explain=self.logs)

    def restart_collector(self) -> None:
        self.collector.terminate()
        self.collector.wait()
        self.start_collector()

    def start_real(self, name: str) -> None:
        place = self.folder / name
        for folder in ("namespaces.d", "state", "crashes", "spool"):
            (place / folder).mkdir(mode=0o700, parents=True)
        (place / "prismd.yaml").write_text(
            f"ingest: {{socket: {place}/ingest.sock}}\ncontrol: {{socket: {place}/control.sock}}\n"
            f"crashSpool: {{folder: {place}/crashes}}\ndevice: {{id: {name}}}\nstate: {place}/state\n"
            f"keys: [{{id: main, file: {self.folder}/main.key}}]\n")
        (place / "namespaces.d/prism.yaml").write_text(
            f"url: http://127.0.0.1:{self.port}\nperiodicTimerSecond: 1\n"
            "monitorList: [{type: appCrash, isUploadPayload: true, isRealtime: true}, {type: appHealth}]\n")
        self.ingest = str(place / "ingest.sock")
        self._spawn("prismd", "--config", f"{place}/prismd.yaml", log=name)
        until(f"{name} serves", self._serves, explain=self.logs)

    def environment(self, name: str) -> dict[str, str]:
        place = self.folder / name
        return {"PRISM_CRASH_SPOOL": f"{place}/crashes", "PRISM_INGEST": f"{place}/ingest.sock", "PRISM_SPOOL": f"{place}/spool",
                "PYTHONPATH": str(ROOT / "clients/python/src"), "SWIFT_BACKTRACE": "enable=no"}

    def reader(self, method: str, path: str, body: dict | None = None) -> dict | None:
        """An answer of the API to the owner; nothing while the collector does not answer."""
        text = json.dumps(body) if body is not None else None
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(60)
            try:
                line.connect(str(self.folder / "collector/reader.sock"))
            except OSError:
                return None
            connection = http.client.HTTPConnection("localhost")
            connection.sock = line
            connection.request(method, f"/api/v1{path}", text, {"Content-Type": "application/json"} if text else {})
            answer = connection.getresponse()
            found = answer.read()
        if answer.status != 200:
            raise AssertionError(f"{method} {path}: {answer.status} {found!r}")
        return json.loads(found)

    def groups(self, crashes: int) -> list[dict]:
        """All groups once that many crashes are in them."""
        def listed() -> list[dict]:
            return self.reader("GET", "/crashes?since=0&limit=1000")["groups"]
        until(f"{crashes} crashes are grouped", lambda: sum(group["total"] for group in listed()) == crashes,
              explain=lambda: f"{[(group['frame'], group['total']) for group in listed()]}")
        return [self.reader("GET", f"/crashes/{group['fingerprint']}") for group in listed()]

    def change(self, group: dict, **words: object) -> None:
        self.reader("POST", f"/crashes/{group['group']['fingerprint']}/state", words)

    def add_symbols(self, builds: list[planted.Build], versions: set[int]) -> None:
        files = [str(one.debug) for one in builds if one.debug and one.version in versions]
        subprocess.run([PROGRAMS / "prism-collector", "symbols", "add", *files, "--state", self.folder / "collector", "--key",
                        f"main={self.folder}/main.key"], check=True, capture_output=True)


class FleetTests(unittest.TestCase):
    def setUp(self) -> None:
        self.choice = random.Random(seed())
        self.maxDiff = None

    def collect(self, fleet: Fleet) -> dict[tuple[str, int, str], Crash]:
        """Runs all programs into their bugs, beside the real daemons. The result is what the collector got."""
        languages, versions = {one.app: one.language for one in self.builds}, {number: version for version, number in NUMBERS.items()}
        found: dict[str, Crash] = {}
        for bug in "AB":
            for place, one in enumerate(self.builds):
                planted.crash(one, bug, fleet.environment(DAEMONS[place % len(DAEMONS)]))
            count = 2 * (len(found) + len(self.builds))
            until("all arrive", lambda: len(fleet.reports(type="appCrash")) == count, explain=fleet.logs)
            for report in fleet.reports(type="appCrash"):
                meta = report["meta"]
                crash = found.setdefault(meta["REPORT_ID"], Crash(languages[meta["APP_NAME"]], versions[meta["APP_VERSION"]], bug, {}))
                crash.template[report["kind"]] = (meta, fleet.payload(report) if report["kind"] == "payload" else b"")
                crash.device = report["device"]
        return {(crash.language, crash.version, crash.bug): crash for crash in found.values()}

    def devices(self) -> list[Device]:
        """The first ones have faults."""
        languages = sorted({one.language for one in self.builds})
        devices = [Device(number, [languages[number % len(languages)], languages[(number + 1 + number // 5) % len(languages)]], self.choice)
                   for number in range(DEVICES)]
        for number, device in enumerate(devices):
            device.languages = list(dict.fromkeys(device.languages))
        for device in devices[:3]:
            device.languages = list(dict.fromkeys(["c", *device.languages]))
            device.upgrades.setdefault("c", [0, 5, 13, 18, 24])
            device.offline = AWAY
        devices[1].offset = -self.start + YEAR // 100  # since its boot in 1970
        devices[2].offset = 5 * YEAR
        devices[3].offset, devices[4].offset = -self.start + DAY, 3 * YEAR
        # Hours that expired: some in the middle of a week, some at the end of one and the begin of the next.
        devices[5].lost = {(4, 1), (4, 2), (17, 0)}
        devices[6].lost = {(6, 1), (6, 2), (7, 0), (7, 1)}
        devices[7].lost = {(day, place) for day in range(12, 17) for place in range(3)}
        # A packet that no one gets: the next one names it.
        devices[8].gap_day, devices[9].gap_day = 21, 22
        devices[8].offline, devices[9].offline = range(22, 26), range(23, 26)  # the collector waits for both at a time
        devices[11].unset = devices[11].offline = range(3, 9)  # then it starts again, and has the time
        return devices

    def is_fixed(self, language: str, bug: str, version: int, day: int) -> bool:
        return (language, bug) == ("c", "A") and day >= FIXED_DAY or (language, bug) == ("python", "B") and version >= 4

    def test_each_bug_is_one_group_and_rates_are_those_of_the_simulation(self) -> None:
        self.start = (int(time.time() * 1000) // DAY - DAYS) * DAY
        began = time.monotonic()
        with Fleet(self.start + HOUR) as fleet:
            (fleet.folder / "programs").mkdir()
            self.builds = planted.build_all(fleet.folder / "programs", self.choice)
            crashes = self.collect(fleet)
            self.say(f"{len(crashes)} real crashes", began)
            fleet.add_symbols(self.builds, set(VERSIONS) - set(LATE))
            key = bytes.fromhex((fleet.folder / "main.key").read_text().strip())[:16]
            sender = Sender(fleet.port, key, lambda: fleet.now)
            month = Month(self.choice, self.start, self.devices(), crashes, self.is_fixed)
            month.happened = [(crash.device, crash) for crash in crashes.values()]
            for day in range(DAYS):
                self.day(day, fleet, month, sender)
            self.say(f"{len(month.happened)} crashes, {len(month.uses)} uses, answers {dict(sender.answers)}", began)
            self.check_groups(fleet, month)
            self.check_rates(fleet, month)
            fleet.restart_collector()
            self.check_groups(fleet, month)
            self.say("all is compared", began)

    def say(self, text: str, began: float) -> None:
        print(f"{time.monotonic() - began:.0f} s: {text}", file=sys.stderr, flush=True)

    # MARK: The month

    def day(self, day: int, fleet: Fleet, month: Month, sender: Sender) -> None:
        away = {device.id for device in month.devices[:3]}
        for device in month.devices:
            forced = [("c", "A")] if device.id in away and day == 11 or device is month.devices[10] and day == 28 else []
            if forced and "c" not in device.languages:
                device.languages.append("c")
                device.upgrades.setdefault("c", [0, 5, 13, 18, 24])
            month.live(device, day, forced)
        fleet.set_clock(self.start + (day + 1) * DAY - 1000)
        sender.send_all(month.devices, day)
        for version, when in LATE.items():
            if day == when:
                fleet.add_symbols(self.builds, {version})
        if day == 5:
            self.note_unnamed(fleet, month)
        if day == FIXED_DAY:
            self.say_fixed(fleet, month)
        if day in (AWAY.stop, 28):
            self.check_states(fleet, month, day)

    def arrived(self, month: Month) -> int:
        """Crashes that no device still holds."""
        return len(month.happened) - sum(
            meta["MONITOR_TYPE"] == "appCrash" for device in month.devices for meta, _ in device.rows["meta"])

    def group(self, groups: list[dict], language: str, bug: str) -> dict:
        found = [group for group in groups if group["key"] == KEYS[language, bug]
                 and any(entry["version"].startswith(f"{APP.format(language)} ") for entry in group["versions"])]
        self.assertEqual(len(found), 1, f"{language} {bug}: {[(group['key'], group['versions']) for group in groups]}")
        return found[0]

    def note_unnamed(self, fleet: Fleet, month: Month) -> None:
        """An operator takes a group on whose build has no debug file yet."""
        groups = [group for group in fleet.groups(self.arrived(month))
                  if [entry["version"] for entry in group["versions"]] == [f"{APP.format('c')} {NUMBERS[3]}"]]
        self.assertEqual(len(groups), 2, "two bugs of a stripped build are two groups")
        crash = next(crash for _, crash in month.happened if (crash.language, crash.version, crash.bug) == ("c", 3, "B"))
        frames = crash.template["meta"][0]["frames"]
        own = next(frame["offset"] for frame in frames if frame.get("module") == "till")
        noted = next(group for group in groups if any(frame.get("offset") == own for frame in group["stack"]))
        fleet.change(noted, assignee="ann")

    def say_fixed(self, fleet: Fleet, month: Month) -> None:
        groups = fleet.groups(self.arrived(month))
        self.assertEqual(self.group(groups, "c", "B")["group"]["assignee"]["text"], "ann", "a note stays when the group gets names")
        fleet.change(self.group(groups, "c", "A"), state="resolved")
        fleet.change(self.group(groups, "python", "B"), state="resolved", build=f"{APP.format('python')} {NUMBERS[4]}")

    def check_states(self, fleet: Fleet, month: Month, day: int) -> None:
        groups = fleet.groups(self.arrived(month))
        group = self.group(groups, "c", "A")
        before = "crashes from before it was resolved, of devices that were offline and have wrong clocks"
        self.assertEqual(group["group"]["state"], "resolved" if day < 28 else "regressed", before if day < 28 else "a new crash")
        self.assertEqual(self.group(groups, "python", "B")["group"]["state"], "resolved", "crashes of versions without the fix only")

    # MARK: The comparison

    def check_groups(self, fleet: Fleet, month: Month) -> None:
        groups = fleet.groups(len(month.happened))
        lines = {(one.language, one.version): one.lines for one in self.builds}
        bugs = sorted({(crash.language, crash.bug) for _, crash in month.happened})
        self.assertEqual(sorted(map(str, (group["key"] for group in groups))), sorted(str(KEYS[bug]) for bug in bugs))
        for language, bug in bugs:
            with self.subTest(language=language, bug=bug):
                group = self.group(groups, language, bug)
                wanted = [(device, crash) for device, crash in month.happened if (crash.language, crash.bug) == (language, bug)]
                self.assertEqual({entry["version"]: entry["count"] for entry in group["versions"]},
                                 Counter(f"{APP.format(language)} {NUMBERS[crash.version]}" for _, crash in wanted))
                self.assertEqual({entry["device"]: entry["count"] for entry in group["devices"]}, Counter(device for device, _ in wanted))
                top = next(frame for frame in group["stack"] if frame["isApp"])
                self.assertEqual(Path(top["file"] or "").name, planted.SOURCES[language][0])
                self.assertIn(top["line"], {lines[language, version][bug] for version in VERSIONS})

    def check_rates(self, fleet: Fleet, month: Month) -> None:
        """Over the month, and over each week of it."""
        for days in [range(DAYS), *(range(first, first + 7) for first in range(0, 28, 7))]:
            with self.subTest(days=days):
                since, until_time = self.start + days.start * DAY, self.start + days.stop * DAY
                ask = lambda: fleet.reader("GET", f"/releases?namespace=prism&since={since}&until={until_time}")  # noqa: E731
                until("all hours are read", lambda: ask()["isWhole"])
                self.compare(fleet, ask(), month, days)

    def compare(self, fleet: Fleet, found: dict, month: Month, days: range) -> None:
        truth = figures(month.uses, days)
        known = figures([use for use in month.uses if not use.is_lost], days)
        lost = {use.device for use in month.uses if use.is_lost and use.day in days}
        self.assertGreaterEqual(found["missing"]["devices"], len(lost), f"{lost} lost hours")
        if len(days) == DAYS:
            self.assertEqual(found["missing"], {"devices": len(lost), "hours": self.lost_hours(month)})
            self.check_comparison(fleet, known, lost)
        releases = {(one["app"], one["version"]): one for one in found["releases"]}
        self.assertEqual(set(releases), set(known))
        whole = Counter()
        for (app, _), sums in known.items():
            whole[app] += sums.seconds
        for release, sums in known.items():
            one = releases[release]
            self.assertEqual(
                {name: one[name] for name in ("seconds", "sessions", "crashedSessions", "crashes", "devices", "crashedDevices")},
                {"seconds": sums.seconds, "sessions": sums.sessions, "crashedSessions": sums.crashed_sessions, "crashes": sums.crashes,
                 "devices": len(sums.devices), "crashedDevices": len(sums.crashed)}, release)
            self.assertAlmostEqual(one["adoption"], sums.seconds / whole[release[0]])
            self.assertAlmostEqual(one["crashFreeSessions"], 1 - sums.crashed_sessions / sums.sessions)
            self.assertAlmostEqual(one["crashFreeHours"], 1 - sums.crashed_seconds / sums.seconds)
            self.compare_devices(one, sums, truth[release], lost, release)
            self.within_missing(one, truth[release], found["missing"]["hours"], release)

    def check_comparison(self, fleet: Fleet, known: dict[tuple[str, str], Figures], lost: set[str]) -> None:
        """Of each version with the one before it."""
        for app in sorted({app for app, _ in known}):
            for one, other in zip(VERSIONS[1:], VERSIONS):
                pair = [known[app, NUMBERS[version]] for version in (one, other)]
                found = fleet.reader("GET", f"/releases/compare?namespace=prism&app={app}&version={NUMBERS[one]}&other={NUMBERS[other]}"
                                     f"&since={self.start}&until={self.start + DAYS * DAY}")
                for name, rates in {
                        "crashesPerHour": [(sums.crashes, sums.seconds / 3600) for sums in pair],
                        "crashedSessions": [(sums.crashed_sessions, sums.sessions) for sums in pair],
                        "crashedDevices": [(len(sums.crashed), len(sums.devices - (lost - sums.crashed))) for sums in pair]}.items():
                    (count, exposure), (other_count, other_exposure) = rates
                    if other_count and exposure and other_exposure:
                        ratio = count / exposure / (other_count / other_exposure)
                        self.assertAlmostEqual(found[name]["ratio"], ratio, msg=f"{app} {NUMBERS[one]} {name}")
                        self.assertTrue(found[name]["low"] <= ratio <= found[name]["high"])

    def lost_hours(self, month: Month) -> int:
        return sum(len(device.lost) + (3 if device.gap_day >= 0 else 0) for device in month.devices)

    def compare_devices(self, one: dict, known: Figures, truth: Figures, lost: set[str], release: tuple[str, str]) -> None:
        """A device that lost hours, and did not say that it crashed, is neither crashed nor healthy."""
        unknown = known.devices & lost - known.crashed
        self.assertGreaterEqual(one["missingDevices"], len(unknown), release)
        healthy = len(known.devices) - len(known.crashed) - one["missingDevices"]
        if one["crashFreeDevices"] is not None:
            self.assertAlmostEqual(one["crashFreeDevices"], healthy / (len(known.devices) - one["missingDevices"]))
        # The true share is between those for which all of them crashed, or not one.
        self.assertLessEqual(healthy, len(truth.devices - truth.crashed), release)
        self.assertGreaterEqual(healthy + one["missingDevices"] + len(truth.devices - known.devices),
                                len(truth.devices - truth.crashed), release)

    def within_missing(self, one: dict, truth: Figures, hours: int, release: tuple[str, str]) -> None:
        """The true share of the time lies between those for which all of the missing hours had a crash, or not one."""
        free, seconds = one["crashFreeHours"] * one["seconds"], one["seconds"]
        share = 1 - truth.crashed_seconds / truth.seconds
        self.assertGreaterEqual(share, free / (seconds + hours * 3600) - 1e-9, release)
        self.assertLessEqual(share, (free + hours * 3600) / (seconds + hours * 3600) + 1e-9, release)


if __name__ == "__main__":
    unittest.main()
