"""The page as people use it: by keyboard, by links that others sent, with faults, and while the collector is away."""

import datetime
import re
import time
import unittest
import urllib.parse
import urllib.request

import browser
import rig
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from test_page import LOOKS, PageCase, sign_in

DAY = 86_400_000


class UseTests(PageCase):
    def wait(self, condition, what):
        for _ in range(240):
            if found := condition():
                return found
            time.sleep(0.05)
        self.fail(what)

    def hash(self):
        return self.window.script("return location.hash")

    def query(self):
        return urllib.parse.parse_qs(self.hash().partition("?")[2])

    def press(self, *keys):
        ActionChains(self.window.driver).send_keys(*keys).perform()

    def focus(self):
        return self.window.script("return document.activeElement.id")

    def words(self, selector):
        return self.window.script("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def choose(self, value):
        Select(self.window.find("#range")).select_by_value(value)

    # By keyboard

    def test_a_change_of_a_field_keeps_the_focus_and_digits_go_into_the_field(self):
        self.open("/explorer?range=7d")
        self.window.script("document.getElementById('filter-type').focus()")
        self.press("net", Keys.TAB)
        self.wait(lambda: self.query().get("type") == ["net"], "the type is no filter")
        self.window.settle()
        self.assertEqual(self.focus(), "filter-device")
        self.press("till-0003", Keys.ENTER)
        self.wait(lambda: self.query().get("device") == ["till-0003"], "the digits went elsewhere")
        self.window.settle()
        self.assertEqual(self.focus(), "filter-device")
        self.assertTrue(self.hash().startswith("#/explorer"))

    def test_what_is_typed_stays_when_the_view_is_renewed(self):
        self.open("/explorer?range=7d")
        self.window.script("document.getElementById('filter-meta').focus()")
        self.press("ms >= 1")
        self.window.script("location.hash = '#/explorer?range=7d&type=net'")
        self.wait(lambda: self.window.script("return document.querySelector('.chips')"), "the filter is not shown")
        self.press("23")
        self.assertEqual(self.window.script("return document.getElementById('filter-meta').value"), "ms >= 123")

    def test_bars_are_chosen_with_shift_and_the_arrow_keys(self):
        self.open("/explorer?range=7d")
        self.window.script("document.querySelector('.plot').focus()")
        shift = ActionChains(self.window.driver).send_keys(Keys.ARROW_RIGHT).key_down(Keys.SHIFT)
        shift.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).key_up(Keys.SHIFT).send_keys(Keys.ENTER).perform()
        self.wait(lambda: "since" in self.query(), "nothing was chosen")
        width = int(self.query()["until"][0]) - int(self.query()["since"][0])
        bucket = self.collector.get(f"/histogram?since={int(time.time() * 1000) - 7 * DAY}&buckets=80")["bucketMilliseconds"]
        self.assertEqual(width, 3 * bucket)

    # Explorer

    def test_an_export_has_what_is_shown(self):
        self.open("/explorer?range=24h&type=net")
        shown = int(self.words("main h2")[0].split()[0].replace(",", ""))
        address = self.window.find("a[download='reports.ndjson']").get_attribute("href")
        request = urllib.request.Request(address, headers={"Authorization": "Bearer " + rig.TOKEN})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(len(answer.read().splitlines()), shown)
        self.assertGreater(shown, 0)
        self.assertLess(shown, 3000, "the export would be of all times")

    def test_a_faulty_condition_is_named_beside_the_filters(self):
        self.open("/explorer?range=7d&meta=" + urllib.parse.quote("= 3"))
        self.assertIn("Not asked: meta: a condition", self.text())
        self.assertEqual(self.window.find("#filter-meta").get_attribute("aria-invalid"), "true")
        self.check("explorer", errors=["400"])
        self.window.find(".chips button").click()
        self.window.settle()
        self.assertNotIn("Not asked", self.text())

    def test_a_dotted_key_is_hinted(self):
        self.open("/explorer?range=7d&meta=" + urllib.parse.quote("http.code = 404"))
        self.assertIn('write it in quotes: "http.code"', self.text())

    def test_values_fields_and_devices_are_suggested(self):
        self.open("/explorer?range=7d&type=net")
        options = lambda name: self.window.script("return [...document.getElementById(arguments[0]).options].map((one) => one.value)", name)
        self.assertIn("code = 200", options("conditions"))
        self.assertIn("meta.route", options("group-words"))
        self.assertIn("net.rtt", options("number-words"))
        self.assertNotIn("route", options("number-words"))
        self.assertTrue(all(one.startswith("till-") for one in options("devices")))

    def test_twelve_groups_are_told_apart(self):
        self.open("/explorer?range=7d&by=device")
        looks = self.window.script("return [...document.querySelectorAll('.legend i')].map((one) => { const look = getComputedStyle(one); return look.backgroundColor + look.backgroundImage; })")
        self.assertEqual(len(looks), 13)
        self.assertEqual(len(set(looks)), 13)
        self.assertGreater(self.window.script("return document.querySelectorAll('rect[fill^=url]').length"), 0)
        for width, dark in LOOKS:
            self.window.resize(width)
            self.window.theme(dark)
            self.check("explorer", isOpened=True)
        self.window.resize(1440)

    # Time

    def test_ticks_are_at_round_times_and_say_the_zone(self):
        for place, zone in [("UTC", "UTC"), ("Asia/Kolkata", "UTC+05:30"), ("America/St_Johns", "UTC−03:30")]:
            self.window.command("Emulation.setTimezoneOverride", timezoneId=place)
            for path, form in [("/fleet?range=24h", r"\d\d:00|\d\d-\d\d"), ("/fleet?range=30d", r"\d\d-\d\d"), ("/fleet?range=365d", r"\d{4}-\d\d"), ("/explorer?range=15m", r"\d\d:\d[02468]")]:
                with self.subTest(zone=zone, path=path):
                    self.open(path)
                    if not self.window.script("return document.querySelector('.axis')"):
                        continue
                    ticks = self.words(".axis span")
                    self.assertGreater(len(ticks), 1)
                    for tick in ticks:
                        self.assertRegex(tick, f"^({form})$")
                    self.assertEqual(self.words(".axis em")[0], zone)
        self.window.command("Emulation.setTimezoneOverride", timezoneId="")

    def test_drawing_over_a_chart_zooms_into_it(self):
        self.open("/explorer?range=7d")
        plot = self.window.find(".plot")
        ActionChains(self.window.driver).move_to_element_with_offset(plot, -200, 0).click_and_hold().move_by_offset(240, 0).release().perform()
        self.wait(lambda: "since" in self.query(), "nothing was chosen")
        chosen = int(self.query()["until"][0]) - int(self.query()["since"][0])
        self.assertGreater(chosen, DAY)
        self.assertLess(chosen, 3 * DAY)

    def test_two_times_are_chosen_and_a_range_afterwards(self):
        for view in ("/fleet", "/explorer", "/crashes", "/device?id=till-0001"):
            with self.subTest(view=view):
                self.open(view)
                self.choose("own")
                now = datetime.datetime.now()
                for name, days in (("since", 5), ("until", 2)):
                    text = (now - datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S")
                    self.window.script("document.getElementById(arguments[0]).value = arguments[1]", name, text)
                self.window.find("#times").click()
                self.wait(lambda: "since" in self.query(), "the times are not in the address")
                self.window.settle()
                self.assertAlmostEqual(int(self.query()["until"][0]) - int(self.query()["since"][0]), 3 * DAY, delta=2000)
                self.check(view, isOpened=True)
                # As somebody who got the address.
                self.window.driver.refresh()
                self.window.settle()
                self.choose("7d")
                self.wait(lambda: self.query().get("range") == ["7d"], "the picker does nothing")
                self.assertNotIn("since", self.query())
                self.window.settle()

    def test_times_in_the_wrong_order_are_said(self):
        self.open("/explorer")
        self.choose("own")
        self.window.script("[document.getElementById('since').value, document.getElementById('until').value] = ['2026-02-02T00:00:00', '2026-02-01T00:00:00']")
        self.window.find("#times").click()
        self.assertIn("The first time must be before the second.", self.text())

    # Crashes and the fleet

    def tile(self, title):
        return self.window.script("return [...document.querySelectorAll('.tile')].find((one) => one.querySelector('dt').textContent === arguments[0]).querySelector('b').textContent", title)

    def test_crashes_are_counted_alike_and_without_resolved_groups(self):
        since = int(time.time() * 1000) - 7 * DAY
        groups = self.collector.get(f"/crashes?since={since}")["groups"]
        change = lambda fingerprint, state: urllib.request.urlopen(urllib.request.Request(
            f"{self.collector.url}/api/v1/crashes/{fingerprint}/state", data=f'{{"state": "{state}"}}'.encode(),
            headers={"Authorization": "Bearer " + rig.OPERATOR, "Content-Type": "application/json"})).close()
        for group in groups:
            self.assertEqual(sum(group["trend"]), group["count"])
        change(groups[0]["fingerprint"], "resolved")
        try:
            self.open("/fleet?range=7d")
            tile = int(self.tile("Crashes").replace(",", ""))
            self.assertEqual(tile, sum(group["count"] for group in groups[1:]))
            self.open("/crashes?range=7d")
            self.assertIn(f"{tile} crashes in {len(groups) - 1} groups", self.text().replace(",", ""))
        finally:
            change(groups[0]["fingerprint"], "open")

    def test_a_trend_ends_now(self):
        group = next(iter(self.collector.get("/crashes?since=0")["groups"]))
        found = self.collector.get(f"/crashes/{group['fingerprint']}")
        self.assertLessEqual(found["trendEnd"] - int(time.time() * 1000), 3_600_000)
        self.assertEqual(sum(found["group"]["trend"]), found["group"]["count"])

    def test_figures_say_since_when_they_count(self):
        self.open("/fleet")
        start = datetime.datetime.fromtimestamp(self.collector.get("/fleet")["startTime"] / 1000)
        self.assertIn(f"stored since {start:%Y-%m-%d %H:%M}, none refused", self.text())

    def test_versions_of_the_configuration_have_names(self):
        self.open("/configuration")
        served = self.collector.get("/configuration")["summary"]["version"]
        self.assertIn(f"version {served}, changed {datetime.date.today().year}-", self.text())
        self.assertRegex(self.text(), r"version \d+ (\d[\d,]* behind|not of this collector|served now)")

    def test_titles_name_what_is_shown(self):
        group = self.collector.get("/crashes?since=0")["groups"][0]
        for path, title in [("/fleet", "Fleet · prism"), ("/device?id=till-0001", "till-0001 · prism"), ("/explorer?type=net", "net · Explorer · prism"),
                            (f"/crash?id={group['fingerprint']}", f"{group['reason']} in {group['frame']} · prism")]:
            self.open(path)
            self.assertEqual(self.window.driver.title, title)

    def test_an_act_that_reaches_all_devices_asks_first(self):
        self.collector.write("remote.d/next/shop.yaml", "periodicTimerSecond: 45\nexpirationDay: 14\n")
        sign_in(self.window, self.collector, rig.OPERATOR)
        rollout = lambda: self.collector.get("/configuration")["rollout"]
        try:
            self.wait(lambda: self.collector.get("/configuration")["candidate"]["namespaces"], "the collector does not see the files")
            self.open("/configuration")
            self.window.find("#percent").clear()
            self.window.find("#percent").send_keys("100", Keys.ENTER)
            self.wait(lambda: self.window.script("return document.querySelector('dialog[open]')"), "it does not ask")
            self.check("configuration", isOpened=True)
            self.assertEqual(self.window.script("return document.activeElement.textContent"), "Cancel")
            self.press(Keys.ENTER)
            self.assertIsNone(rollout())
            self.window.find("#percent").clear()
            self.window.find("#percent").send_keys("5", Keys.ENTER)
            self.wait(rollout, "it does not start")
            self.wait(lambda: "is running" in self.text(), "it is not shown")
            self.window.find("#rollBack").click()
            self.press(Keys.ESCAPE)
            self.assertEqual(rollout()["percent"], 5)
            self.window.find("#rollBack").click()
            self.window.find("dialog button.main").click()
            self.wait(lambda: rollout() is None, "it is not rolled back")
        finally:
            sign_in(self.window, self.collector)

    # While the collector is away

    def test_a_notice_says_that_the_collector_does_not_answer_and_what_is_shown_stays(self):
        self.open("/fleet")
        before = self.tile("Devices")
        self.window.block("*/api/v1/*")
        notice = lambda: self.window.script("const one = document.getElementById('notice'); return one.hidden ? '' : one.textContent")
        self.wait(notice, "nothing is said")
        self.assertRegex(notice(), r"The collector has not answered since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. What is shown is older\.")
        self.assertEqual(self.tile("Devices"), before)
        for width, dark in LOOKS:
            self.window.resize(width)
            self.window.theme(dark)
            self.check("fleet", errors=["ERR_BLOCKED_BY_CLIENT"], isOpened=True)
        self.window.resize(1440)
        self.window.block()
        self.wait(lambda: not notice(), "the notice stays")
        self.window.console()


class TrialTests(unittest.TestCase):
    def test_the_reader_of_a_collector_for_trying_is_an_operator_and_is_said_to_be_one(self):
        collector = rig.Collector(tokens=False).start("--dev")
        window = browser.Browser()
        try:
            window.open(collector.url + "/#/configuration")
            self.assertEqual(window.find("#reader").text, "operator (--dev)")
            self.assertIn("--dev: everybody on this machine is an operator", collector.log())
        finally:
            window.quit()
            collector.stop()

    def test_before_the_sign_in_there_are_no_tabs(self):
        collector = rig.Collector().start()
        window = browser.Browser()
        try:
            window.open(collector.url + "/")
            self.assertEqual(window.script("return document.getElementById('views').children.length"), 0)
            self.assertEqual(window.driver.title, "Sign in · prism")
            window.find("#token").send_keys(rig.TOKEN, Keys.ENTER)
            for _ in range(200):
                if window.script("return document.getElementById('views').children.length") == 7:
                    return
                time.sleep(0.05)
            self.fail("there are no tabs after it")
        finally:
            window.quit()
            collector.stop()


if __name__ == "__main__":
    unittest.main()
