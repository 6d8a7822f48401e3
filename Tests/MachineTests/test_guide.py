"""The guides, followed by somebody who has a clean Debian and nothing else: every block of them that is marked `sh run`
is run, in order, and answers what the block `text answer` below it says (`…` stands for anything)."""

import re
import shutil
import time
import unittest

import machine

def steps(text):
    """The commands of a page with the heading that they stand under and the answer that they promise, or None."""
    heading = ""
    pattern = r"^## ([^\n]+)$|^```sh run\n(.*?)^```\n(?:\s*```text answer\n(.*?)^```\n)?"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        title, commands, answer = match.groups()
        if title:
            heading = title
        else:
            yield heading, commands, answer


def pattern(answer):
    return re.compile(".*?".join(map(re.escape, answer.strip().split("…"))), re.DOTALL)


class Guide:
    """One page, on a machine of its own."""

    @classmethod
    def prepare(cls, booted):
        booted.path("/root/.build/deb").mkdir(parents=True)
        for package in machine.packages():
            shutil.copy(package, booted.path("/root/.build/deb"))
            shutil.copy(package, booted.path("/root"))

    def follow(self, page, least):
        found = list(steps((machine.SOURCE / "docs" / page).read_text()))
        self.assertGreaterEqual(len(found), least, "the page's commands were not found")
        seconds = {}
        for heading, commands, answer in found:
            began = time.monotonic()
            with self.subTest(step=heading, commands=commands.strip()):
                # A reader of a guide types its lines one by one: one that fails doesn't keep the next from running.
                script = 'cd /root; set +eu; exec 2>&1; sudo() { "$@"; }\n' + commands
                ran = self.machine.try_run(script, seconds=300)
                if answer is None:
                    self.assertEqual(ran.returncode, 0, ran.stdout)
                elif not pattern(answer).fullmatch(ran.stdout.strip()):
                    self.fail(f"it answered\n{ran.stdout}\nand not\n{answer}")
            seconds[heading] = seconds.get(heading, 0) + time.monotonic() - began
        for heading, took in [*seconds.items(), ("in all", sum(seconds.values()))]:
            print(f"{page:<20} {heading:<44} {took:6.1f} s", flush=True)


class OperatingTests(Guide, machine.Case):
    def test_every_command_of_the_operators_guide(self):
        """docs/operating.md works as printed, from a clean system to a purged one"""
        self.follow("operating.md", least=15)
        left = self.machine.run(
            "find / -xdev -path /root -prune -o -path /var/lib/dpkg -prune -o -path /var/log -prune "
            "-o -path /var/cache -prune -o -iname '*prism*' -print")
        self.assertEqual(left, "", "the purge has left something behind")


class GettingStartedTests(Guide, machine.Case):
    def test_every_command_of_getting_started(self):
        """docs/getting-started.md works as printed"""
        self.follow("getting-started.md", least=2)
        self.assertEqual([report["meta"].get("ms") for report in self.machine.reports()], [12])


class PagesTests(Guide, machine.Case):
    @classmethod
    def prepare(cls, booted):
        super().prepare(booted)
        booted.run("apt-get install --yes /root/prism_*.deb /root/prism-collector_*.deb", seconds=300)

    def test_every_command_of_the_page_on_metrics(self):
        """docs/metrics.md works as printed"""
        self.follow("metrics.md", least=1)

    def test_every_command_of_the_page_on_the_collector(self):
        """docs/collector.md works as printed"""
        self.follow("collector.md", least=2)


if __name__ == "__main__":
    unittest.main()
