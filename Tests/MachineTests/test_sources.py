"""The machine's own sources under a real systemd: a coredump, the journal, the host, the crash spool."""

import collections
import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import machine

SOURCES = """
cat >>/etc/prism/prismd.yaml <<'YAML'
journal:
  match: [{unit: talker.service}]
  coredumps: true
  namespace: prism
host: {intervalSecond: 5, namespace: prism}
crashSpool: {folder: /var/spool/prism}
YAML
sed -i 's|^#monitorList:.*|monitorList: [{type: appCrash, isRealtime: true, isUploadPayload: true}, {type: "*"}]|' \
  /etc/prism/namespaces.d/prism.yaml
mkdir -p /etc/systemd/system/prismd.service.d
printf '[Service]\nSupplementaryGroups=systemd-journal\n' >/etc/systemd/system/prismd.service.d/journal.conf
prismctl config check /etc/prism/prismd.yaml
systemctl daemon-reload
systemctl restart prismd
"""

CRASHER = """
__attribute__((noinline)) static void crash_here(volatile int *nowhere) { *nowhere = 1; }
int main(void) { crash_here(0); return 0; }
"""

UNIT = "[Service]\nExecStart={}\nLimitCORE=infinity\n"


@contextlib.contextmanager
def dumps_go_to(booted):
    """The kernel's one core_pattern, which all machines share, is that of systemd of this machine; it runs the helper outside."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="prism-core-"))
    helper = folder / "helper"
    enter = " ".join(machine.NAMESPACES)
    helper.write_text(
        "#!/bin/sh\n"
        f'exec /usr/bin/nsenter --target {booted.init} {enter} -- /lib/systemd/systemd-coredump "$@"\n')
    helper.chmod(0o755)
    before = machine.CORE_PATTERN.read_text()
    # %p is the process's number in its own namespace, which is the machine's.
    machine.CORE_PATTERN.write_text(f"|{helper} %p %u %g %s %t %c %h")
    try:
        yield
    finally:
        machine.CORE_PATTERN.write_text(before)
        shutil.rmtree(folder)


class SourceTests(machine.Case):
    @classmethod
    def prepare(cls, booted):
        booted.install_and_configure(SOURCES)

    def metas(self, kind):
        """The metas of a type at the collector."""
        return [report["meta"] for report in self.machine.reports() if report["type"] == kind and report["kind"] == "meta"]

    def test_coredump(self):
        """a program that dies under systemd is an appCrash with its signal and frames, the whole stack is the payload"""
        program = self.machine.path("/usr/local/bin/crasher")
        subprocess.run(["cc", "-g", "-O0", "-x", "c", "-", "-o", program], input=CRASHER, text=True, check=True)
        self.machine.path("/etc/systemd/system/crasher.service").write_text(UNIT.format("/usr/local/bin/crasher"))
        with dumps_go_to(self.machine):
            self.machine.run("systemctl daemon-reload; systemctl start crasher")
            crash = self.machine.wait("the crash arrives", self.crash)
        meta = crash["meta"]
        self.assertEqual((meta["executable"], meta["command"], meta["unit"]),
                         ("/usr/local/bin/crasher", "crasher", "crasher.service"))
        self.assertEqual((meta["signal"], meta["reason"]), ("11", "SIGSEGV"))
        self.assertIn("crash_here", meta["frames"][0])
        self.assertEqual(meta["SYS_PEER_UNIT"], "crasher.service")
        self.machine.wait("its stack arrives", lambda: [
            report for report in self.machine.reports()
            if report["reportId"] == crash["reportId"] and (report["payloadBytes"] or 0) > 100])

    def crash(self):
        return next((report for report in self.machine.reports()
                     if report["kind"] == "meta" and report["meta"].get("command") == "crasher"), None)

    def test_journal(self):
        """each line of a unit arrives once, though the daemon is killed while they are written"""
        self.machine.path("/etc/systemd/system/talker.service").write_text(
            UNIT.format("/bin/sh -c 'for n in $$(seq 2000); do echo line $$n of talker; done'"))
        self.machine.run("systemctl daemon-reload; systemctl start talker --no-block")
        for _ in range(4):
            self.machine.run("systemctl kill --signal KILL prismd; systemctl reset-failed prismd; systemctl start prismd")
        lines = self.machine.wait("the last line arrives", lambda: self.lines_up_to(2000))
        self.assertEqual(lines, collections.Counter(range(1, 2001)))

    def lines_up_to(self, last):
        said = [re.fullmatch(r"line (\d+) of talker", meta.get("MESSAGE", "")) for meta in self.metas("journal")]
        lines = collections.Counter(int(match[1]) for match in said if match)
        return lines if last in lines else None

    def test_host(self):
        """the sandbox hides nothing of the machine that its reports need"""
        metrics = self.machine.wait("figures arrive", lambda: self.metas("hostMetrics")[1:])[-1]
        self.assertEqual(metrics["processors"], int(self.machine.run("getconf _NPROCESSORS_ONLN")))
        for part in ["load", "processor", "memory", "uptimeSecond"]:
            self.assertIn(part, metrics)
        boots = self.machine.wait("the boot arrives", lambda: self.metas("appBoot"))
        self.assertEqual(len(boots), 1)

    def test_crash_spool(self):
        """a crash that any user left while the daemon was down is taken at its start, with its owner as the sender"""
        self.machine.run("systemctl stop prismd.socket prismd.service")
        self.machine.run("""setpriv --reuid 12345 --regid 12345 --clear-groups sh -c '
umask 027
printf "{\\"spooled\\":1}" >/var/spool/prism/prism.appCrash.spool-1.tmp
mv /var/spool/prism/prism.appCrash.spool-1.tmp /var/spool/prism/prism.appCrash.spool-1.json'""")
        self.machine.run("systemctl start prismd.socket prismd.service")
        meta = self.machine.wait("it arrives", lambda: [
            report["meta"] for report in self.machine.reports() if report["reportId"] == "spool-1"])[0]
        self.assertEqual((meta["spooled"], meta["SYS_PEER_UID"]), (1, "12345"))
        self.assertEqual(self.machine.run("ls /var/spool/prism"), "")


if __name__ == "__main__":
    unittest.main()
