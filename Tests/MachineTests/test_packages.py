"""The packages: what each holds, what it needs, what it is made of; alone, and after the form in which they were one."""

import hashlib
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import machine

NAMES = ["prism", "prism-collector", "prism-doc", "libprism1", "libprism-dev"]
# Debian's library packages that each may need. A device has no use for PostgreSQL's or Kafka's client, nor for what they bring.
LIBRARIES = {
    "prism": {"libc6", "libcurl4", "libdeflate0", "libgcc-s1", "libgnutls30", "libmicrohttpd12", "libsqlite3-0", "libssl3", "libstdc++6",
              "libyaml-0-2", "libzstd1", "zlib1g"},
    "prism-collector": {"libc6", "libcurl4", "libdeflate0", "libgcc-s1", "libgnutls30", "libmicrohttpd12", "libpq5", "librdkafka1",
                        "libsqlite3-0", "libssl3", "libstdc++6", "libyaml-0-2", "libzstd1", "zlib1g"},
    "prism-doc": set(),
    "libprism1": {"libc6"},
    "libprism-dev": {"libprism1"},
}
# What systemd's users and folders need, by debhelper.
OTHERS = {"systemd", "systemd-standalone-sysusers", "systemd-sysusers", "systemd-standalone-tmpfiles", "systemd-tmpfiles",
          "init-system-helpers"}


def field(name, what):
    return machine.run("dpkg-deb", "--field", machine.package(name), what, capture_output=True).stdout.strip()


def needs(name):
    """The packages without which it can't be installed."""
    return {re.split(r"[ (:]", word.strip())[0] for word in re.split(r"[,|]", field(name, "Depends")) if word.strip()}


