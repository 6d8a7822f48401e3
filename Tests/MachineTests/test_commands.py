"""The command `run` under a real systemd: a listed unit runs as root, and the daemon that asks for it has no right at all."""

import json
import time
import unittest
import uuid

import machine

SETUP = """
sed -i "s|^#commands:|commands:|; s|^  #allow: [[]]|  allow: [run]|; s|^  #units: .*|  units: [till, fails, absent]|" /etc/prism/prismd.yaml
cat >>/etc/prism/namespaces.d/prism.yaml <<'YAML'
recordIntervalSecond: 1
YAML
install -d /etc/prism/commands
printf '#!/bin/sh\\nid -un; echo "$0"; touch /root/till-ran\\n' >/etc/prism/commands/till
printf '#!/bin/sh\\nfor n in $(seq 3000); do echo "line $n"; done; exit 3\\n' >/etc/prism/commands/fails
printf '#!/bin/sh\\ntouch /root/unlisted-ran\\n' >/etc/prism/commands/unlisted
chmod 755 /etc/prism/commands/*
systemctl daemon-reload
systemctl enable --now prism-run.socket
systemctl restart prismd || { journalctl --no-pager --unit prismd --lines 20; false; }
"""
COLLECTOR = "--config /etc/prism/collector.yaml --namespace prism"


class CommandTests(machine.Case):
    @classmethod
    def prepare(cls, booted):
        booted.install_and_configure(SETUP)
        booted.run("prismctl send --type net --meta '{\"x\":1}'; prismctl flush prism --wait")
        cls.device = booted.reports()[0]["device"]

    def send(self, name):
        """The record of a command `run`, once it has ended."""
        ident = str(uuid.uuid4())
        fields = json.dumps({"name": "run", "args": {"name": name}, "expires": int(time.time() * 1000) + 600_000})
        url = f"http://prism/api/v1/records/prism/prism.command/{ident}?device={self.device}"
        curl = f"curl --silent --fail --max-time 30 --unix-socket {machine.READER}"
        self.machine.run(f"{curl} -X PUT -H 'Content-Type: application/json' -d '{fields}' '{url}'")

        def ended():
            found = json.loads(self.machine.run(f"{curl} '{url}'"))["fields"]
            return found if found.get("state") in ("done", "failed", "refused", "expired") else None

        return self.machine.wait(f"{name} ends", ended)

    def test_1_a_listed_unit_runs_as_root(self):
        """the daemon has no capability and no new privileges; what it asks for runs as root, and its output is the result"""
        number = self.machine.property("prismd", "MainPID")
        status = self.machine.run(f"cat /proc/{number}/status")
        self.assertIn("CapEff:\t" + "0" * 16, status)
        self.assertIn("NoNewPrivs:\t1", status)
        answer = self.send("till")
        self.assertEqual(answer["state"], "done", answer)
        self.assertEqual(answer["result"], {"result": "success", "exit": 0, "output": "root\n/etc/prism/commands/till\n"})
        self.assertEqual(self.machine.run("stat --format %U /root/till-ran"), "root")
        # Again: a unit that ran is started anew.
        self.machine.run("rm /root/till-ran")
        self.assertEqual(self.send("till")["state"], "done")
        self.machine.run("test -e /root/till-ran")

    def test_2_a_unit_that_fails(self):
        """the exit code and the last 8 KiB of output come back, and no failed unit is left"""
        answer = self.send("fails")
        self.assertEqual((answer["state"], answer["result"]["result"], answer["result"]["exit"]), ("failed", "exit-code", 3))
        output = answer["result"]["output"]
        self.assertTrue(output.endswith("line 2999\nline 3000\n"), output[-100:])
        self.assertLessEqual(len(output), 8192)
        self.assertNotIn("prism-command@", self.machine.run("systemctl --failed --plain --no-legend"))

    def test_3_an_unlisted_unit(self):
        """neither the daemon nor the socket starts what root has not named"""
        self.assertEqual(self.send("unlisted")["state"], "refused")
        self.machine.run("test ! -e /root/unlisted-ran")
        answer = self.send("absent")
        self.assertEqual(answer["state"], "failed", answer)
        for name in ["../till", "till.service", "-till", "", "till till", "x" * 65]:
            said = self.machine.run(f"printf '%s\\n' '{name}' | setpriv --reuid prism --regid prism --clear-groups "
                                    "nc -U -N -w 10 /run/prism/run.sock")
            self.assertTrue(said.startswith("refused "), f"{name}: {said}")

    def test_4_the_socket_is_the_daemons(self):
        """no other user of the machine may connect"""
        self.assertEqual(self.machine.run("stat --format '%a %U %G' /run/prism/run.sock"), "600 prism prism")
        asked = self.machine.try_run("echo till | setpriv --reuid 12345 --regid 12345 --clear-groups nc -U -N -w 5 /run/prism/run.sock")
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn("Permission denied", asked.stderr)

    def test_5_a_daemon_that_is_killed(self):
        """the unit that it started is not started again, and the command ends as interrupted"""
        self.machine.run("printf '#!/bin/sh\\necho x >>/root/runs; sleep 5\\n' >/etc/prism/commands/till; rm -f /root/runs")
        waiting = self.machine.start(
            "while [ ! -e /root/runs ]; do sleep 0.1; done; systemctl kill --kill-whom=main --signal=KILL prismd")
        answer = self.send("till")
        waiting.wait(machine.PATIENCE_SECONDS)
        self.assertEqual((answer["state"], answer["result"]), ("failed", "interrupted"))
        self.assertEqual(self.machine.run("cat /root/runs"), "x")

    def test_6_upgrade(self):
        """an upgrade of the package leaves the socket as it is: commands go on"""
        self.machine.run("""
            cd /root && dpkg-deb --raw-extract prism.deb newer
            sed -i 's/^Version: .*/&+1/' newer/DEBIAN/control
            dpkg-deb --root-owner-group -Znone --build newer newer.deb >/dev/null && rm -r newer
            apt-get install --yes /root/newer.deb""", seconds=300)
        self.assertEqual(self.machine.property("prism-run.socket", "ActiveState"), "active")
        self.machine.run("printf '#!/bin/sh\necho newer\n' >/etc/prism/commands/till")
        self.assertEqual(self.send("till")["result"]["output"], "newer\n")

    def test_7_removal(self):
        """the removal of the package takes the socket away, and nothing of it listens any more"""
        self.machine.run("apt-get remove --yes prism")
        self.machine.run("test ! -e /run/prism/run.sock")
        self.assertNotEqual(self.machine.property("prism-run.socket", "ActiveState"), "active")
        self.assertEqual(self.machine.run("systemctl list-sockets --all --plain --no-legend | grep -c prism || true"), "0")


if __name__ == "__main__":
    unittest.main()
