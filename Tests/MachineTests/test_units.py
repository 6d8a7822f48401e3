"""The units under a real systemd: start, sockets, reload, restart under load, watchdog, sandbox, OnFailure, upgrade."""

import pathlib
import re
import subprocess
import unittest

import machine
from load import Load

class UnitTests(machine.Case):
    @classmethod
    def prepare(cls, booted):
        booted.install_and_configure()

    def process(self, field):
        """A line of the daemon's /proc/PID/status."""
        number = self.machine.property("prismd", "MainPID")
        return self.machine.run(f"sed -n 's/^{field}:[[:space:]]*//p' /proc/{number}/status")

    def journal(self, unit="prismd"):
        return self.machine.run(f"journalctl --no-pager --unit {unit}")

    def check_delivered(self, load):
        """What was answered `stored` arrives, once."""
        self.machine.run("prismctl flush prism --wait", seconds=300)
        mine = [report["reportId"] for report in self.machine.reports() if report["reportId"].startswith("client-")]
        self.assertEqual(len(mine), len(set(mine)), "reports came twice")
        self.assertEqual(set(load.ids) - set(mine), set(), "reports are missing")

    def test_start(self):
        """prismd tells that it is ready and what it does, and systemd believes it"""
        self.assertEqual(self.machine.property("prismd", "ActiveState"), "active")
        self.assertEqual(self.machine.property("prismd", "Type"), "notify")
        self.assertIn("taking reports, configuration 1 is in force", self.machine.property("prismd", "StatusText"))
        self.assertEqual(self.machine.run("systemctl is-enabled prismd.service prismd.socket"), "enabled\nenabled")

    def test_sockets(self):
        """both sockets are systemd's, and each has its own mode"""
        self.assertEqual(self.machine.run("stat --format '%a %U %G' /run/prism/*.sock"), "660 prism prism\n666 prism prism")
        self.assertIn("ingest.sock", self.machine.property("prismd.socket", "Listen"))
        # A user that nobody has named is kept out by the mode, and asks in vain.
        asked = self.machine.try_run("setpriv --reuid 12345 --clear-groups prismctl status")
        self.assertEqual(asked.returncode, 77)
        self.assertIn("Permission denied", asked.stderr)

    def test_control_group(self):
        """the members of control.group are answered, and nobody else of the machine"""
        self.machine.run("groupadd --system ops")
        member, stranger = [f"setpriv --reuid 12345 --regid 12345 {groups} prismctl network"
                            for groups in ["--groups $(getent group ops | cut -d: -f3)", "--clear-groups"]]
        self.machine.run(
            "sed -i 's|^#control:|control:|; /^control:/,$s|^  #group: root|  group: ops|' /etc/prism/prismd.yaml; "
            "systemctl reload prismd")
        self.machine.run(member)
        self.assertNotEqual(self.machine.try_run(stranger).returncode, 0)
        self.machine.run("sed -i 's|^  group: ops|  #group: root|' /etc/prism/prismd.yaml; systemctl reload prismd")
        self.assertNotEqual(self.machine.try_run(member).returncode, 0)

    def test_allowed_units(self):
        """a namespace may be one unit's: its processes report, others don't, and each report names its unit"""
        self.machine.run("""
cat >/etc/prism/namespaces.d/shop.yaml <<'YAML'
monitorList: [{type: order}]
allow: {units: ["shop-*.service"]}
YAML
systemctl reload prismd""")
        send = """prismctl send --namespace shop --type order --meta '{"n":1}'"""
        self.assertNotEqual(self.machine.try_run(send).returncode, 0)
        for unit, code in [("shop-pos", 0), ("stop-pos", 1), ("shop-other", 0)]:
            ran = self.machine.try_run(f"systemd-run --wait --collect --quiet --unit {unit} --property DynamicUser=yes {send}")
            self.assertEqual(ran.returncode == 0, code == 0, f"{unit}: {ran.stderr}")
        # A user's manager may call a unit anything: it is no unit of the system's.
        self.machine.run("useradd --create-home someone; loginctl enable-linger someone || true")
        stolen = self.machine.try_run(
            f"systemd-run --wait --collect --quiet --user --machine someone@ --unit shop-pos {send}")
        self.assertNotEqual(stolen.returncode, 0)
        metas = self.machine.run("sqlite3 -readonly /var/lib/prism/prism.db \"select meta from v_meta where namespace = 'shop'\"")
        self.assertEqual(re.findall(r'"SYS_PEER_UNIT":"([^"]*)"', metas), ["shop-pos.service", "shop-other.service"])

    def test_memory(self):
        """the kernel keeps the memory of both daemons, which has keys, from dumps and from programs of their users"""
        for unit in ["prismd", "prism-collector"]:
            process = self.machine.property(unit, "MainPID")
            self.assertNotIn("\nUid:\t0\t", self.machine.run(f"cat /proc/{process}/status"))
            self.assertEqual(self.machine.run(f"stat --format %U /proc/{process}/mem").strip(), "root")

    def test_activation(self):
        """a client wakes a daemon that isn't there, and gets its answer"""
        self.machine.run("systemctl stop prismd.service 2>/dev/null")
        self.assertEqual(self.machine.property("prismd", "ActiveState"), "inactive")
        name = self.machine.run("""prismctl send --type net --meta '{"woken":true}'""")
        self.assertEqual(self.machine.property("prismd", "ActiveState"), "active")
        self.machine.run("prismctl flush prism --wait")
        self.assertIn(name, [report["reportId"] for report in self.machine.reports()])

    def test_reload(self):
        """systemctl reload takes a configuration over, or says that it did not; the daemon itself tells it reloads"""
        file = "/etc/prism/namespaces.d/shop.yaml"
        self.machine.run("systemctl log-level debug")
        self.machine.run(f"echo 'monitorList: [{{type: order}}]' >{file}; systemctl reload prismd")
        self.machine.run("prismctl send --namespace shop --type order --meta '{\"total\":1}'")
        self.machine.wait("RELOADING is told", lambda: "RELOADING=1" in self.machine.run("journalctl --no-pager _PID=1"))
        self.machine.run(f"echo 'nonsense: 1' >>{file}")
        self.assertNotEqual(self.machine.try_run("systemctl reload prismd").returncode, 0)
        self.assertIn("was refused", self.machine.property("prismd", "StatusText"))
        self.assertEqual(self.machine.property("prismd", "ActiveState"), "active")
        self.machine.run(f"rm {file}; systemctl reload prismd; systemctl log-level info")
        self.assertNotIn("refused", self.machine.property("prismd", "StatusText"))

    def test_stop(self):
        """a stop is told, and what was on its way is finished"""
        self.machine.run("systemctl log-level debug; systemctl restart prismd; systemctl log-level info")
        self.machine.wait("STOPPING is told", lambda: "STOPPING=1" in self.machine.run("journalctl --no-pager _PID=1"))
        self.assertIn("prismd stopped", self.journal())

    def test_sandbox(self):
        """seen from inside: no capabilities, a filter of system calls, nothing writable but the state"""
        self.assertEqual({self.process(field) for field in ["CapEff", "CapPrm", "CapBnd", "CapAmb"]}, {"0" * 16})
        self.assertEqual((self.process("Seccomp"), self.process("NoNewPrivs")), ("2", "1"))
        self.assertNotIn("0", self.process("Uid").split())
        number = self.machine.property("prismd", "MainPID")
        inside = f"nsenter --target {number} --mount --"
        self.assertIn("Read-only file system", self.machine.try_run(f"{inside} touch /etc/x").stderr)
        self.assertIn("Read-only file system", self.machine.try_run(f"{inside} touch /usr/x").stderr)
        self.assertEqual(self.machine.run(f"{inside} stat --format %a /home /root"), "0\n0")
        self.assertEqual(self.machine.run(f"{inside} ls /dev | grep -c -E '^(sd|vd|mem|kmsg)' || true"), "0")
        self.assertEqual(self.machine.run("stat --format '%a %U' /var/lib/prism"), "700 prism")
        # libdispatch would raise its threads' priority, and must not complain that it can't.
        self.assertNotIn("priority", self.journal())
        self.assertNotIn("priority", self.journal("prism-collector"))

    def test_keys(self):
        """keys are for root only, and reach both daemons as credentials; a new one takes a restart, and that is said"""
        self.assertEqual(self.machine.run("stat --format '%a %U' /etc/prism/keys /etc/prism/keys/main.key"),
                         "700 root\n600 root")
        for unit in ["prismd", "prism-collector"]:
            self.machine.run(f"test -s /run/credentials/{unit}.service/keys_main.key")
        denied = self.machine.try_run("setpriv --reuid prism --regid prism --clear-groups cat /etc/prism/keys/main.key")
        self.assertIn("Permission denied", denied.stderr)
        self.machine.run("prismctl keys new /etc/prism/keys/later.key")
        self.machine.run("sed -i '/^keys:/s|]$|, {id: later, file: keys/later.key}]|' /etc/prism/prismd.yaml")
        self.assertIn("restart the unit", self.machine.try_run("prismctl reload 2>&1").stdout)
        self.machine.run("systemctl restart prismd")
        self.machine.run("sed -i '/^keys:/s|, {id: later.*|]|' /etc/prism/prismd.yaml; systemctl reload prismd")

    def test_collector_sandbox(self):
        """the collector runs as a user of its own, with nothing"""
        number = self.machine.property("prism-collector", "MainPID")
        status = self.machine.run(f"cat /proc/{number}/status")
        self.assertIn("CapEff:\t" + "0" * 16, status)
        self.assertRegex(status, r"Seccomp:\t2")
        self.assertNotRegex(status, r"Uid:\t0")

    def test_restart_under_load(self):
        """a restart refuses no client and loses nothing"""
        with Load(self.machine.path("/run/prism/ingest.sock")) as load:
            for _ in range(3):
                before = load.count()
                self.machine.run("systemctl restart prismd")
                self.machine.wait("reports are stored again", lambda: load.count() > before + 50)
        self.assertEqual(load.refusals, [])
        self.assertGreater(load.reconnections, 0, "the load has not noticed any restart")
        self.check_delivered(load)

    def test_upgrade_under_load(self):
        """an upgrade of the package refuses no client and loses nothing"""
        newer = self.machine.run("""
            cd /root && dpkg-deb --raw-extract prism.deb newer
            sed -i 's/^Version: .*/&+1/' newer/DEBIAN/control
            dpkg-deb --root-owner-group -Znone --build newer newer.deb >/dev/null && rm -r newer && echo /root/newer.deb""")
        socket = self.machine.run("stat --format %i /run/prism/ingest.sock")
        process = self.machine.property("prismd", "MainPID")
        with Load(self.machine.path("/run/prism/ingest.sock")) as load:
            self.machine.wait("there is load", lambda: load.count() > 50)
            self.machine.run(f"apt-get install --yes {newer}", seconds=300)
            before = load.count()
            self.machine.wait("reports are stored again", lambda: load.count() > before + 50)
        self.assertEqual(load.refusals, [])
        self.assertNotEqual(self.machine.property("prismd", "MainPID"), process, "the daemon is still the old one")
        self.assertEqual(self.machine.run("stat --format %i /run/prism/ingest.sock"), socket)
        self.assertIn("+1", self.machine.run("dpkg-query --show --showformat '${Version}' prism"))
        self.check_delivered(load)

    def test_watchdog(self):
        """a daemon whose store hangs is killed and started anew"""
        folder = "/run/systemd/system/prismd.service.d"
        self.machine.run(f"mkdir -p {folder}; printf '[Service]\\nWatchdogSec=4\\n' >{folder}/fast.conf")
        self.machine.run("systemctl daemon-reload; systemctl restart prismd")
        inner = self.machine.property("prismd", "MainPID")
        # A disk that hangs: a thread that syncs waits, all other threads go on.
        status = self.outer_status(inner)
        hanging = subprocess.Popen(
            ["strace", "--follow-forks", "--quiet=all", "--attach", status.parent.name, "--output", "/dev/null",
             "--trace", "fdatasync,fsync", "--inject", "fdatasync,fsync:delay_enter=300s"], stderr=subprocess.DEVNULL)
        try:
            self.machine.wait("strace holds the daemon", lambda: "TracerPid:\t0\n" not in status.read_text())
            sender = self.machine.start("prismctl send --type net --report-id hung --meta '{\"x\":1}'")
            self.machine.wait("the watchdog barks", lambda: "Watchdog timeout (limit 4s)!" in self.journal())
        finally:
            hanging.kill()
            hanging.wait()
        self.machine.wait("a new daemon", lambda: self.machine.property("prismd", "MainPID") not in ("0", inner))
        sender.wait(machine.PATIENCE_SECONDS)  # a careful client: it may have asked the new daemon by itself
        self.machine.run("prismctl send --type net --report-id hung --meta '{\"x\":1}'")
        self.machine.run(f"rm -r {folder}; systemctl daemon-reload; systemctl restart prismd; prismctl flush prism --wait")
        self.assertEqual([report["reportId"] for report in self.machine.reports()].count("hung"), 1)

    def outer_status(self, inner):
        """The file /proc/PID/status of the machine's daemon, as it is known outside."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue  # it has ended
            if re.search(rf"^NSpid:\t\d+\t{inner}$", text, re.MULTILINE) and "Name:\tprismd\n" in text:
                return status
        raise AssertionError(f"process {inner} of the machine is not found")

    def test_failure_of_a_unit(self):
        """OnFailure turns a unit's failure into an appCrash with its last words, wherever the line stands"""
        self.machine.path("/etc/systemd/system/bad.service").write_text(
            "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo famous last words; exit 3'\n")
        # For all units at once; a report's own failure must not be reported again.
        everywhere = self.machine.path("/etc/systemd/system/service.d")
        everywhere.mkdir()
        (everywhere / "prism.conf").write_text("[Unit]\nOnFailure=prism-report@%n.service\n")
        self.machine.run("systemctl daemon-reload; systemctl start bad.service 2>/dev/null || true")
        crash = self.machine.wait("the report arrives", self.crash_of_bad)
        self.assertEqual(crash["type"], "appCrash")
        self.assertEqual((crash["meta"]["reason"], crash["meta"]["result"]), ("exit code 3", "exit-code"))
        self.assertEqual(crash["meta"]["APP_NAME"], "bad.service", "not a crash of prismctl, which sent it")
        self.machine.wait("its journal arrives", lambda: [
            report for report in self.machine.reports()
            if report["reportId"] == crash["reportId"] and (report["payloadBytes"] or 0) > 0])
        self.assertEqual(self.machine.property("prism-report@bad.service.service", "OnFailure"), "")
        self.machine.run("rm -r /etc/systemd/system/service.d /etc/systemd/system/bad.service; systemctl daemon-reload")

    def crash_of_bad(self):
        return next((report for report in self.machine.reports()
                     if (report["meta"] or {}).get("unit") == "bad.service" and report["kind"] == "meta"), None)


if __name__ == "__main__":
    unittest.main()
