"""Every example of docs/clients.md is run as it is printed, where its tools are."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from rig import PROGRAMS, ROOT, Rig

EXAMPLE = re.compile(r"^```(\w+) run\n(.*?)^```\n```text answer\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUILD = Path(PROGRAMS)


def swift_command(source: Path, program: Path) -> list[str]:
    objects = [str(path) for name in ("PrismClient", "PrismProtocol", "PrismBase", "CPrism")
               for path in (BUILD / f"{name}.build").glob("*.o")]
    return ["swiftc", "-swift-version", "6", "-I", str(BUILD / "Modules"), "-I", str(ROOT / "Sources/CPrism/include"),
            "-Xcc", f"-fmodule-map-file={BUILD}/CPrism.build/module.modulemap", str(source), *objects, "-o", str(program)]


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


if __name__ == "__main__":
    unittest.main()
