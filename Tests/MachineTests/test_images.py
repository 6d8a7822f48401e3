"""The OCI images: read by skopeo, and run by crun as any container engine would, without a capability and read-only."""

import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

import machine

IMAGES = machine.SOURCE / ".build" / "images"
NAMES = ["prism", "prism-collector"]
READER = "/var/lib/prism-collector/reader.sock"


def read(image, entry):
    """A blob, whose name must be its digest."""
    content = (IMAGES / image / "blobs" / "sha256" / entry["digest"].removeprefix("sha256:")).read_bytes()
    assert entry["digest"] == "sha256:" + hashlib.sha256(content).hexdigest(), f"{image}: {entry} is another file"
    assert entry["size"] == len(content), f"{image}: {entry} has another size"
    return content


def manifest(image):
    index = json.loads((IMAGES / image / "index.json").read_text())
    return json.loads(read(image, index["manifests"][0]))


def configuration(image):
    return json.loads(read(image, manifest(image)["config"]))


class Host:
    """A network that only the containers share, and cgroups of the second version, which crun asks for."""

    PREPARE = "mount --make-rprivate / && mount -t cgroup2 cgroup2 /sys/fs/cgroup && ip link set lo up && echo up && exec sleep infinity"

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", self.PREPARE], stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"up\n":
            self.stop()
            raise OSError("no namespaces can be made")
        self.network = f"/proc/{self.holder.pid}/ns/net"

    def crun(self, *words):
        """The command line of crun on this host."""
        return ["nsenter", "--target", str(self.holder.pid), "--mount", "--", "crun", "--cgroup-manager=disabled", *map(str, words)]

    def stop(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Container:
    """An image, unpacked and run by crun in namespaces of its own, but for the network."""

    def __init__(self, image, folder, host, mounts):
        self.host = host
        self.name, self.folder = f"{folder.name}-{image}", folder / image
        self.root = self.folder / "rootfs"
        self.root.mkdir(parents=True)
        for layer in manifest(image)["layers"]:
            read(image, layer)
            blob = IMAGES / image / "blobs" / "sha256" / layer["digest"].removeprefix("sha256:")
            with tarfile.open(blob) as tar:
                tar.extractall(self.root, numeric_owner=True, filter="fully_trusted")
        self.write_bundle(configuration(image)["config"], host.network, mounts)
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(host.crun("run", "--bundle", self.folder, self.name),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def account(self, name):
        for line in (self.root / "etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] == name:
                return {"uid": int(fields[2]), "gid": int(fields[3])}
        raise AssertionError(f"the image has no user {name}")

    def write_bundle(self, config, network, mounts):
        machine.run("crun", "spec", cwd=self.folder)
        spec = json.loads((self.folder / "config.json").read_text())
        user = self.account(config["User"])
        self.user = f"{user['uid']}:{user['gid']}"
        spec["process"].update(terminal=False, user=user, args=config["Entrypoint"] + config["Cmd"], env=config["Env"], cwd="/")
        spec["process"]["capabilities"] = {}
        spec["root"]["readonly"] = True
        spec["linux"].pop("resources", None)
        spec["linux"]["namespaces"] = [
            {"type": "network", "path": network} if space["type"] == "network" else space for space in spec["linux"]["namespaces"]
            if space["type"] != "cgroup"]
        spec["mounts"] = [mount for mount in spec["mounts"] if mount["type"] != "cgroup"]
        for place in config["Volumes"]:
            mounts = {place: self.volume(place), **mounts}
        for place, source in mounts.items():
            spec["mounts"].append({"type": "bind", "source": str(source), "destination": place, "options": ["rbind"]})
        (self.folder / "config.json").write_text(json.dumps(spec))

    def volume(self, place):
        """An engine fills a new volume with what the image has there."""
        source = self.folder / "volumes" / place.replace("/", "-")
        inside = self.root / place.lstrip("/")
        facts = inside.stat()
        shutil.copytree(inside, source)
        os.chown(source, facts.st_uid, facts.st_gid)
        return source

    def run(self, *words):
        ran = subprocess.run(self.host.crun("exec", "--user", self.user, self.name, *words), capture_output=True, text=True,
                             check=False, timeout=60)
        if ran.returncode:
            raise AssertionError(f"{words} ended with {ran.returncode}: {ran.stdout}{ran.stderr}\n{self.last_words()}")
        return ran.stdout

    def last_words(self):
        return (self.folder / "log").read_text()

    def stop(self):
        """As an engine stops it; the exit code."""
        subprocess.run(self.host.crun("kill", self.name, "TERM"), check=False, capture_output=True)
        try:
            return self.process.wait(30)
        finally:
            subprocess.run(self.host.crun("delete", "--force", self.name), check=False, capture_output=True)
            self.log.close()


class LayoutTests(unittest.TestCase):
    def test_layout(self):
        """each blob is what its name says, the layer is the tar that the configuration names, and there is one of each"""
        for image in NAMES:
            with self.subTest(image=image):
                self.assertEqual(json.loads((IMAGES / image / "oci-layout").read_text()), {"imageLayoutVersion": "1.0.0"})
                [layer] = manifest(image)["layers"]
                tar = gzip.decompress(read(image, layer))
                self.assertEqual(configuration(image)["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(tar).hexdigest()])
                self.assertNotEqual(configuration(image)["config"]["User"], "root")
                self.assertEqual(len(list((IMAGES / image / "blobs" / "sha256").iterdir())), 3)

    def test_contents(self):
        """an image has its program and what that is made of; the daemon's has no receiver and no PostgreSQL"""
        for image, has, has_not in [("prism", ["usr/bin/prismd", "usr/bin/prismctl"], ["usr/bin/prism-collector", "libpq"]),
                                    ("prism-collector", ["usr/bin/prism-collector"], ["usr/bin/prismd"])]:
            with self.subTest(image=image):
                blob = IMAGES / image / "blobs" / "sha256" / manifest(image)["layers"][0]["digest"].removeprefix("sha256:")
                with tarfile.open(blob) as tar:
                    names = [name.removeprefix("./") for name in tar.getnames()]
                for path in has + [f"usr/share/doc/{image}/sbom.spdx.json", "etc/ssl/certs/ca-certificates.crt"]:
                    self.assertIn(path, names)
                for path in has_not + ["usr/bin/apt-get", str(machine.SOURCE).lstrip("/"), f"{image}_"]:
                    self.assertFalse([name for name in names if path in name], path)

    def test_another_tool_reads_them(self):
        """skopeo takes the layout, with the version of the package"""
        version = machine.run("dpkg-deb", "--field", machine.package(), "Version", capture_output=True).stdout.strip()
        for image in NAMES:
            with self.subTest(image=image):
                seen = json.loads(machine.run("skopeo", "inspect", f"oci:{IMAGES / image}", capture_output=True).stdout)
                self.assertEqual((seen["Os"], seen["Labels"]["org.opencontainers.image.version"]), ("linux", version))


class RunTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prism-images-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        try:
            self.host = Host()
        except OSError as reason:
            machine.say(f"*** SKIPPED: images can't be run here: {reason} ***")
            raise unittest.SkipTest(str(reason)) from reason
        self.addCleanup(self.host.stop)

    def start(self, image, mounts):
        container = Container(image, self.folder, self.host, mounts)
        self.addCleanup(container.stop)
        return container

    def keys(self, image, account):
        """The folder of keys, which the image's user alone reads."""
        folder = self.folder / f"keys-{image}"
        folder.mkdir(mode=0o700)
        (folder / "main.key").write_text("00112233445566778899aabbccddeeff\n")
        (folder / "main.key").chmod(0o600)
        for path in [folder, folder / "main.key"]:
            os.chown(path, account, account)
        return folder

    def test_route(self):
        """a report goes from the daemon's image to the collector's, whose root folders are read-only, and both stop with 0"""
        with tarfile.open(IMAGES / "prism/blobs/sha256" / manifest("prism")["layers"][0]["digest"].removeprefix("sha256:")) as tar:
            uid = tar.getmember("./var/lib/prism").uid
        for name, text in [("prismd.yaml", "device: {id: container-1}\nkeys: [{id: main, file: keys/main.key}]\n"),
                           ("prism.yaml", "url: http://127.0.0.1:8480\nperiodicTimerSecond: 1\n")]:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o644)
        collector = self.start("prism-collector", {"/etc/prism/keys": self.keys("prism-collector", 64480)})
        daemon = self.start("prism", {"/etc/prism/keys": self.keys("prism", uid),
                                      "/etc/prism/prismd.yaml": self.folder / "prismd.yaml",
                                      "/etc/prism/namespaces.d/prism.yaml": self.folder / "prism.yaml"})
        socket = daemon.folder / "volumes" / "-run-prism" / "control.sock"
        machine.wait("the daemon answers", lambda: socket.exists() or self.ended(daemon), daemon.last_words)
        daemon.run("prismctl", "send", "--type", "net", "--meta", '{"ms":12}', "--report-id", "of-an-image")
        daemon.run("prismctl", "flush", "--wait", "--timeout", "60")
        self.assertIn("delivered", daemon.run("prismctl", "trace", "of-an-image"))
        reader = collector.folder / "volumes" / "-var-lib-prism-collector" / "reader.sock"
        page = machine.run("curl", "--silent", "--fail", "--unix-socket", reader, "http://prism/reports", capture_output=True).stdout
        self.assertEqual([report["reportId"] for report in json.loads(page)["reports"]], ["of-an-image"])
        self.assertEqual((daemon.stop(), collector.stop()), (0, 0))

    def ended(self, container):
        time.sleep(0.05)
        if container.process.poll() is not None:
            raise AssertionError(f"the container has ended: {container.last_words()}")
        return False


if __name__ == "__main__":
    unittest.main()
