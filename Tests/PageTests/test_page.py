"""The page in a real Chromium: each view filled, empty and with an error of the API; narrow and wide; light and dark; by
keyboard; with hostile content."""

import json
import pathlib
import time
import unittest
import urllib.request

import browser
import rig
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

AUDIT = (pathlib.Path(__file__).parent / "audit.js").read_text()
VIEWS = {"fleet": "/fleet", "explorer": "/explorer?range=7d&key=ms&by=meta.route", "crashes": "/crashes", "notices": "/notices", "device": "/device?id=till-0001",
         "configuration": "/configuration", "jobs": "/jobs"}
LOOKS = [(1440, False), (1440, True), (360, False), (360, True)]


def sign_in(window, collector, token=rig.TOKEN):
    body = json.dumps({"token": token}).encode()
    request = urllib.request.Request(collector.url + "/api/v1/session", data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        cookie = answer.headers["Set-Cookie"].split(";")[0].split("=", 1)[1]
    window.cookie(collector.url, "prism_session", cookie)


class PageCase(unittest.TestCase):
    """One collector and one window for all tests of a class."""

    hostile = False
    rows = 6000

    @classmethod
    def setUpClass(cls):
        cls.collector = rig.Collector()
        cls.collector.fill(rows=cls.rows, hostile=cls.hostile) if cls.rows else cls.collector.start()
        cls.window = browser.Browser()
        sign_in(cls.window, cls.collector)

    @classmethod
    def tearDownClass(cls):
        cls.window.quit()
        cls.collector.stop()

    def open(self, path):
        self.window.open(f"{self.collector.url}/#{path}")

    def check(self, name, errors=(), isOpened=False):
        """What holds for every view, however it looks. `isOpened`: a script has opened parts of it, which moves the others."""
        console = [line for line in self.window.console() if not any(error in line for error in errors)]
        self.assertEqual(console, [], name)
        self.assertEqual(self.window.hosts() - {self.collector.url.split("//")[1]}, set(), name)
        if not isOpened:
            self.assertLess(self.window.script("return window.shift"), 0.01, f"{name}: the layout shifts")
        self.assertFalse(self.window.script("return document.documentElement.scrollWidth > innerWidth"), f"{name}: it scrolls sideways")
        self.assertEqual(self.window.script(AUDIT), [], name)
        self.assertIsNone(self.window.script("return window.attacked ?? null"), name)

    def text(self):
        return self.window.script("return document.querySelector('main').innerText")


class FilledTests(PageCase):
    def test_every_view_at_every_width_and_in_both_themes(self):
        group = self.collector.get("/crashes?since=0")["groups"][0]["fingerprint"]
        for name, path in {**VIEWS, "crash": f"/crash?id={group}"}.items():
            for width, dark in LOOKS:
                with self.subTest(view=name, width=width, dark=dark):
                    self.window.resize(width)
                    self.window.theme(dark)
                    self.open(path)
                    self.check(name)
                    self.assertNotIn("undefined", self.text())
                    self.assertNotIn("NaN", self.text())
        self.window.resize(1440)

    def test_the_fleet_shows_what_the_api_says(self):
        self.open("/fleet")
        fleet = self.collector.get("/fleet")
        self.assertIn(f"{fleet['devices']['total']}\n", self.text())
        self.assertEqual(len(self.window.script("return [...document.querySelectorAll('.plot rect')].map((one) => one.tagName)")) > 20, True)

    def test_a_crash_is_found_in_three_clicks_with_its_frames(self):
        self.open("/fleet")
        self.window.find("main section a[href^='#/crash?']").click()
        self.window.settle()
        frames = self.window.script("return [...document.querySelectorAll('.frames code')].map((one) => one.textContent)")
        self.assertGreater(len(frames), 0)

    def test_a_crash_leads_to_the_reports_around_it_and_shows_its_versions_as_bars(self):
        group = self.collector.get("/crashes?since=0")["groups"][0]["fingerprint"]
        self.open(f"/crash?id={group}")
        self.assertGreater(len(self.window.script("return [...document.querySelectorAll('.share i')].filter((one) => one.style.width)")), 1)
        self.assertNotIn("≥", self.text())
        address = self.window.script("return [...document.querySelectorAll('main a')].find((one) => one.textContent === 'Reports of this device around it').hash")
        self.open(address.removeprefix("#"))
        self.check("reports around a crash")
        self.assertIn("appCrash", self.text())

    def test_counts_that_are_not_whole_say_so_themselves(self):
        words = self.window.script("const { atLeast } = await import('/format.js'); return [atLeast(1234, true), atLeast(1234, false)]")
        self.assertEqual(words, ["1,234", "≥ 1,234"])

    def test_a_chart_that_goes_on_says_so_in_its_numbers_ends_by_escape_and_becomes_whole(self):
        self.open("/fleet")
        self.window.script("""
          const real = window.fetch;
          [window.isReleased, window.ended, window.parts] = [false, 0, 0];
          window.fetch = async (url, options) => {
            const answer = await real(url, options);
            if (!url.startsWith("/api/v1/histogram") || window.isReleased) return answer;
            window.parts += 1;
            if (window.parts > 1) await new Promise((_, fail) => options.signal.addEventListener("abort", () => { window.ended += 1; fail(options.signal.reason); }));
            return Response.json({ ...await answer.json(), readSince: 1, progress: 0.25, goesOn: true });
          };
          location.hash = "#/explorer?range=7d";""")
        wait = WebDriverWait(self.window.driver, 10)
        wait.until(lambda _: "25 % of the reports are read" in self.text())
        self.assertRegex(self.window.find("h2").text, "^≥ .* reports$")
        self.assertIn("at least", self.window.find(".plot").get_attribute("aria-label"))
        self.assertEqual(len(self.window.driver.find_elements("css selector", ".chart.part, .going.on")), 2)
        self.check("a chart that goes on", isOpened=True)
        self.press(Keys.ESCAPE)
        wait.until(lambda _: "Go on" in self.text())
        self.assertEqual(self.window.script("return [window.ended, window.parts]"), [1, 2])
        self.window.script("window.isReleased = true")
        self.window.find(".going button").click()
        wait.until(lambda _: "≥" not in self.text())
        self.assertEqual(self.window.driver.find_elements("css selector", ".chart.part, .going.on"), [])

    def test_an_operator_tests_a_receiver_and_drops_the_notice(self):
        sign_in(self.window, self.collector, rig.OPERATOR)
        try:
            self.open("/notices")
            self.window.find("dl button").click()
            self.window.settle()
            self.assertIn("A test of prism-collector", self.text())
            self.assertEqual(self.collector.get("/notices")["notices"][0]["event"], "test")
            self.window.find("table button").click()
            self.window.settle()
            self.assertEqual(self.collector.get("/notices")["notices"][0]["state"], "dropped")
            self.check("notices", isOpened=True)
        finally:
            sign_in(self.window, self.collector)

    def test_an_operator_begins_a_job_and_pauses_and_ends_it(self):
        sign_in(self.window, self.collector, rig.OPERATOR)
        try:
            self.open("/jobs")
            for field, text in [("namespace", "shop"), ("where", "tag.x ="), ("command", "flush"), ("args", "{]")]:
                self.window.find(f"#{field}").send_keys(text)
            for field, fault, text in [("args", "must be a JSON object", ""), ("where", "where", "seen < 400d")]:
                self.window.find("#begin").click()
                self.window.settle()
                self.assertIn(fault, self.window.find(f"#{field}").get_property("validationMessage"))
                self.window.find(f"#{field}").clear()
                self.window.find(f"#{field}").send_keys(text or " ")
            self.window.find("#begin").click()
            self.window.settle()
            self.assertIn("chooses 40 devices", self.window.find("dialog").text)
            self.window.find("dialog .main").click()
            self.window.settle()
            job = self.collector.get("/jobs")["jobs"][0]
            self.assertEqual((job["change"]["command"], job["where"]), ("flush", "seen < 400d"))
            self.assertGreater(sum(job["devices"].values()), 30)
            self.window.find("table button").click()
            self.window.settle()
            self.assertEqual(self.collector.get("/jobs")["jobs"][0]["state"], "paused")
            self.check("jobs", errors=["/devices?where="], isOpened=True)
            self.window.find("table a").click()
            self.window.settle()
            self.assertIn("till-0001", self.text())
            self.check("job", isOpened=True)
            self.window.driver.find_elements("css selector", ".tools button")[1].click()
            self.window.find("dialog .main").click()
            self.window.settle()
            self.assertEqual(self.collector.get("/jobs")["jobs"][0]["state"], "cancelled")
        finally:
            sign_in(self.window, self.collector)

    def test_the_crashes_name_builds_without_a_debug_file(self):
        missing = self.collector.get("/symbols")["missing"]
        self.assertGreater(len(missing), 0)
        self.open("/crashes")
        self.assertIn(missing[0]["buildId"], self.text())

    def test_a_bar_of_the_chart_leads_to_its_reports(self):
        self.open("/fleet")
        ActionChains(self.window.driver).move_to_element(self.window.find(".plot")).click().perform()
        self.window.settle()
        self.assertIn("since=", self.window.script("return location.hash"))
        self.assertIn("reports", self.text())

    def test_a_value_of_a_report_becomes_a_filter_and_the_address_holds_it(self):
        self.open("/explorer?type=net&range=7d")
        self.window.find("button.open").click()
        self.window.find("button.add[aria-label='Filter by code']").click()
        self.window.settle()
        self.assertIn("meta=code+%3D+", self.window.script("return location.hash"))
        before = self.window.script("return document.querySelector('main h2').textContent")
        self.window.driver.refresh()
        self.window.settle()
        self.assertEqual(self.window.script("return document.querySelector('main h2').textContent"), before)
        self.check("explorer")

    def test_older_reports_follow(self):
        self.open("/explorer?range=7d")
        self.window.script("document.querySelector('.pages button').click()")
        for _ in range(100):
            ids = self.window.script("return [...document.querySelectorAll('tr[data-id]')].map((one) => Number(one.dataset.id))")
            if len(ids) > 50:
                break
            time.sleep(0.05)
        self.assertEqual(len(ids), 100)
        self.assertEqual(ids, sorted(set(ids), reverse=True))

    def test_from_the_fleet_to_a_payload_by_keyboard(self):
        self.open("/fleet")
        target = lambda: self.window.script("const one = document.activeElement; return one.tagName + ' ' + (one.getAttribute('href') ?? one.textContent)")
        self.tab_until(lambda: "#/crash?" in target())
        self.assertTrue(self.window.script("return getComputedStyle(document.activeElement).outlineStyle !== 'none'"), "the focus is not seen")
        self.press(Keys.ENTER)
        self.window.settle()
        self.tab_until(lambda: "Show the payload" in target())
        self.press(Keys.ENTER)
        for _ in range(100):
            shown = self.window.script("return document.querySelector('pre')?.textContent ?? ''")
            if shown:
                break
            time.sleep(0.05)
        self.assertIn("0x000055d1a0001f2c", shown)
        self.assertEqual(self.window.script("return document.activeElement.tagName"), "PRE")
        self.check("crash")

    def press(self, *keys):
        ActionChains(self.window.driver).send_keys(*keys).perform()

    def tab_until(self, condition):
        for _ in range(80):
            self.press(Keys.TAB)
            if condition():
                return
        self.fail("the keyboard does not lead there")

    def test_the_arrow_keys_go_through_a_chart(self):
        self.open("/fleet")
        self.window.script("document.querySelector('.plot').focus()")
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertTrue(self.window.script("return document.querySelector('.tip').classList.contains('on')"))

    def test_the_live_tail_starts_and_stops(self):
        self.open("/explorer")
        button = self.window.find("button[aria-pressed]")
        button.click()
        self.assertEqual(button.get_attribute("aria-pressed"), "true")
        button.click()
        self.assertEqual(button.get_attribute("aria-pressed"), "false")
        self.check("explorer")

    def test_each_view_has_a_key(self):
        self.open("/fleet")
        links = self.window.script("return [...document.querySelectorAll('#views a')].map((one) => one.getAttribute('href'))")
        self.assertGreater(len(links), 4)
        for number, link in enumerate(links, 1):
            self.window.driver.find_element("css selector", "body").send_keys(str(number))
            self.window.settle()
            self.assertEqual(self.window.script("return location.hash"), link)

    def test_an_error_of_the_api_is_told_with_a_way_out(self):
        for name, path in VIEWS.items():
            for width, dark in [(1440, False), (360, True)]:
                with self.subTest(view=name, width=width):
                    self.window.resize(width)
                    self.window.theme(dark)
                    self.window.block("*/api/v1/jobs*", "*/api/v1/fleet*", "*/api/v1/reports*", "*/api/v1/crashes*", "*/api/v1/device*", "*/api/v1/configuration*", "*/api/v1/notices*")
                    self.open(path)
                    self.assertIn("The collector does not answer", self.text())
                    self.check(name, errors=["ERR_BLOCKED_BY_CLIENT"])
                    self.window.block()
                    self.window.find("main button").click()
                    self.window.settle()
                    self.assertNotIn("does not answer", self.text())
        self.window.resize(1440)

    def test_an_operator_resolves_a_crash_and_reopens_it_and_a_viewer_can_not(self):
        changes = lambda: self.collector.log().count("changed by an operator")
        group, before = self.collector.get("/crashes?since=0")["groups"][-1]["fingerprint"], changes()
        path = f"/crash?id={group}"
        self.open(path)
        self.assertEqual(self.window.script("return document.querySelectorAll('#change').length"), 0)
        sign_in(self.window, self.collector, rig.OPERATOR)
        try:
            self.change(path)
            self.wait_for("Resolved by operator ")
            self.check("crash", isOpened=True)
            self.assertEqual(self.collector.get(f"/crashes/{group}")["group"]["state"], "resolved")
            self.open("/crashes?range=30d")
            self.assertNotIn(group, self.window.script("return document.querySelector('main').innerHTML"))
            self.open("/crashes?range=30d&state=resolved")
            self.assertIn(group, self.window.script("return document.querySelector('main').innerHTML"))
            self.check("crashes")
            self.change(path)
            self.wait_for("Reopened by operator ")
            self.window.find("#more").send_keys("100")
            self.window.find("#ignore").click()
            self.wait_for("until 100 more crashes")
            self.assertEqual(self.collector.get(f"/crashes/{group}")["group"]["state"], "ignored")
            self.open("/crashes?range=30d&state=ignored")
            self.assertIn(group, self.window.script("return document.querySelector('main').innerHTML"))
            self.open(path)
            self.window.find("#assignee").send_keys("Ann")
            self.window.find("#link").send_keys("https://tickets.example/7")
            self.window.find("#comment").send_keys("the printer again")
            self.window.find("#note").click()
            self.wait_for("the printer again")
            self.check("crash", isOpened=True)
            found = self.collector.get(f"/crashes/{group}")
            self.assertEqual([found["group"]["assignee"]["text"], found["group"]["link"]["text"], found["comments"][0]["text"]], ["Ann", "https://tickets.example/7", "the printer again"])
            self.change(path)
            self.wait_for("Reopened by operator ")
            other = self.collector.get("/crashes?since=0")["groups"][0]["fingerprint"]
            self.open(path)
            self.window.find("#into").send_keys(other)
            self.window.find("#merge").click()
            self.wait_for("Rules of operators")
            self.check("crash", isOpened=True)
            self.assertEqual(self.collector.get(f"/crashes/{other}")["groupedBy"], [group])
            self.window.find("button.undo").click()
            self.wait_for("Trend")
            self.assertIn(group, [one["fingerprint"] for one in self.collector.get("/crashes?since=0")["groups"]])
        finally:
            sign_in(self.window, self.collector)
        self.assertEqual(changes() - before, 7)

    def change(self, path):
        self.open(path)
        self.window.find("#change").click()

    def wait_for(self, words):
        for _ in range(200):
            if words in self.text():
                return
            time.sleep(0.05)
        self.fail(f"{words} is not shown")

    def test_an_operator_rolls_a_configuration_out_and_back(self):
        self.collector.write("remote.d/next/shop.yaml", "periodicTimerSecond: 30\nexpirationDay: 14\n")
        time.sleep(1.1)  # the collector looks at the folder once a second
        self.open("/configuration")
        self.assertIn("The files in next/ change 1 namespace.", self.text())
        self.assertEqual(self.window.script("return document.querySelectorAll('#go').length"), 0)
        sign_in(self.window, self.collector, rig.OPERATOR)
        try:
            self.open("/configuration")
            for width, dark in LOOKS:
                self.window.resize(width)
                self.window.theme(dark)
                self.check("configuration")
            self.window.resize(1440)
            self.window.find("#groups").send_keys("till-0001, lab-*")
            self.window.find("#go").click()
            self.wait_for("is running: 10 % of devices, and till-0001, lab-*")
            self.window.find("#pause").click()
            self.wait_for("is paused")
            self.assertEqual(self.collector.get("/configuration")["rollout"]["state"], "paused")
            self.check("configuration", isOpened=True)
            self.window.find("#percent").clear()
            self.window.find("#percent").send_keys("40", Keys.ENTER)
            self.wait_for("40 % of devices")
            self.window.find("#rollBack").click()
            self.window.find("dialog button.main").click()
            self.wait_for("The files in next/ change 1 namespace.")
            self.assertEqual([one["state"] for one in self.collector.get("/configuration")["history"]], ["rolledBack", "paused", "paused", "running"])
            self.check("configuration", isOpened=True)
        finally:
            sign_in(self.window, self.collector)

    def test_a_device_shows_its_records(self):
        self.open("/device?id=till-0001")
        records = self.collector.get("/records?device=till-0001")["records"]
        self.assertGreater(len(records), 0)
        for record in records:
            if record["table"] != "prism.command":
                self.assertIn(record["fields"]["title"], self.text())
        rows = self.window.script("return [...document.querySelectorAll('section')].find((one) => one.querySelector('h2')?.textContent === 'Records').querySelectorAll('tbody tr').values().map((row) => row.innerText.replace(/\\s+/g, ' ')).toArray()")
        found = {name: row for row in rows for name in ["display-1", "display-2"] if name in row}
        self.assertIn("fetched", found["display-1"])
        self.assertNotIn("not fetched yet", found["display-1"])
        for word in ["not fetched yet", "wanted since", "brightness=30"]:
            self.assertIn(word, found["display-2"])

    def test_a_device_shows_its_commands_the_newest_first_with_state_result_and_expiry(self):
        self.open("/device?id=till-0001")
        rows = self.window.script("return [...document.querySelectorAll('section')].find((one) => one.querySelector('h2')?.textContent === 'Commands').querySelectorAll('tbody tr').values().map((row) => row.innerText.replace(/\\s+/g, ' ')).toArray()")
        for row, words in zip(rows, [["reload", "expired unanswered"], ["flush", "not answered yet"], ["restart", "refused", "reason="], ["collect", "lines=200", "running"], ["flush", "done", "3 packets were sent"]], strict=True):
            for word in words:
                self.assertIn(word, row)
        self.assertEqual(self.window.script("return [...document.querySelectorAll('section')].find((one) => one.querySelector('h2')?.textContent === 'Records').innerText.includes('prism.command')"), False)
        for width, dark in LOOKS:
            self.window.resize(width)
            self.window.theme(dark)
            self.check("device", isOpened=True)
        self.window.resize(1440)

    def test_a_device_that_is_not_there_is_told_so(self):
        self.open("/device?id=nobody")
        self.assertIn("no device of this id", self.text())
        self.check("device", errors=["404"])


class EmptyTests(PageCase):
    rows = 0

    def test_every_view_says_what_to_do_next(self):
        expected = {"fleet": "No device has sent a packet yet", "explorer": "No report", "crashes": "No crash in this time", "configuration": "No device asked yet"}
        for name, words in expected.items():
            for width, dark in LOOKS:
                with self.subTest(view=name, width=width, dark=dark):
                    self.window.resize(width)
                    self.window.theme(dark)
                    self.open(VIEWS[name])
                    self.assertIn(words, self.text())
                    self.check(name)


class HostileTests(PageCase):
    hostile = True
    rows = 3000

    def test_what_devices_send_is_text_in_every_view(self):
        group = next(one for one in self.collector.get("/crashes?since=0")["groups"] if "script" in one["reason"])["fingerprint"]
        names = {**VIEWS, "crash": f"/crash?id={group}", "hostile device": "/device?id=%3Cscript%3Ewindow.attacked%3D1%3C%2Fscript%3E&range=30d",
                 "hostile type": "/explorer?range=30d&type=" + urllib.request.quote(rig.HOSTILE), "hostile group": "/explorer?range=30d&by=type",
                 "hostile filter": "/explorer?range=30d&meta=" + urllib.request.quote(rig.HOSTILE + " = 1"),
                 "hostile range": "/fleet?range=" + urllib.request.quote(rig.HOSTILE) + "&sort=seen&search=" + urllib.request.quote(rig.HOSTILE)}
        shown = ""
        for name, path in names.items():
            with self.subTest(view=name):
                self.open(path)
                self.check(name, errors=["400", "404"])
                self.window.script("document.querySelectorAll('button.open, details > summary').forEach((one) => one.click())")
                if name == "crash":
                    self.window.script("document.querySelector('p.tools button')?.click()")
                    time.sleep(0.3)
                self.check(name, errors=["400", "404"], isOpened=True)
                # Markup from a device would have made elements that the page itself never makes.
                self.assertEqual(self.window.script("return document.querySelectorAll('main img, main script, main iframe, main [onerror]').length"), 0)
                shown += self.text()
        self.assertGreater(shown.count("<script>window.attacked=1</script>"), 10)

    def test_an_export_defuses_formulas(self):
        answer = urllib.request.Request(self.collector.url + "/api/v1/export?format=csv&limit=50", headers={"Authorization": "Bearer " + rig.TOKEN})
        with urllib.request.urlopen(answer) as csv:
            for line in csv.read().decode().split("\r\n")[1:]:
                self.assertNotRegex(line, r'(^|,)"?[=+@]')


class SignInTests(unittest.TestCase):
    def test_a_token_signs_in_a_wrong_one_does_not_and_signing_out_ends_it(self):
        collector = rig.Collector().start()
        window = browser.Browser()
        try:
            for width, dark in LOOKS:
                window.resize(width)
                window.theme(dark)
                window.open(collector.url + "/")
                self.assertEqual(window.script(AUDIT), [])
            window.find("#token").send_keys("wrong", Keys.ENTER)
            for _ in range(100):
                told = window.script("return document.querySelector('main .note.bad')?.textContent")
                if told:
                    break
                time.sleep(0.05)
            self.assertIn("no reader's token", told)
            window.find("#token").clear()
            window.find("#token").send_keys(rig.OPERATOR, Keys.ENTER)
            self.wait(window, "Fleet")
            self.assertIn("operator", window.find("#reader").text)
            window.find("#reader button").click()
            self.wait(window, "Sign in")
            self.assertEqual([line for line in window.console() if "401" not in line], [])
        finally:
            window.quit()
            collector.stop()

    def wait(self, window, title):
        for _ in range(200):
            if window.script("return document.querySelector('h1')?.textContent") == title:
                return
            time.sleep(0.05)
        self.fail(f"{title} is not shown")


if __name__ == "__main__":
    unittest.main()