class Tree:
    """The packages, unpacked."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="prism-packages-")
        for name in NAMES:
            machine.run("dpkg-deb", "--extract", machine.package(name), self.path(name))

    def path(self, name, path=""):
        return pathlib.Path(self.folder.name) / name / path

    def files(self, name):
        return {str(path.relative_to(self.path(name))) for path in self.path(name).rglob("*") if not path.is_dir()}


class ContentTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = Tree()
        cls.addClassCleanup(cls.tree.folder.cleanup)

    def test_libraries(self):
        """a package needs only the libraries that it is for: a device never gets libpq or librdkafka"""
        for name in NAMES:
            with self.subTest(package=name):
                self.assertLessEqual(needs(name) - OTHERS, LIBRARIES[name])
        self.assertIn("libpq5", needs("prism-collector"))
        # What dpkg-shlibdeps was told, by the programs themselves.
        for program in ["prismd", "prismctl"]:
            linked = machine.run("readelf", "--dynamic", self.tree.path("prism", f"usr/bin/{program}"), capture_output=True).stdout
            self.assertNotRegex(linked, r"libpq|librdkafka|libldap|libkrb5")

    def test_places(self):
        """each file is in one package, and what an operator looks for is in the package that it belongs to"""
        all_files = [file for name in NAMES for file in self.tree.files(name)]
        self.assertEqual(len(all_files), len(set(all_files)))
        for name, paths in {
            "prism": ["usr/bin/prismd", "usr/bin/prismctl", "usr/lib/prism/prism-report", "lib/systemd/system/prismd.socket",
                      "etc/prism/prismd.yaml", "usr/share/man/man1/prismctl.1.gz"],
            "prism-collector": ["usr/bin/prism-collector", "lib/systemd/system/prism-collector.service",
                                "etc/prism/collector.yaml", "usr/lib/tmpfiles.d/prism-collector.conf",
                                "usr/share/man/man8/prism-collector.8.gz"],
            "prism-doc": ["usr/share/doc/prism/html/index.html", "usr/share/doc/prism/examples/alerts.yml",
                          "usr/share/doc/prism/examples/grafana-dashboard.json", "usr/share/doc/prism/html/dashboard.png",
                          "usr/share/doc/prism/examples/decoders/prism_packet.py", "usr/share/doc-base/prism-doc.prism"],
            "libprism-dev": ["usr/include/prism.h"],
        }.items():
            for path in paths:
                self.assertIn(path, self.tree.files(name))
        self.assertFalse({path for path in self.tree.files("prism") if "collector" in path})

    def test_version(self):
        """all packages are of one version, which names the commit if that is no release"""
        version = machine.run(machine.SOURCE / "scripts/version", capture_output=True).stdout.strip()
        self.assertEqual({field(name, "Version") for name in NAMES}, {version})
        self.assertRegex(version, r"^\d+\.\d+\.\d+(\+git\d{14}\.[0-9a-f]{8})?$")
        program = machine.run(self.tree.path("prism", "usr/bin/prismd"), "--version", capture_output=True).stdout.split()
        commit = machine.run("git", "-C", machine.SOURCE, "rev-parse", "--short=8", "HEAD", capture_output=True).stdout.strip()
        self.assertEqual(program, ["prismd", version.split("+")[0], f"({commit})"])

    def test_alerts_are_the_tested_ones(self):
        """the alerts of the package are those that the test suites hold"""
        for name in ["alerts.yml", "api.yaml", "grafana-dashboard.json"]:
            self.assertEqual(self.tree.path("prism-doc", f"usr/share/doc/prism/examples/{name}").read_text(),
                             (machine.SOURCE / "docs" / name).read_text())

    def test_pages(self):
        """each link of an installed page leads to a file, and to a heading of it"""
        folder = self.tree.path("prism-doc", "usr/share/doc/prism/html")
        pages = {path.name: path.read_text() for path in folder.glob("*.html")}
        self.assertEqual(len(pages), len(list((machine.SOURCE / "docs").glob("*.md"))) + 4)
        anchors = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in pages.items()}
        for name, text in pages.items():
            links = re.findall(r'(?:href|src)="([^"]+)"', text)
            self.assertGreater(len(links), len(pages) - 1)
            for link in links:
                path, _, anchor = link.partition("#")
                if re.match(r"[a-z]+:", link):
                    continue
                self.assertTrue((folder / (path or name)).exists(), f"{name}: {link}")
                if anchor:
                    self.assertIn(anchor, anchors[path or name], f"{name}: {link}")

    def test_inventory(self):
        """the inventory names each program by its digest, each library that is linked, and the Swift runtime"""
        for name in NAMES:
            if name == "prism-doc":
                continue
            with self.subTest(package=name):
                document = json.loads(self.tree.path(name, f"usr/share/doc/{name}/sbom.spdx.json").read_text())
                self.assertEqual(document["spdxVersion"], "SPDX-2.3")
                self.check_entries(name, document)
                self.check_files(name, document)

    def check_entries(self, name, document):
        entries = {entry["SPDXID"]: entry for entry in document["packages"]}
        known = set(entries) | {entry["SPDXID"] for entry in document["files"]} | {"SPDXRef-DOCUMENT"}
        for relation in document["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, known)
        linked = {entries[relation["relatedSpdxElement"]]["name"] for relation in document["relationships"]
                  if relation["relationshipType"] == "DYNAMIC_LINK"}
        own = needs(name) - OTHERS - {"libprism1"}
        self.assertEqual(linked - {"libc6"}, own - {"libc6"})
        self.assertEqual("swift-runtime" in {entry["name"] for entry in entries.values()}, name in ("prism", "prism-collector"))
        self.assertEqual(next(entry["versionInfo"] for entry in entries.values() if entry["name"] == name), field(name, "Version"))

    def check_files(self, name, document):
        programs = {path for path in self.tree.path(name).rglob("*")
                    if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"}
        found = {self.tree.path(name, entry["fileName"]): entry for entry in document["files"]}
        self.assertEqual(set(found), programs)
        for path, entry in found.items():
            sums = {item["algorithm"]: item["checksumValue"] for item in entry["checksums"]}
            self.assertEqual(sums["SHA256"], hashlib.sha256(path.read_bytes()).hexdigest())


class CollectorMachineTests(machine.Case):
    """A receiver's machine: no daemon, and no command of it."""

    def test_alone(self):
        """the collector's unit starts on a machine of its own, keeps its keys to root, and a purge leaves nothing"""
        shutil.copy(machine.package("prism-collector"), self.machine.path("/root/collector.deb"))
        self.machine.run("apt-get install --yes /root/collector.deb", seconds=300)
        self.assertEqual(self.machine.run("stat --format '%a %U' /etc/prism/keys"), "700 root")
        self.assertEqual(self.machine.run("systemctl is-enabled prism-collector || true"), "disabled")
        self.machine.run("(umask 077; od -An -N16 -tx1 /dev/urandom | tr -d ' \\n' >/etc/prism/keys/main.key)")
        self.machine.run("systemctl enable --now prism-collector")
        self.machine.wait("it takes packets", lambda: self.machine.try_run("curl -sf http://127.0.0.1:8480/readyz").stdout == "ok\n")
        self.assertEqual(self.machine.try_run("command -v prismctl").stdout, "")
        self.machine.run("apt-get remove --yes prism-collector")
        self.assertEqual(self.machine.property("prism-collector", "ActiveState"), "inactive")
        self.assertEqual(self.machine.run("ls /etc/prism/keys /var/lib/private/prism-collector | grep -cE 'main.key|collector.db$'"), "2")
        self.machine.run("apt-get purge --yes prism-collector")
        self.assertEqual(self.machine.run("ls -d /etc/prism /var/lib/prism-collector /var/lib/private/prism-collector "
                                          "/usr/share/doc/prism-collector 2>/dev/null || true"), "")


