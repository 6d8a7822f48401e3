"""A clean Debian 12 with systemd as PID 1, in namespaces of its own: booted in a second, gone with its first process.

Nothing of it is simulated, but for the network (loopback only) and the disk (memory)."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
PACKAGES = SOURCE / ".build" / "deb"
SUITE = "bookworm"
MIRROR = os.environ.get("PRISM_DEBIAN_MIRROR", "http://deb.debian.org/debian")
# What a person would have beside a minimal system; the package's own dependencies come by apt.
EXTRA = ["systemd", "systemd-sysv", "systemd-coredump", "libdw1", "dbus", "curl", "netcat-openbsd", "sqlite3"]
PATIENCE_SECONDS = 120
# Where the installed collector listens.
READER = "/var/lib/prism-collector/reader.sock"
# The kernel's, also for programs of the machines.
CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
NAMESPACES = ["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net"]
# The collector of this machine takes the reports.
CONFIGURE = """
prismctl keys new /etc/prism/keys/main.key
sed -i 's|^#keys:.*|keys: [{id: main, file: keys/main.key}]|' /etc/prism/prismd.yaml
sed -i 's|^#url:.*|url: http://127.0.0.1:8480|; s|^#periodicTimerSecond:.*|periodicTimerSecond: 1|' \\
  /etc/prism/namespaces.d/prism.yaml
systemctl enable --now prism-collector
systemctl restart prismd
"""


class NotHere(Exception):
    """This computer can't boot a machine; the text says why."""


def package(name="prism"):
    """A package under test: what `make deb` left."""
    found = sorted(PACKAGES.glob(f"{name}_*.deb"))
    if len(found) != 1:
        raise SystemExit(f"machine tests: {PACKAGES} must hold one {name}_*.deb; run make deb")
    return found[0]


def packages():
    """The daemon's and the receiver's."""
    return [package(), package("prism-collector")]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, text=True, **options)


# The tree that machines are booted from


