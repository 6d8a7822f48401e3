"""Every example of docs/clients.md is run as it is printed, where its tools are, and those about crashes of other places too."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from rig import PROGRAMS, ROOT, Rig, until

EXAMPLE = re.compile(r"^```(\w+) run\n(.*?)^```\n```text answer\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CRASH = re.compile(r"^```(\w+) crash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILD = Path(PROGRAMS)


def swift_command(source: Path, program: Path) -> list[str]:
    objects = [str(path) for name in ("PrismClient", "PrismProtocol", "PrismBase", "CPrism")
               for path in (BUILD / f"{name}.build").glob("*.o")]
    return ["swiftc", "-swift-version", "6", "-I", str(BUILD / "Modules"), "-I", str(ROOT / "Sources/CPrism/include"),
            "-Xcc", f"-fmodule-map-file={BUILD}/CPrism.build/module.modulemap", str(source), *objects, "-o", str(program)]


def crash_program(body: str) -> str:
    return f"#include <prism.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{\n{body}\n  abort();\n}}\n"


def crash_examples() -> list[tuple[str, str, str]]:
    """Where each stands, its language, and its text: of the pages, of the header's comment, and of the empty view of the page."""
    examples = [(page, *found) for page in ("clients.md", "crash-spool.md") for found in CRASH.findall((ROOT / "docs" / page).read_text())]
    header = (ROOT / "clients/c/prism.h").read_text().split("--- Crashes ---")[1].split("*/")[0]
    lines = [line.removeprefix(" *   ") for line in header.splitlines() if line.startswith(" *   ")]
    page = (ROOT / "page/crashes.js").read_text()
    installs, hooks = re.findall(r"prism_crash_install\([^)]*\)", page), re.findall(r"prism\.install_excepthook\([^)]*\)", page)
    return [
        *examples, ("prism.h", "c", crash_program("\n".join(lines))), ("crashes.js", "c", crash_program(f"  {installs[0]};")),
        ("crashes.js", "python", f"import prism\n{hooks[0]}\nraise ValueError('no paper')\n")]


def python_package() -> Path:
    """The wheel that `make clients` made, else the sources."""
    return next((ROOT / ".build/clients").glob("*.whl"), ROOT / "clients/python/src")