# The form in which the daemon's package held the receiver too, made of today's two.
MERGE = """
cd /root
dpkg-deb --raw-extract prism.deb one
dpkg-deb --raw-extract collector.deb two
cp -a two/usr two/etc two/lib one/ && cat two/DEBIAN/conffiles >>one/DEBIAN/conffiles
mkdir -p one/usr/share/doc/prism/html && echo old >one/usr/share/doc/prism/html/index.html
sed -i 's/^Version: .*/Version: 0.1.0/; /^Breaks/d; /^Replaces/d' one/DEBIAN/control
sed -i "s/^Depends: .*/Depends: $(dpkg-deb --field collector.deb Depends)/" one/DEBIAN/control
# Its maintainer scripts are those of the daemon.
dpkg-deb --root-owner-group -Znone --build one one.deb >/dev/null
rm -r one two
"""


class UpgradeTests(machine.Case):
    """A machine with the one package of before, with a receiver that runs and a changed configuration."""

    @classmethod
    def prepare(cls, booted):
        for name, file in [("prism", "prism.deb"), ("prism-collector", "collector.deb"), ("prism-doc", "doc.deb")]:
            shutil.copy(machine.package(name), booted.path(f"/root/{file}"))
        booted.run(MERGE)
        booted.run("apt-get install --yes /root/one.deb", seconds=300)
        booted.run("prismctl keys new /etc/prism/keys/main.key; echo '# mine' >>/etc/prism/collector.yaml; "
                   "sed -i 's|^#keys:.*|keys: [{id: main, file: keys/main.key}]|' /etc/prism/prismd.yaml; "
                   "sed -i 's|^#url:.*|url: http://127.0.0.1:8480|' /etc/prism/namespaces.d/prism.yaml; "
                   "systemctl restart prismd; systemctl enable --now prism-collector")

    def send(self, name):
        self.machine.run(f"prismctl send --type net --meta '{{\"ms\":1}}' --report-id {name}; prismctl flush --wait --timeout 60")

    def test_1_the_old_form_refuses_half_an_upgrade(self):
        """the receiver's package alone does not overwrite files of the old one"""
        self.send("before")
        ran = self.machine.try_run("dpkg --install /root/collector.deb")
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("breaks", ran.stdout + ran.stderr)

    def test_2_upgrade(self):
        """an upgrade to the packages keeps configuration, keys and what was stored, and each file has one owner"""
        self.machine.run("apt-get install --yes -o Dpkg::Options::=--force-confold "
                         "/root/prism.deb /root/collector.deb /root/doc.deb", seconds=300)
        owners = self.machine.run("dpkg -S /usr/bin/prism-collector /etc/prism/collector.yaml "
                                  "/lib/systemd/system/prism-collector.service /usr/share/doc/prism/html/index.html "
                                  "/usr/bin/prismd | LC_ALL=C sort -t: -k2")
        self.assertEqual([line.split(":")[0] for line in owners.splitlines()],
                         ["prism-collector", "prism-collector", "prism-collector", "prism", "prism-doc"])
        self.assertIn("# mine", self.machine.run("cat /etc/prism/collector.yaml"))
        self.assertEqual(self.machine.run("systemctl is-enabled prism-collector"), "enabled")
        self.machine.wait("the receiver is up", lambda: self.machine.property("prism-collector", "ActiveState") == "active")
        self.send("after")
        self.assertEqual([report["reportId"] for report in self.machine.reports()], ["before", "after"])
        self.assertEqual(self.machine.run("dpkg --audit"), "")

    def test_3_purge_of_one(self):
        """the purge of the daemon leaves the receiver its configuration and its keys"""
        self.machine.run("apt-get purge --yes prism")
        self.assertEqual(self.machine.run("ls /etc/prism /etc/prism/keys"), "/etc/prism:\ncollector.schema.json\ncollector.yaml\nkeys\n\n/etc/prism/keys:\nmain.key")
        self.machine.run("systemctl restart prism-collector")
        self.assertEqual([report["reportId"] for report in self.machine.reports()], ["before", "after"])

    def test_4_purge_of_both(self):
        """the purge of the other takes the rest"""
        self.machine.run("apt-get purge --yes prism-collector prism-doc; rm -r /root/*.deb")
        left = self.machine.run(
            "find / -xdev -path /var/lib/dpkg -prune -o -path /var/log -prune -o -path /var/cache -prune "
            "-o -iname '*prism*' -print")
        self.assertEqual(left, "")


if __name__ == "__main__":
    unittest.main()
