"""A staged rollout with real daemons: what `prismctl status` of each says agrees with the API at each step."""

import os
import unittest

import daemon
import rig

DEVICES = int(os.environ.get("PRISM_ROLLOUT_DEVICES", "12"))
MORE = "remote: {url: URL/prism/config, tokenFile: token, intervalSecond: 10, allow: [maxItem]}"


class RolloutTests(unittest.TestCase):
    def setUp(self):
        self.collector = rig.Collector(senders=True).start()
        self.addCleanup(self.collector.stop)
        self.collector.write("remote.d/shop.yaml", "maxItem: 40\n")
        self.collector.write("remote.d/next/shop.yaml", "maxItem: 77\n")
        self.daemons = []
        for number in range(1, DEVICES):
            self.add(number)

    def add(self, number):
        one = daemon.Daemon(self.collector.folder, f"till-{number:02d}", self.collector.port, MORE)
        self.addCleanup(one.stop)
        self.daemons.append(one.start())

    def change(self, **body):
        return daemon.api(self.collector, "/configuration/rollout", body)

    def agree(self, what, expected):
        """Waits until each daemon has what `expected` says of its name, and has told the collector so."""
        def seen():
            for one in self.daemons:
                one.send()  # the answer to its packet names the version that there is
            page = daemon.api(self.collector, "/configuration?limit=100")
            rows = {row["device"]: row for row in page["devices"]}
            for one in self.daemons:
                (status, row) = (one.status()["remote"], rows.get(one.name))
                staged = one.in_force("shop", "maxItem") == 77
                if row is None or staged != expected(one.name) or row["staged"] != staged:
                    return None
                if (row["version"], row["updateTime"]) != (status["version"], status["updateTime"]) or status["version"] != page["summary"]["version"]:
                    return None
                self.assertEqual(status["updateTime"] % 2, int(staged), one.name)
            return page
        return daemon.wait_until(what, seen, seconds=90)

    def test_each_devices_own_status_agrees_with_the_api_at_each_step(self):
        self.agree("all have the folder's", lambda name: False)
        self.change(action="start", percent=10, groups=["till-03"])
        rollout = daemon.api(self.collector, "/configuration")["rollout"]
        self.assertTrue(1 <= rollout["chosen"] < DEVICES - 1, rollout)
        first = self.staged("10 %", rollout["chosen"])
        self.assertIn("till-03", first)

        rollout = self.change(action="widen", percent=50, groups=["till-03"])
        second = self.staged("50 %", rollout["chosen"])
        self.assertTrue(first <= second, "who had it has it still")
        page = self.agree("50 %, confirmed", lambda name: name in second)
        self.assertEqual((page["rollout"]["given"], page["rollout"]["confirmed"], page["rollout"]["failed"]), (len(second), len(second), 0))

        self.change(action="pause")
        self.add(DEVICES)  # a new device gets what the folder has
        page = self.agree("paused", lambda name: name in second)
        self.assertEqual((page["rollout"]["state"], page["rollout"]["given"]), ("paused", len(second)))

        self.change(action="rollBack")
        page = self.agree("rolled back", lambda name: False)
        self.assertIsNone(page["rollout"])
        self.assertEqual([one["state"] for one in page["history"]], ["rolledBack", "paused", "running", "running"])
        self.assertEqual({one.in_force("shop", "maxItem") for one in self.daemons}, {40})
        self.assertTrue(all(one.status()["remote"]["lastFailed"] is None for one in self.daemons))

    def staged(self, what, count):
        """The devices that have it, once as many have it as the API says that it is for."""
        def seen():
            for one in self.daemons:
                one.send()
            found = {one.name for one in self.daemons if one.in_force("shop", "maxItem") == 77}
            return found if len(found) >= count else None
        found = daemon.wait_until(what, seen, seconds=90)
        self.assertEqual(len(found), count, what)
        self.agree(what, lambda name: name in found)
        return found


if __name__ == "__main__":
    unittest.main()
