"""Chromium without a window, driven by selenium."""

import json

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By


class Browser:
    def __init__(self, width=1440, height=1000, dark=False):
        options = webdriver.ChromeOptions()
        # No sandbox: these scripts run as root, in containers, too.
        for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--disable-background-networking", "--force-color-profile=srgb"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_script_timeout(20)
        self.resize(width, height)
        self.theme(dark)
        self.command("Page.addScriptToEvaluateOnNewDocument", source="""
          window.shift = 0;
          new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value; })
            .observe({ type: "layout-shift", buffered: true });""")

    def command(self, name, /, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def resize(self, width, height=1000):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, dark):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def cookie(self, url, name, value):
        self.command("Network.setCookie", url=url, name=name, value=value, httpOnly=True, sameSite="Strict")

    def block(self, *patterns):
        self.command("Network.enable")
        self.command("Network.setBlockedURLs", urls=list(patterns))

    def open(self, url):
        """A new document: what the page kept of the one before is gone."""
        self.driver.get("about:blank")
        self.driver.get(url)
        self.settle()

    def open_plain(self, url):
        """A page that is whole without a script."""
        self.driver.get("about:blank")
        self.driver.get(url)

    def settle(self):
        """Waits until the view is there."""
        self.driver.execute_async_script("""
          const done = arguments[0];
          if (window.hashSeen === undefined) addEventListener("hashchange", () => { window.hashSeen = location.hash; });
          window.hashSeen ??= location.hash;
          (function look() {
            // A click changes the address at once, and the view only after this event.
            const ready = window.hashSeen === location.hash && document.readyState === "complete" && document.querySelector("main h1") && document.getElementById("progress").className === "";
            if (ready) requestAnimationFrame(() => requestAnimationFrame(done)); else setTimeout(look, 30);
          })();""")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def hosts(self):
        """The hosts of all requests since the last call."""
        hosts = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("about:", "data:", "blob:")):
                    hosts.add(url.split("/")[2])
        return hosts

    def shot(self, path):
        self.driver.save_screenshot(str(path))

    def quit(self):
        self.driver.quit()
