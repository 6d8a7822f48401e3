// All devices at a glance: who is there, what comes, what crashes, what was lost.

import { begin, isWhole } from "./answer.js";
import { get, Problem } from "./api.js";
import { bars, legend, sparkline } from "./chart.js";
import { definition, empty, h, note, refresh, section, table } from "./dom.js";
import { ago, atLeast, brief, count, counted, span, time } from "./format.js";
import { go, link, rangePicker, times } from "./route.js";

const LOST = [["expired", "were too old"], ["evicted", "made room"], ["cleared", "were cleared by an update"], ["dead", "are dead letters"], ["removed", "were removed"]];

function tile(title, value, detail, state) {
  return h("div", { class: `tile ${state ?? ""}` }, h("dt", null, title), h("dd", null, h("b", null, value), h("span", null, detail)));
}

function tiles(fleet, total, groups) {
  const { devices, ledger } = fleet;
  const lost = LOST.reduce((sum, [name]) => sum + (ledger[name] ?? 0), 0);
  const refused = fleet.packets.filter(({ name }) => name.startsWith("refused")).reduce((sum, one) => sum + one.count, 0);
  const stored = fleet.packets.find(({ name }) => name === "stored")?.count ?? 0;
  const start = time(fleet.startTime).slice(0, 16);
  const full = fleet.quotas.filter((one) => one.rows >= one.rowsMax);
  return h("dl", { class: "tiles" },
    tile("Devices", count(devices.total), `${count(devices.hour)} in the last hour, ${count(devices.day)} in 24 h`, devices.total > 0 && devices.hour === 0 ? "warn" : ""),
    tile("Silent", h("a", { href: link("/fleet", { where: "seen > 1d", sort: "silent" }) }, count(devices.silent)), "devices that sent nothing for a day", devices.silent > 0 ? "warn" : "good"),
    tile("Reports", total, "in the time chosen"),
    tile("Crashes", atLeast(groups.count, groups.isWhole), `in ${counted(groups.total, "open group", groups.isWhole)}, in the time chosen`, groups.count > 0 ? "bad" : "good"),
    full.length > 0 && tile("Full", full.slice(0, 5).map((one) => one.namespace).join(", "), `${counted(full.length, "namespace")} with a full quota: no more reports are taken`, "bad"),
    tile("Waiting", brief(ledger.waiting ?? 0), "not yet sent, as each device said with its last packet"),
    tile("Lost", brief(lost), lost ? LOST.filter(([name]) => ledger[name]).map(([name, why]) => `${count(ledger[name])} ${why}`).join(", ") : "on devices, since their stores were made", lost > 0 ? "warn" : "good"),
    tile("Packets", brief(stored), `stored since ${start}, ${refused ? count(refused) : "none"} refused`, refused ? "warn" : "good"));
}

function crashSection(groups, range) {
  if (groups.groups.length === 0) {
    return section("Crashes", empty("No crash in this time that is not resolved.", "Reports of the type appCrash are grouped here. ", h("a", { href: link("/crashes", { ...range, state: "all" }) }, "Resolved and ignored ones")));
  }
  return section("Crashes", table("Groups of crashes", [
    { title: "Crash", wide: true, cell: (group) => h("a", { class: "strong", href: link("/crash", { id: group.fingerprint }) }, group.reason || "(no reason)", h("span", { class: "sub" }, group.frame ?? "no stack")) },
    { title: "Trend", cell: (group) => sparkline(group.trend, `${group.count} crashes over time`) },
    { title: "Count", number: true, cell: (group) => atLeast(group.count, groups.isWhole) },
    { title: "Devices", number: true, cell: (group) => atLeast(group.devices, groups.isWhole) },
    { title: "Last", cell: (group) => h("span", { title: time(group.lastTime) }, ago(group.lastTime, groups.until)) },
  ], groups.groups.slice(0, 5)), groups.total > 5 && h("p", null, h("a", { href: link("/crashes", range) }, `All ${counted(groups.total, "group")}`)));
}

const ROUGH = { seen: "silent", silent: "seen" };

/** The two fields that choose devices: a part of the id, and an expression. */
function deviceFields(list, query, set) {
  const field = (name, placeholder, label) => h("input", { type: "search", id: `device-${name}`, value: query.get(name) ?? "", placeholder, "aria-label": label, "aria-invalid": name === "where" && list.fault ? "true" : null, onchange: (event) => set({ [name]: event.target.value }) });
  return h("div", { class: "tools" }, field("search", "Find a device", "Find a device by a part of its id"),
    field("where", "tag.region = eu and seen > 1d", "Choose devices by an expression over tag.NAME, app, version, namespace, seen, crash, waiting, lost and packets"), list.fault && note("bad", list.fault));
}

function deviceTable(list, query, now, set) {
  const sort = query.get("sort") ?? "seen";
  const age = (milliseconds, isLate) => (milliseconds ? h("span", { class: isLate ? "late" : "", title: time(milliseconds) }, ago(milliseconds, now)) : "–");
  return table("Devices", [
    { title: "Device", wide: true, sort: "device", cell: (device) => h("a", { class: "strong mono", href: link("/device", { id: device.device }) }, device.device) },
    { title: sort === "silent" ? "Seen, longest ago" : "Seen", sort: sort === "silent" ? "silent" : "seen", cell: (device) => age(device.seenTime, now - device.seenTime > 86400000) },
    { title: "App", cell: (device) => [device.app, device.version].filter(Boolean).join(" ") || "–" },
    { title: "Tags", wide: true, cell: (device) => Object.entries(device.tags).map(([name, text]) => h("span", { class: "tag" }, `${name}=${text}`)) },
    { title: "Namespaces", cell: (device) => device.namespaces.join(", ") },
    { title: "Waiting", number: true, sort: "waiting", cell: (device) => count(device.waiting) },
    { title: "Lost", number: true, sort: "lost", cell: (device) => h("span", { class: device.lost ? "warn" : "" }, count(device.lost)) },
    { title: "Last crash", sort: "crash", cell: (device) => age(device.crashTime, now - device.crashTime < 86400000) },
    { title: "Packets", number: true, sort: "packets", cell: (device) => count(device.packets) },
    { title: "Accounts", cell: (device) => (device.differences ? h("a", { class: "tag bad", href: link("/device", { id: device.device }), title: "What the device says that it delivered is not what is here" }, "don’t add up") : h("span", { class: "tag good" }, "add up")) },
  ], list.devices, { sort, onSort: (name) => set({ sort: name === sort ? ROUGH[name] ?? name : name }) });
}

