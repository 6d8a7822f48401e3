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
    objects = [str(path) for name in ("PrismClient", "PrismProtocol", "PrismBase") for path in (BUILD / f"{name}.build").glob("*.o")]
    return ["swiftc", "-swift-version", "6", "-I", str(BUILD / "Modules"), str(source), *objects, "-o", str(program)]


class DocumentationTests(unittest.TestCase):
    def run_example(self, folder: Path, language: str, text: str, environment: dict[str, str]) -> str:
        ending = {"python": "py", "swift": "swift", "rust": "rs"}.get(language, language)
        source, program = folder / f"example.{ending}", folder / "example"
        source.write_text(text)
        library = ROOT / "clients/c"
        builds = {
            "c": ["cc", "-Wall", "-Werror", "-I", str(library), str(source), str(library / "build/libprism.a"), "-pthread",
                  "-o", str(program)],
            "swift": swift_command(source, program) if language == "swift" else [],
            "rust": ["rustc", "-D", "warnings", str(source), "-o", str(program)],
            "go": ["go", "build", "-o", str(program), str(source)],
        }
        command = {"python": [sys.executable, str(source)], "js": ["node", str(source)], "sh": ["sh", str(source)]}.get(
            language, [str(program)])
        if language in builds:
            built = subprocess.run(builds[language], capture_output=True, text=True, timeout=600, cwd=folder)
            self.assertEqual(built.returncode, 0, built.stderr)
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_every_example(self) -> None:
        tools = {"c": "cc", "python": "python3", "swift": "swiftc", "go": "go", "js": "node", "rust": "rustc", "sh": "nc"}
        examples = EXAMPLE.findall((ROOT / "docs/clients.md").read_text())
        self.assertEqual({language for language, _, _ in examples}, set(tools))
        with Rig({"shop": "monitorList: [{type: sample}]\n"}) as rig:
            environment = {"PRISM_INGEST": rig.ingest, "PRISM_SPOOL": str(rig.folder / "spool"),
                           "PYTHONPATH": str(ROOT / "clients/python/src")}
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
