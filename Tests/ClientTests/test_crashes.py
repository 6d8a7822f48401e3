"""Planted bugs, built in five versions with and without symbols, and the groups that their crashes make at the collector."""

import collections
import json
import os
import signal
import subprocess
import unittest
from pathlib import Path

from rig import ROOT, Rig, until

BUILDS = ["-O0", "-O1", "-O2", "-O3", "-Os"]
OWN = "__attribute__((noinline))"
MAIN = """
int main(int count, char **words) {
  prism_crash_options options = PRISM_CRASH_OPTIONS_INIT;
  options.app_name = NAME;
  options.app_version = VERSION_TEXT;
  const char *fault = prism_crash_install(&options);
  if (fault) return 2;
  return words[1][0] == 'A' ? pay(count) : refund(count);
}
"""
PROGRAMS = {
    "c": f"""
#include <prism.h>
#include <stdlib.h>
#if VERSION > 2
{OWN} __attribute__((used)) int filler(int n) {{ return n * VERSION + rand(); }}
#endif
{OWN} static int total(int *cart, int n) {{ return cart[n]; }}
{OWN} static int pay(int n) {{ return total(NULL, n) + n; }}
{OWN} static int check(int n) {{ if (n > 0) abort(); return n; }}
{OWN} static int refund(int n) {{ return check(n + VERSION) + n; }}
""",
    "cpp": f"""
#include <prism.h>
#include <cstdlib>
#if VERSION > 3
{OWN} __attribute__((used)) long filler(long n) {{ return n * VERSION + rand(); }}
#endif
namespace {{
template <class T> struct Cart {{
  T *items;
  {OWN} T total(int n) const {{ return items[n + VERSION]; }}
}};
}}
template <class T> {OWN} int pay(T n) {{ Cart<T> cart{{nullptr}}; return cart.total(n) + 1; }}
struct Till {{ virtual {OWN} int refund(long n, int m) {{ if (n > 0) abort(); return m; }} }};
{OWN} int refund(int n) {{ Till till; return till.refund(n, VERSION) + 1; }}
""",
}
NAMED = {
    ("c", "A"): ["total", "pay", "main", "in c#"], ("c", "B"): ["check", "refund", "main", "in c#"],
    ("cpp", "A"): ["(anonymous)::Cart::total", "pay", "main"], ("cpp", "B"): ["Till::refund", "refund", "main"],
}


class CrashGroupTests(unittest.TestCase):
    folder: Path

    def build(self, language: str, version: int) -> Path:
        program = self.folder / f"{language}{version}"
        source = program.with_suffix(f".{language}")
        source.write_text(PROGRAMS[language] + MAIN)
        library = self.folder / "prism.o"
        if not library.exists():
            subprocess.run(["cc", "-O2", "-c", ROOT / "clients/c/prism.c", "-o", library], check=True)
        subprocess.run(
            ["cc" if language == "c" else "c++", "-g", BUILDS[version - 1], "-fno-optimize-sibling-calls", "-w", f"-DVERSION={version}",
             f'-DNAME="{language}"', f'-DVERSION_TEXT="1.{version}"', "-I", ROOT / "clients/c", source, library, "-pthread", "-o", program],
            check=True)
        return program

    def crash(self, program: Path, bug: str, environment: dict[str, str]) -> None:
        ran = subprocess.run([program, bug], env=environment, capture_output=True)
        self.assertEqual(ran.returncode, -signal.SIGSEGV if bug == "A" else -signal.SIGABRT, f"{program} {bug}")

    def groups(self, rig: Rig) -> list[dict]:
        ask = lambda path: json.loads(subprocess.run(  # noqa: E731
            ["curl", "-s", "--fail", "--unix-socket", f"{rig.folder}/collector/reader.sock", f"http://prism/api/v1{path}"],
            check=True, capture_output=True).stdout)
        return [ask(f"/crashes/{group['fingerprint']}") for group in ask("/crashes?since=0&limit=1000")["groups"]]

    def test_one_bug_in_five_builds_is_one_group_and_two_bugs_without_symbols_are_two(self) -> None:
        with Rig({"prism": "monitorList: [{type: appCrash, isUploadPayload: true, isRealtime: true}]\n"}) as rig:
            self.folder = rig.folder
            environment = {**os.environ, "PRISM_CRASH_SPOOL": str(rig.folder / "crashes")}
            programs = {(language, version): self.build(language, version) for language in PROGRAMS for version in range(1, 6)}
            for program in programs.values():
                for bug in "AB":
                    self.crash(program, bug, environment)
            crashes = len(programs) * 2
            until("all arrive", lambda: len(rig.crashes()) == crashes, explain=rig.logs)
            found = self.groups(rig)
            self.assertEqual(sorted(group["key"] for group in found), sorted(NAMED.values()))
            for group in found:
                self.assertEqual((group["group"]["total"], len(group["versions"])), (5, 5), group["key"])

            for program in programs.values():
                subprocess.run(["strip", program], check=True)
                for bug in "ABAB":
                    self.crash(program, bug, environment)
            crashes += len(programs) * 4
            until("those without symbols arrive", lambda: len(rig.crashes()) == crashes, explain=rig.logs)
            stripped = [group for group in self.groups(rig) if group["key"] not in NAMED.values()]
            # Each bug of each build, at two addresses.
            self.assertEqual([group["group"]["total"] for group in stripped], [2] * 20)
            builds = collections.Counter(group["versions"][0]["version"] for group in stripped)
            self.assertEqual(set(builds.values()), {2}, "two bugs of a build are two groups")


if __name__ == "__main__":
    unittest.main()
