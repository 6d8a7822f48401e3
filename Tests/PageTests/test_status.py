"""The status page of the daemon in Chromium: sending, held, with dead letters, with faults of the configuration."""

import http.server
import socket
import threading
import unittest

import browser
import daemon
import rig
from test_page import AUDIT, LOOKS

HOSTILE = "<script>window.attacked=1</script>"


class Refusing(http.server.BaseHTTPRequestHandler):
    """A collector that answers each packet with the status of its path."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = f'{{"message": "{HOSTILE}"}}'.encode()
        self.send_response(int(self.path.split("/")[1]))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class StatusPageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.collector = rig.Collector(senders=True).start()
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.window = browser.Browser()
        cls.daemons = []

    @classmethod
    def tearDownClass(cls):
        for one in cls.daemons:
            one.stop()
        cls.window.quit()
        cls.server.shutdown()
        cls.server.server_close()
        cls.collector.stop()

    def daemon(self, name, namespaces, port=None):
        one = daemon.Daemon(self.collector.folder, name, port or self.collector.port, "", namespaces)
        self.daemons.append(one.start())
        return one

    def refusing(self, status):
        return f"url: http://127.0.0.1:{self.server.server_port}/{status}\n"

    def text(self):
        return self.window.script("return document.querySelector('main').innerText")

    def looks(self, one, words):
        """Whether the page of a daemon has these words, and what holds for it however it looks."""
        def shown():
            self.window.open_plain(one.page + "/")
            return all(word in self.text() for word in words)
        self.window.open_plain("about:blank")
        self.window.hosts()  # those of the page before
        daemon.wait_until(f"{one.name}: {words}", shown)
        for path in ("/", "/doctor"):
            for width, dark in LOOKS:
                with self.subTest(daemon=one.name, path=path, width=width, dark=dark):
                    self.window.resize(width)
                    self.window.theme(dark)
                    self.window.open_plain(one.page + path)
                    self.assertEqual(self.window.console(), [])
                    self.assertEqual(self.window.hosts() - {one.page.split("//")[1]}, set())
                    self.assertLess(self.window.script("return window.shift"), 0.01, "the layout shifts")
                    self.assertFalse(self.window.script("return document.documentElement.scrollWidth > innerWidth"), "it scrolls sideways")
                    self.assertEqual(self.window.script(AUDIT), [])
                    self.assertIsNone(self.window.script("return window.attacked ?? null"))
                    self.assertIn(f"of {socket.gethostname()} · prismd", self.window.driver.title)
                    lines = self.window.script("return [...document.querySelectorAll('th, td.number')].filter((one) => { const range = document.createRange(); range.selectNodeContents(one); return range.getClientRects().length > 1; }).map((one) => one.textContent)")
                    self.assertEqual(lines, [], "words are broken")
        self.window.resize(1440)

    def test_it_says_that_it_sends_and_its_figures_are_those_of_prismctl(self):
        one = self.daemon("sending", {"shop": ""})
        for _ in range(3):
            one.send()
        self.looks(one, ["Sending: nothing waits."])
        daemon.wait_until("all is delivered", lambda: one.status()["namespaces"]["shop"]["meta"]["ledger"]["delivered"] == 3)
        self.window.open_plain(one.page + "/")
        self.assertIn("3 Stored", self.text().replace("\n", " "))
        self.assertIn("3 Delivered", self.text().replace("\n", " "))

    def test_it_says_what_is_held_and_why(self):
        one = self.daemon("held", {"shop": self.refusing(401)})
        one.send()
        self.looks(one, ["Held: shop sends nothing, because"])

    def test_it_counts_dead_letters_and_says_what_to_do(self):
        one = self.daemon("dead", {"shop": self.refusing(422) + "trustRefusals: true\n", "other": ""})
        one.send()
        self.looks(one, ["shop: 1 dead letters", "prismctl dead list --namespace shop"])

    def test_it_shows_faults_of_a_configuration_that_is_not_in_force(self):
        one = self.daemon("faults", {"shop": ""})
        one.write("namespaces.d/shop.yaml", f"url: http://127.0.0.1:{self.collector.port}\nmaxItem: 0\n\"{HOSTILE}\": 1\n")
        self.assertNotEqual(one.ctl("reload", check=False).returncode, 0)
        self.looks(one, ["configuration:", "maxItem"])


if __name__ == "__main__":
    unittest.main()
