"""A daemon with files of its own, for the tests of what people see of it."""

import json
import os
import socket
import subprocess
import time
import urllib.request

import rig

PROGRAMS = rig.PROGRAM.parent


def wait_until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon(rig.Program):
    """prismd; `collector`: the port that it sends to, `page`: the address of its status page."""

    def __init__(self, folder, name, collector, more="", namespaces=None):
        super().__init__(os.path.join(folder, name))
        self.name = name
        os.makedirs(os.path.join(self.folder, "namespaces.d"))
        self.write("main.key", "00" * 16)
        self.write("token", rig.SENDER + "\n")
        url = f"http://127.0.0.1:{collector}"
        self.page = f"http://127.0.0.1:{free_port()}"
        self.write("prismd.yaml", f"device: {{id: {name}}}\ningest: {{socket: {self.path('ingest.sock')}}}\ncontrol: {{socket: {self.path('control.sock')}}}\n"
                   f"state: {self.path('state')}\nkeys: [{{id: main, file: main.key}}]\nmetrics: {{listen: '{self.page.split('//')[1]}'}}\n{more.replace('URL', url)}\n")
        standard = "periodicTimerSecond: 1\nauthorization: {tokenFile: TOKEN}\nmonitorList: [{type: sample}]\n"
        for namespace, text in (namespaces or {"shop": ""}).items():
            text += "" if "url:" in text else "url: URL\n"
            self.write(f"namespaces.d/{namespace}.yaml", (standard + text).replace("URL", url).replace("TOKEN", self.path("token")))

    def start(self):
        self.launch(PROGRAMS / "prismd", "--config", self.path("prismd.yaml"))
        wait_until(f"{self.name} takes reports", self._answers)
        return self

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(self.log())
        return self.ctl("status", "--json", check=False).returncode == 0

    def ctl(self, *words, check=True):
        sockets = {"PRISM_CONTROL": self.path("control.sock"), "PRISM_INGEST": self.path("ingest.sock")}
        ran = subprocess.run([PROGRAMS / "prismctl", *words], capture_output=True, text=True, env=os.environ | sockets)
        if check and ran.returncode != 0:
            raise RuntimeError(f"prismctl {' '.join(words)}: {ran.stdout}{ran.stderr}")
        return ran

    def status(self):
        return json.loads(self.ctl("status", "--json").stdout)

    def in_force(self, namespace, key):
        return json.loads(self.ctl("config", "show", "--json").stdout)["namespaces"][namespace].get(key)

    def send(self, namespace="shop", type="sample", check=True):
        return self.ctl("send", "--namespace", namespace, "--type", type, "--meta", '{"n":1}', check=check)


def api(collector, path, body=None):
    """As an operator."""
    request = urllib.request.Request(
        f"{collector.url}/api/v1{path}", data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + rig.OPERATOR, "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