class DocumentationTests(unittest.TestCase):
    def check_symbols(self, library: Path) -> None:
        """The library exports its own names only."""
        listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in listed.splitlines()]
        self.assertIn("prism_report@@PRISM_1", names)
        self.assertEqual([name for name in names if not name.startswith(("prism_", "PRISM_1"))], [])

    def run_example(self, folder: Path, language: str, text: str, environment: dict[str, str]) -> str:
        ending = {"python": "py", "swift": "swift", "rust": "rs"}.get(language, language)
        source, program = folder / f"example.{ending}", folder / "example"
        source.write_text(text)
        builds = {
            "c": ["sh", "-c", f"cc -Wall -Werror {source} $(pkg-config --cflags --libs prism) -o {program}"],
            "swift": swift_command(source, program) if language == "swift" else [],
            "rust": ["rustc", "-D", "warnings", str(source), "-o", str(program)],
            "go": ["go", "build", "-o", str(program), str(source)],
        }
        command = {"python": [sys.executable, str(source)], "js": ["node", str(source)], "sh": ["sh", str(source)]}.get(
            language, [str(program)])
        if language in builds:
            built = subprocess.run(
                builds[language], capture_output=True, text=True, timeout=600, cwd=folder, env={**os.environ, **environment})
            self.assertEqual(built.returncode, 0, built.stderr)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_every_example(self) -> None:
        tools = {"c": "cc", "python": "python3", "swift": "swiftc", "go": "go", "js": "node", "rust": "rustc", "sh": "nc"}
        examples = EXAMPLE.findall((ROOT / "docs/clients.md").read_text())
        self.assertEqual({language for language, _, _ in examples}, set(tools))
        with Rig({"shop": "monitorList: [{type: sample}]\n"}) as rig:
            prefix = rig.folder / "usr"
            subprocess.run(
                ["make", "-s", "-C", ROOT / "clients/c", "install", f"PREFIX={prefix}", f"OUT={rig.folder}/build"], check=True,
                capture_output=True)
            environment = {
                "PRISM_INGEST": rig.ingest, "PRISM_SPOOL": str(rig.folder / "spool"), "PYTHONPATH": str(python_package()),
                "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "LD_LIBRARY_PATH": f"{prefix}/lib"}
            self.check_symbols(prefix / "lib/libprism.so")
            for language, text, answer in examples:
                if not shutil.which(tools[language]):
                    print(f"NOT RUN: the example in {language}: there is no {tools[language]}", file=sys.stderr)
                    continue
                with self.subTest(language=language):
                    printed = self.run_example(rig.folder, language, text, environment)
                    wanted = ".+".join(re.escape(part) for part in answer.strip().split("…"))
                    self.assertRegex(printed.strip(), f"^{wanted}$")

    def test_every_crash_example_arrives_at_the_collector(self) -> None:
        examples = crash_examples()
        self.assertEqual([(place, language) for place, language, _ in examples],
                         [("clients.md", "c"), ("crash-spool.md", "sh"), ("prism.h", "c"), ("crashes.js", "c"), ("crashes.js", "python")])
        with Rig({"prism": "monitorList: [{type: appCrash, isUploadPayload: true, isRealtime: true}]\n"}) as rig:
            environment = {
                **os.environ, "PRISM_CRASH_SPOOL": str(rig.folder / "crashes"), "PRISM_INGEST": rig.ingest,
                "PRISM_SPOOL": str(rig.folder / "spool"), "PYTHONPATH": str(python_package())}
            for number, (place, language, text) in enumerate(examples):
                with self.subTest(place=place):
                    source, program = rig.folder / f"crash{number}.{language}", rig.folder / f"crash{number}"
                    source.write_text(text)
                    if language == "c":
                        subprocess.run(
                            ["cc", "-Wall", "-Werror", "-g", "-I", ROOT / "clients/c", source, ROOT / "clients/c/prism.c", "-pthread",
                             "-o", program], check=True)
                    command = {"c": [program], "sh": ["sh", source], "python": [sys.executable, source]}[language]
                    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
                    self.assertEqual(ran.returncode, {"c": -signal.SIGABRT, "sh": 0, "python": 1}[language], ran.stderr)
                    self.assertEqual(ran.stderr.splitlines()[-1:], ["ValueError: no paper"] if language == "python" else [])
                    until("it arrives", lambda: len(rig.crashes()) == number + 1, explain=rig.logs)
                    crash = rig.crashes()[-1]
                    self.assertEqual(crash.get("reason"), {"c": "SIGABRT", "sh": None, "python": "ValueError"}[language])
                    if language == "c":
                        self.assertEqual(crash["APP_NAME"], program.name if place == "crashes.js" else "till")
                        self.assertEqual(crash.get("APP_VERSION"), None if place == "crashes.js" else "2.4.1")
                        own = [frame for frame in crash["frames"] if frame.get("module") == program.name]
                        named = subprocess.run(["addr2line", "-f", "-e", program, own[0]["offset"]], capture_output=True, text=True)
                        self.assertEqual(named.stdout.splitlines()[0], "main")
                        self.assertRegex(own[0]["buildId"], "^[0-9a-f]{40}$")

    def test_a_missing_spool_is_said_in_words(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "crash.c", Path(folder) / "crash"
            source.write_text(crash_examples()[0][2])
            subprocess.run(["cc", "-I", ROOT / "clients/c", source, ROOT / "clients/c/prism.c", "-pthread", "-o", program], check=True)
            ran = subprocess.run([program], env={**os.environ, "PRISM_CRASH_SPOOL": f"{folder}/nothing"}, capture_output=True, text=True)
            self.assertEqual(ran.returncode, -signal.SIGABRT)
            self.assertIn(f"crashes are not reported: the crash spool {folder}/nothing: it is missing", ran.stderr)


if __name__ == "__main__":
    unittest.main()
