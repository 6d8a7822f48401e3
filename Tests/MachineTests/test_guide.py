"""The operator's guide, followed by somebody who has a clean Debian and nothing else: every block of it that is marked
`sh run` is run, in order, and answers what the block `text answer` below it says (`…` stands for anything)."""

import re
import shutil
import unittest

import machine

GUIDE = machine.SOURCE / "docs" / "operating.md"


def steps(text):
    """The commands of a page with the heading that they stand under and the answer that they promise, or None."""
    heading = ""
    pattern = r"^## (.+)$|^```sh run\n(.*?)^```\n(?:\s*```text answer\n(.*?)^```\n)?"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        title, commands, answer = match.groups()
        if title:
            heading = title
        else:
            yield heading, commands, answer


def pattern(answer):
    return re.compile(".*?".join(map(re.escape, answer.strip().split("…"))), re.DOTALL)


class GuideTests(machine.Case):
    @classmethod
    def prepare(cls, booted):
        shutil.copy(machine.package(), booted.path("/root/"))

    def test_every_command_of_the_guide(self):
        """every command works as printed, from a clean system to a purged one"""
        found = list(steps(GUIDE.read_text()))
        self.assertGreater(len(found), 20, "the guide's commands were not found")
        for heading, commands, answer in found:
            with self.subTest(step=heading, commands=commands.strip()):
                ran = self.machine.try_run("cd /root; set +e; exec 2>&1\n" + commands, seconds=300)
                if answer is None:
                    self.assertEqual(ran.returncode, 0, ran.stdout)
                elif not pattern(answer).fullmatch(ran.stdout.strip()):
                    self.fail(f"it answered\n{ran.stdout}\nand not\n{answer}")
        self.check_nothing_is_left()

    def check_nothing_is_left(self):
        """The last step of the guide is a purge."""
        left = self.machine.run("find / -xdev \\( -path '/proc' -o -path '/root' -o -path '/var/lib/dpkg' -o -path '/var/log' "
                                "-o -path '/var/cache' -o -path /tmp \\) -prune -o -iname '*prism*' -print")
        self.assertEqual(left, "")


if __name__ == "__main__":
    unittest.main()
