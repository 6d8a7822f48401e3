"""`make install` into a folder, as a packager of another system would."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import machine


class InstallTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prism-install-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.install()

    def install(self):
        machine.run("make", "--silent", "--no-print-directory", "-C", machine.SOURCE, "install", f"DESTDIR={self.root}",
                    "PREFIX=/opt/prism", stdout=subprocess.PIPE)

    def test_everything_is_below_the_prefix_but_the_configuration(self):
        """programs, units, pages and completions go below PREFIX, the configuration to /etc"""
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}
        for path in ["bin/prismd", "bin/prismctl", "bin/prism-collector", "lib/prism/prism-report",
                     "lib/systemd/system/prismd.socket", "lib/sysusers.d/prism.conf", "lib/tmpfiles.d/prism.conf",
                     "share/man/man8/prismd.8", "share/man/man5/prismd.yaml.5", "share/doc/prism/operating.md",
                     "share/bash-completion/completions/prismctl", "share/zsh/site-functions/_prismctl",
                     "share/fish/vendor_completions.d/prismctl.fish",
                     "share/bash-completion/completions/prism-collector"]:
            self.assertIn("opt/prism/" + path, found)
        others = {path for path in found if not path.startswith("opt/prism/")}
        self.assertEqual({path for path in others if not path.startswith("etc/prism/")}, set())
        self.assertIn("etc/prism/prismd.yaml", others)

    def test_units_name_the_programs_where_they_are(self):
        """a unit calls what was installed with it"""
        for unit in (self.root / "opt/prism/lib/systemd/system").glob("*.service"):
            for line in unit.read_text().splitlines():
                # An instance's program is root's own.
                if line.startswith("Exec") and "%i" not in line:
                    program = line.split("=", 1)[1].split()[0]
                    self.assertTrue(os.access(self.root / program.lstrip("/"), os.X_OK), f"{unit.name}: {line}")

    def test_programs_are_stripped_and_need_no_swift(self):
        """a program holds no symbols, and links no library of a toolchain"""
        for program in (self.root / "opt/prism/bin").iterdir():
            sections = machine.run("readelf", "--section-headers", "--dynamic", "--wide", program, capture_output=True)
            self.assertNotIn(".symtab", sections.stdout)
            self.assertNotIn("libswift", sections.stdout)

    def test_a_configuration_stays(self):
        """installing again leaves the configuration as it is"""
        file = self.root / "etc/prism/prismd.yaml"
        file.write_text("# mine\n")
        self.install()
        self.assertEqual(file.read_text(), "# mine\n")


if __name__ == "__main__":
    unittest.main()
