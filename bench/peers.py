"""What people use today, from Debian (bench/fetch-peers), with the same events. Neither of them answers a sender."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness import ROOT, TOOLS, Cost, Link, Sink, free_port, wait_until

DEBIAN = ROOT / ".build" / "bench" / "peers" / "usr"
LIBRARIES = [DEBIAN / "lib/x86_64-linux-gnu", DEBIAN / "lib/syslog-ng", DEBIAN / "../lib/x86_64-linux-gnu"]

PROMISES = {
    "syslog-ng": "disk-buffer(reliable(yes)): in the kernel before it is sent on; never synced, nobody is answered",
    "rsyslog": "disk queue, queue.syncqueuefiles=off: in the kernel; never synced, nobody is answered",
    "rsyslog, synced": "disk queue, queue.syncqueuefiles=on, checkpoint every 1,000: synced; nobody is answered",
}


class Peer:
    def __init__(self, name, port, link=None):
        self.target = Link.FAR_ADDRESS if link else "127.0.0.1"
        self.near = link.near if link else ()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-peer-"))
        self.input = free_port()
        configuration = self.folder / "conf"
        if name == "syslog-ng":
            configuration.write_text(self._syslog_ng(port))
            command = [DEBIAN / "sbin/syslog-ng", "--foreground", "--no-caps", "--cfgfile", configuration,
                       "--module-path", DEBIAN / "lib/syslog-ng/3.38", "--persist-file", self.folder / "persist",
                       "--pidfile", self.folder / "pid", "--control", self.folder / "ctl"]
        else:
            configuration.write_text(self._rsyslog(port, synced="synced" in name))
            command = [DEBIAN / "sbin/rsyslogd", "-n", "-M", DEBIAN / "lib/x86_64-linux-gnu/rsyslog", "-f", configuration,
                       "-i", self.folder / "pid"]
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [*self.near, *command], stderr=log, stdout=log, env=os.environ | {"LD_LIBRARY_PATH": ":".join(map(str, LIBRARIES))})
        wait_until(self._listens, name)

    def _syslog_ng(self, port):
        return f"""@version: 3.38
options {{ stats-freq(0); flush-lines(1000); }};
source in {{ network(ip("127.0.0.1") port({self.input}) transport(tcp) flags(no-parse) log-iw-size(100000) log-fetch-limit(1000)); }};
destination out {{ network("{self.target}" port({port}) transport(tcp) template("$MSG\\n") time-reopen(1)
  disk-buffer(reliable(yes) disk-buf-size(4294967296) mem-buf-size(67108864) dir("{self.folder}"))); }};
log {{ source(in); destination(out); flags(flow-control); }};
"""

    def _rsyslog(self, port, synced):
        return f"""global(workDirectory="{self.folder}")
module(load="imptcp")
template(name="raw" type="string" string="%rawmsg%\\n")
input(type="imptcp" address="127.0.0.1" port="{self.input}" ruleset="out")
ruleset(name="out" queue.type="Disk" queue.filename="queue" queue.maxdiskspace="4g" queue.dequeuebatchsize="1000"
  queue.syncqueuefiles="{'on' if synced else 'off'}" queue.checkpointinterval="1000" queue.timeoutshutdown="1000") {{
  action(type="omfwd" target="{self.target}" port="{port}" protocol="tcp" template="raw" action.resumeretrycount="-1"
    action.resumeinterval="1")
}}
"""

    def _listens(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the peer ended at once: {(self.folder / 'log').read_text()}")
        listeners = pathlib.Path(f"/proc/{self.process.pid}/net/tcp").read_text()
        return f":{self.input:04X} 00000000:0000 0A" in listeners

    def remove(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def end_to_end(name, events):
    """In over TCP, through its disk buffer, out over TCP, uncompressed."""
    return _moved(name, events)


def over_link(name, events, round_trip_milliseconds, loss_percent=0, rate_mbit=0):
    """S9: the same over a line with delay and loss. Over one connection with cubic a peer moves some hundred events a second
    where packets are lost: then a tenth of `events`."""
    if loss_percent > 0:
        events //= 10
    with Link(round_trip_milliseconds, loss_percent, rate_mbit) as link:
        figures = _moved(name, events, link)
        return figures | {"payloadShare": figures["wireBytesPerEvent"] * events / link.stop()}


def _moved(name, events, link=None):
    sink = Sink(expect=events, lines=True, link=link)
    peer = Peer(name, sink.port, link)
    try:
        began = time.monotonic()
        subprocess.run([*peer.near, TOOLS / "load", "--tcp", str(peer.input), "--syslog", "--events", str(events)],
                       check=True, capture_output=True)
        received = sink.result()
        seconds = time.monotonic() - began
        cost = Cost(peer.process.pid)
        return {
            "eventsPerSecond": events / seconds,
            "lineEventsPerSecond": events / received["seconds"],
            "cpuSecondsPerMillion": cost.cpu_seconds * 1e6 / events,
            "wireBytesPerEvent": received["bytes"] / events,
            "peakMiB": cost.peak_bytes / 2**20,
        }
    finally:
        sink.process.kill()
        peer.remove()


def idle(name, seconds):
    sink = Sink(lines=True)
    peer = Peer(name, sink.port)
    try:
        time.sleep(seconds)
        return {"residentMiB": Cost(peer.process.pid).resident_bytes / 2**20}
    finally:
        sink.process.kill()
        peer.remove()