function deviceSection(list, query, now) {
  const set = (change) => go("/fleet", { ...Object.fromEntries(query), after: null, ...change });
  const isChosen = query.get("search") || query.get("where");
  const content = list.devices.length === 0
    ? !list.fault && empty(isChosen ? "No device is chosen by this." : "No device has sent a packet yet.",
      isChosen ? "Clear the fields to see all." : "Set `url` of a namespace on a device to this collector's address, then report something: prismctl send --type net --meta '{\"ms\":12}'.")
    : deviceTable(list, query, now, set);
  return section(`Devices (${count(list.total)})`, deviceFields(list, query, set), content,
    h("p", { class: "pages" }, query.get("after") && h("button", { type: "button", onclick: () => set({}) }, "First"),
      list.next !== null && h("button", { type: "button", onclick: () => set({ after: list.next }) }, "Next")));
}

function retentionText(fleet) {
  const rules = fleet.retentionRules ? `, some for less: ${counted(fleet.retentionRules, "rule")} of retention` : "";
  return (fleet.retentionDays ? `${fleet.retentionDays} days` : "for ever (retentionDay)") + rules;
}

function collectorSection(fleet) {
  const refused = fleet.refusals.length === 0
    ? h("p", { class: "quiet" }, `No packet was refused since ${time(fleet.startTime)}.`)
    : table(`Refused packets by cause, since ${time(fleet.startTime)}`, [{ title: "Cause", wide: true, cell: (one) => one.name }, { title: "Packets", number: true, cell: (one) => count(one.count) }], fleet.refusals);
  const outputs = fleet.outputs.length === 0
    ? h("p", { class: "quiet" }, "No outputs. The key outputs of the collector’s file hands reports on.")
    : table("Outputs", [{ title: "Output", wide: true, cell: (one) => one.name }, { title: "Delivered", number: true, cell: (one) => count(one.delivered) },
      { title: "Dead letters", number: true, cell: (one) => count(one.dead) }, { title: "Waits for", cell: (one) => h("span", { class: "sub" }, one.holds || "") }, { title: "Failures", number: true, cell: (one) => count(one.failures) },
      { title: "Lag", number: true, cell: (one) => (one.leading ? span(one.lagSeconds) : "another collector") }], fleet.outputs);
  const configuration = fleet.configuration;
  return [section("Refused packets", refused), section("Outputs", outputs), section("Collector", definition([
    ["Store", fleet.store.failure ? h("span", { class: "tag bad" }, fleet.store.failure) : h("span", { class: "tag good" }, "accepts packets")],
    ["Reports are kept", retentionText(fleet)],
    ["Remote configuration", configuration ? h("a", { href: link("/configuration") }, `version ${configuration.version}, ${count(configuration.failed)} of ${counted(configuration.devices, "device")} refused it`) : "not served"],
  ]))];
}

/** A fault of the expression is shown beside its field. */
async function devicesOf(query, signal) {
  const parameters = ["search", "where", "sort", "after"].map((name) => [name, query.get(name)]);
  try {
    return await get("/devices", { ...Object.fromEntries(parameters), limit: 25 }, signal);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400) throw error;
    return { devices: [], total: 0, next: null, fault: error.message };
  }
}

export async function fleet({ query, signal, again, reader }) {
  const { since, until } = times(query);
  const range = { range: query.get("range") ?? "24h", since: query.get("since"), until: query.get("until") };
  const [summary, chart, groups, devices] = await Promise.all([
    get("/fleet", {}, signal), begin("/histogram", { since, until, by: "type", buckets: 60 }, signal),
    get("/crashes", { since, until, state: "unresolved", limit: 100 }, signal),
    devicesOf(query, signal),
  ]);
  refresh(again, 15000);
  const picked = (from, to) => go("/explorer", { since: from, until: to });
  const total = document.createTextNode("");
  const reports = chart.grow((chart) => {
    total.data = atLeast(chart.total, isWhole(chart), brief);
    return section("Reports by type", chart.total === 0
      ? isWhole(chart) ? empty("No report in this time.", "Choose a longer time, or look whether devices are held: prismctl explain NAMESPACE says why.") : empty("No report so far.")
      : [bars("Reports by type", chart, picked), legend(chart.groups, (type) => link("/explorer", { type, ...range })), chart.groups.includes("appCrash") && h("p", { class: "hint" }, "A report with a payload is two rows here, one of each kind. Crashes count it once.")]);
  });
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Fleet"), rangePicker(query, "24h", (change) => go("/fleet", { ...Object.fromEntries(query), ...change, after: null }))),
    summary.store.failure && note("bad", h("b", null, "The store takes no packets: "), summary.store.failure),
    tiles(summary, total, groups),
    reports, crashSection(groups, range), deviceSection(devices, query, summary.now), reader.namespaces ? "" : h("div", { class: "columns" }, collectorSection(summary)));
}