def tree():
    """A folder with the suite's minimal system, and the packages that ours depends on in apt's cache. Made once."""
    depends = [run("dpkg-deb", "--field", path, "Depends", capture_output=True).stdout for path in packages()]
    name = hashlib.sha256(repr((SUITE, EXTRA, depends)).encode()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "prism"
    folder = cache / f"{SUITE}-{name}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as new:
            make_tree(pathlib.Path(new) / "root")
            with contextlib.suppress(OSError):  # another run was faster: its tree is as good
                (pathlib.Path(new) / "root").rename(folder)
    return folder


def make_tree(root):
    say(f"making a clean {SUITE} for the machines, once (half a minute)")
    before = CORE_PATTERN.read_text()
    try:
        run("debootstrap", "--variant=minbase", "--include=" + ",".join(EXTRA), SUITE, root, MIRROR, capture_output=True)
        names = [pathlib.Path(shutil.copy(path, root)).name for path in packages()]
        run("chroot", root, "apt-get", "install", "--download-only", "--yes", *[f"/{name}" for name in names],
            capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotHere(f"no clean {SUITE} can be made from {MIRROR}: {getattr(error, 'stderr', '') or error}") from error
    finally:
        CORE_PATTERN.write_text(before)  # the package systemd-coredump has set it, and there is one for all machines
    for name in names:
        (root / name).unlink()
    (root / "etc/machine-id").write_text("")  # each boot finds its own
    for unit in ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer"]:
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    # It would set the kernel's one core_pattern, which is the host's too.
    (root / "etc/sysctl.d/50-coredump.conf").symlink_to("/dev/null")


def say(text):
    print(f"machine tests: {text}", file=sys.stderr, flush=True)


# A machine


class Machine:
    def __init__(self):
        if os.geteuid() != 0:
            raise NotHere("only root may make namespaces")
        lower = tree()
        self.cgroup = own_cgroup()
        enter = f'echo $$ >"{self.cgroup}/cgroup.procs"; exec unshare "$@"'
        self.log = tempfile.NamedTemporaryFile(prefix="prism-machine-", suffix=".log")
        self.outer = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "sh", "-c", enter, "sh", *NAMESPACES, "--fork", "--kill-child",
             "--propagation", "private", "sh", str(HERE / "boot.sh"), str(lower)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.wait("systemd is up", self.is_up)
        except BaseException:
            self.stop()
            raise

    def is_up(self):
        if self.outer.poll() is not None:
            raise NotHere(f"systemd can't be booted here: {pathlib.Path(self.log.name).read_text().strip()}")
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text().split()
        self.init = int(children[0]) if children else None
        return self.init and self.try_run("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def stop(self):
        self.outer.kill()
        self.outer.wait()
        self.log.close()
        # The kernel takes a moment to let go of the last process.
        wait("the machine's processes are gone", lambda: not remove_cgroup(self.cgroup))

    def shell(self, script):
        """The command line that runs a shell script as the machine's root."""
        return ["nsenter", "--target", str(self.init), *NAMESPACES, "--", "/usr/bin/env", "-i", "HOME=/root", "TERM=dumb",
                "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                "/bin/bash", "-euo", "pipefail", "-c", script]

    def try_run(self, script, seconds=PATIENCE_SECONDS):
        return subprocess.run(self.shell(script), capture_output=True, text=True, timeout=seconds, cwd="/")

    def start(self, script):
        """Runs the script beside us."""
        return subprocess.Popen(self.shell(script), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")

    def run(self, script, **options):
        """The script's output. Fails where it fails, or a command of it does."""
        ran = self.try_run(script, **options)
        if ran.returncode != 0:
            raise AssertionError(f"`{script}` ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout.strip()

    def install_and_configure(self, more=""):
        """Both packages, with a key and the collector of this machine, and the lines `more` of configuration."""
        for path, name in zip(packages(), ["prism.deb", "collector.deb"]):
            shutil.copy(path, self.path(f"/root/{name}"))
        self.run("apt-get install --yes /root/prism.deb /root/collector.deb", seconds=300)
        self.run(CONFIGURE + more)

    def http(self, url):
        """The body of a GET over the machine's own loopback."""
        return run("nsenter", "--target", self.init, "--net", "curl", "--silent", "--fail", "--max-time", "30", url,
                   capture_output=True).stdout

    def reports(self):
        """Every report that the machine's collector has stored."""
        reports, after = [], 0
        while True:
            page = json.loads(self.run(
                f"curl --silent --fail --max-time 30 --unix-socket {READER} 'http://prism/reports?limit=1000&after={after}'"))
            if not page["reports"]:
                return reports
            reports += page["reports"]
            after = page["next"]

    def path(self, path):
        """A file of the machine, for those outside."""
        return pathlib.Path(f"/proc/{self.init}/root") / path.lstrip("/")

    def property(self, unit, name):
        return self.run(f"systemctl show --value --property {name} {unit}")

    def wait(self, what, condition):
        return wait(what, condition, lambda: self.try_run("journalctl --no-pager --lines 30").stdout)


class Case(unittest.TestCase):
    """Tests that share a machine, in the order of their names."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.machine = Machine()
        except NotHere as reason:
            say(f"*** SKIPPED: {cls.__name__}: {reason} ***")
            raise unittest.SkipTest(str(reason)) from reason
        cls.addClassCleanup(cls.machine.stop)
        cls.prepare(cls.machine)

    @classmethod
    def prepare(cls, booted):
        """What the tests of a class find installed."""


def wait(what, condition, last_words=lambda: ""):
    """Looks until the condition holds, and answers what it answered."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"this did not come within {PATIENCE_SECONDS} s: {what}\n{last_words()}")


def own_cgroup():
    """A cgroup of the second version, so that machines don't meet in one another's."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            try:
                return tempfile.mkdtemp(dir=place, prefix="prism-machine-")
            except OSError as error:
                raise NotHere(f"no cgroup can be made in {place}: {error}") from error
    raise NotHere("there are no cgroups of the second version")


def remove_cgroup(folder):
    """Answers whether something is left of it."""
    for place, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(place)
    return os.path.exists(folder)
