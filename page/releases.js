// Releases: how widely each version of an app is used, how often it crashes, and two versions side by side.

import { untilWhole } from "./answer.js";
import { get } from "./api.js";
import { sparkline } from "./chart.js";
import { definition, empty, h, note, section, table } from "./dom.js";
import { atLeast, count, counted, real, span, time } from "./format.js";
import { go, link } from "./route.js";

const DAYS = [["7", "7 days"], ["14", "14 days"], ["30", "30 days"], ["90", "90 days"]];
const DAY = 86400000;
const percent = (share) => (share === null ? "–" : `${real(share * 100)} %`);
const nameOf = (release) => release.version || "(no version)";

/** A ratio with its interval, in words. */
function ratio(value) {
  if (value === null) return "no crash, nothing to compare";
  const end = (number) => (number === null ? "any" : real(number));
  const words = value.low > 1 ? ["worse", "bad"] : value.high !== null && value.high < 1 ? ["better", "good"] : ["no difference is proven", ""];
  return [h("b", null, value.ratio === null ? "more often" : `${real(value.ratio)} times`), ` (${end(value.low)} to ${end(value.high)}) `, h("span", { class: `tag ${words[1]}` }, words[0])];
}

async function comparison(query, releases, signal) {
  const own = releases.filter((one) => one.namespace === query.get("namespace") && one.app === query.get("app"));
  if (own.length < 2) return null;
  const pick = (key, place) => own.find((one) => one.version === query.get(key))?.version ?? own[place].version;
  const [version, other] = [pick("version", 0), pick("other", 1)];
  const choose = (key, title, chosen) => h("label", { class: "field" }, h("span", null, title), h("select", { id: key, onchange: (event) => go("/releases", { ...Object.fromEntries(query), version, other, [key]: event.target.value }) },
    own.map((one) => h("option", { value: one.version, selected: one.version === chosen }, nameOf(one)))));
  const tools = h("div", { class: "tools" }, choose("version", "Version", version), choose("other", "compared with", other));
  if (version === other) return section("Compare", tools, h("p", { class: "quiet" }, "Choose two versions."));
  const found = await get("/releases/compare", { namespace: query.get("namespace"), app: query.get("app"), version, other, since: query.get("since") ?? "" }, signal);
  return section("Compare", tools, definition([["Crashes per hour in use", ratio(found.crashesPerHour)], ["Sessions that crashed", ratio(found.crashedSessions)], ["Devices that crashed", ratio(found.crashedDevices)]]),
    h("p", { class: "hint" }, "In brackets is the interval of 95 %. Crashes in a loop make it too narrow: the ratio of devices is not touched by them."));
}

export async function releases({ query, signal, again }) {
  const days = query.get("days") ?? "14";
  const since = Math.floor(Date.now() / DAY) * DAY - (Number(days) - 1) * DAY;
  const asked = { since, namespace: query.get("namespace"), app: query.get("app") };
  const found = await get("/releases", asked, signal);
  const groups = ({ app, groups: { new: fresh, regressed } }) => [fresh > 0 && h("a", { href: link("/crashes", {}), title: `crashes of ${app}` }, `${count(fresh)} new`), regressed > 0 && h("span", { class: "tag bad" }, `${count(regressed)} regressed`), fresh + regressed === 0 && "–"];
  const columns = [
    { title: "Version", wide: true, cell: (one) => [h("a", { class: "strong", href: link("/releases", { days, namespace: one.namespace, app: one.app }) }, `${one.app} ${nameOf(one)}`), h("span", { class: "sub" }, one.namespace)] },
    { title: "Adoption", cell: (one) => [sparkline(one.days.map((day) => Math.round((day.adoption ?? 0) * 100)), `${percent(one.adoption)} of the time in use`), " ", percent(one.adoption)] },
    { title: "In use", number: true, cell: (one) => (found.isWhole ? "" : "≥ ") + span(one.seconds) },
    { title: "Devices", number: true, cell: (one) => [atLeast(one.devices, found.isWhole), one.missingDevices > 0 && h("span", { class: "sub" }, `${count(one.missingDevices)} with lost hours`)] },
    { title: "Crash-free sessions", number: true, cell: (one) => percent(one.crashFreeSessions) },
    { title: "Crash-free devices", number: true, cell: (one) => percent(one.crashFreeDevices) },
    { title: "Crash-free hours", number: true, cell: (one) => percent(one.crashFreeHours) },
    { title: "Crash groups", cell: groups },
  ];
  const app = query.get("app");
  query.set("since", String(since));
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Releases"), h("div", { class: "tools" }, h("label", { class: "field" }, h("span", null, "Time"), h("select", { id: "days", onchange: (event) => go("/releases", { ...Object.fromEntries(query), since: null, days: event.target.value }) }, DAYS.map(([value, title]) => h("option", { value, selected: value === days }, title)))))),
    app && h("ul", { class: "chips", "aria-label": "Filters" }, h("li", null, h("span", null, `app = ${app}`), h("button", { type: "button", "aria-label": "Remove the filter", onclick: () => go("/releases", { days }) }, "×"))),
    !found.isWhole && untilWhole("/releases", asked, again, signal),
    found.missing.devices > 0 && note("warn", `Lost on the way: ${counted(found.missing.hours, "hour")} of ${counted(found.missing.devices, "device")}. Such a device counts as crashed, or as neither crashed nor healthy.`),
    found.leftOut > 0 && note("warn", `Not shown: ${counted(found.leftOut, "figure")} of versions beyond the 2,000 that are kept.`),
    found.releases.length === 0
      ? empty("No app was in use in this time.", "Name the type appHealth in the monitorList of a namespace. Its daemons then report once an hour how long each app was in use, its sessions and its crashes.")
      : section("Versions", h("p", { class: "quiet" }, `from ${time(found.since)}, days of UTC`), table("Versions of apps", columns, found.releases)),
    app && query.get("namespace") && await comparison(query, found.releases, signal));
}
