// Crashes by their cause: a list of groups, and one group with its frames.

import { untilWhole } from "./answer.js";
import { address, get, post, text } from "./api.js";
import { bars, sparkline } from "./chart.js";
import { acting, definition, empty, h, note, portion, section, table } from "./dom.js";
import { ago, atLeast, bytes, count, counted, real, time } from "./format.js";
import { go, link, rangePicker, times } from "./route.js";
import { tree } from "./tree.js";

const PAYLOAD_MAX = 65536;

const STATES = [["unresolved", "not resolved"], ["open", "open"], ["regressed", "regressed"], ["resolved", "resolved"], ["ignored", "ignored"], ["all", "all"]];
const KINDS = { open: "", resolved: "good", ignored: "", regressed: "bad" };
const DAY = 86400000;
/** Reports around a crash came this many milliseconds before or after it. */
const AROUND = 300000;
const THREADS_MAX = 64;
/** How systemd-coredump, gdb, Swift, Go and Python head the stack of a thread. */
const THREAD = /^(Stack trace of thread \d+|Thread \d+[ :]|goroutine \d+ \[|(Current t|T)hread 0x)/;

function stateTag(group) {
  return group.state === "open" ? null : h("span", { class: `tag ${KINDS[group.state]}` }, group.state);
}

/** Who said what about a group. */
function told({ state, change }) {
  if (!change) return null;
  const when = h("span", { title: time(change.changedTime) }, ago(change.changedTime));
  const ends = [change.count && `${counted(change.count, "more crash")}`, change.devices && `${counted(change.devices, "more device")}`, change.until && time(change.until)].filter(Boolean).join(" or ");
  if (ends) return h("p", { class: "quiet" }, `Ignored by ${change.who}, `, when, `, until ${ends}.`, change.regressedTime && ` It is open again since ${ago(change.regressedTime)}.`);
  if (state === "open") return h("p", { class: "quiet" }, `Reopened by ${change.who}, `, when, ".");
  const fix = change.build ? ` in ${change.build}. Earlier versions may go on crashing` : ". Any crash that happens later is a regression";
  return h("p", { class: "quiet" }, `Resolved by ${change.who}, `, when, fix, ".", change.regressedTime && ` A later crash was found ${ago(change.regressedTime)}.`);
}

/** Forms that send changes, and show what is then there. The fault of the last one is in `fault`. */
function changes(group, again) {
  const { fault, act } = acting();
  const send = (path, body, then) => act(() => post(path, body), then);
  const form = (body, ...parts) => ruled(() => send(`/crashes/${encodeURIComponent(group.fingerprint)}/state`, body(), again), parts);
  const ruled = (action, ...parts) => h("form", { class: "tools", onsubmit: (event) => {
    event.preventDefault();
    action();
  } }, parts);
  const rule = (fingerprint, body, then) => send(`/crashes/${encodeURIComponent(fingerprint)}/group`, body, then);
  return { fault, form, ruled, rule };
}

/** How the crashes of a group are grouped, and what an operator can change about it. */
function grouping(group, key, groupedBy, isOperator, again) {
  const { fault, ruled, rule } = changes(group, again);
  const facts = [["Key", key.length > 0 ? key.map((part) => h("div", null, h("code", null, part))) : "the words of the crash"]];
  if (groupedBy.length > 0) facts.push(["Rules of operators", groupedBy.map((fingerprint) => h("div", null, h("code", null, fingerprint), " ", isOperator && h("button", { type: "button", class: "undo", onclick: () => rule(fingerprint, { into: null }, () => go("/crashes", {})) }, "End the rule")))]);
  const other = h("input", { id: "into", "aria-label": "Fingerprint of another group", placeholder: "fingerprint", maxlength: 16 });
  const detail = h("select", { id: "splitBy" }, [["words", "words"], ["frames", "all frames"]].map(([value, title]) => h("option", { value }, title)));
  return section("Grouping", definition(facts), isOperator && [
    ruled(() => rule(group.fingerprint, { into: other.value.trim() }, () => go("/crash", { id: other.value.trim() })), h("label", { class: "field" }, h("span", null, "Merge into"), other), h("button", { type: "submit", id: "merge" }, "Merge")),
    ruled(() => rule(group.fingerprint, { splitBy: detail.value }, () => go("/crashes", {})), h("label", { class: "field" }, h("span", null, "Split by"), detail), h("button", { type: "submit", id: "split" }, "Split")), fault]);
}

/** What an operator can do with the state of a group. */
function controls(group, versions, again) {
  const { fault, form } = changes(group, again);
  if (group.state === "resolved" || group.state === "ignored") return form(() => ({ state: "open" }), h("button", { type: "submit", id: "change" }, "Reopen"), fault);
  const build = h("input", { id: "build", list: "builds", placeholder: "any later crash", maxlength: 200 });
  const more = h("input", { id: "more", type: "number", min: 1, max: 1000000000, placeholder: "no limit" });
  const days = h("input", { id: "days", type: "number", min: 1, max: 3650, placeholder: "no limit" });
  const devices = h("input", { id: "moreDevices", type: "number", min: 1, max: 1000000000, placeholder: "no limit" });
  const ignore = () => ({ state: "ignored", count: more.valueAsNumber || null, devices: devices.valueAsNumber || null, until: days.valueAsNumber ? Date.now() + days.valueAsNumber * DAY : null });
  return h("div", null,
    form(() => ({ state: "resolved", build: build.value.trim() || null }), h("label", { class: "field" }, h("span", null, "Fixed in version"), build), h("datalist", { id: "builds" }, versions.filter((one) => one.version).map((one) => h("option", { value: one.version }))), h("button", { type: "submit", class: "main", id: "change" }, "Resolve")),
    form(ignore, h("label", { class: "field" }, h("span", null, "Ignore until more crashes"), more), h("label", { class: "field" }, h("span", null, "or devices"), devices), h("label", { class: "field" }, h("span", null, "or days"), days), h("button", { type: "submit", id: "ignore" }, "Ignore")), fault);
}

function said(note, text) {
  return [text, h("span", { class: "sub", title: time(note.time) }, `${note.who}, ${ago(note.time)}`)];
}

/** Assignee, link and comments, which operators change. */
function notes(group, comments, isOperator, again) {
  const { fault, form } = changes(group, again);
  const field = (id, title, value, maxlength) => h("input", { id, "aria-label": title, placeholder: title, value, maxlength });
  const [assignee, address, comment] = [field("assignee", "Assignee", group.assignee?.text ?? "", 200), field("link", "Link to a ticket", group.link?.text ?? "", 1000), field("comment", "Comment", "", 2000)];
  const rows = [
    group.assignee && ["Assignee", said(group.assignee, group.assignee.text)],
    group.link && ["Link", said(group.link, h("a", { href: group.link.text, rel: "noreferrer" }, group.link.text))],
    ...comments.toReversed().map((one) => ["Comment", said(one, one.text)]),
  ].filter(Boolean);
  if (rows.length === 0 && !isOperator) return null;
  const save = () => ({ assignee: assignee.value.trim() || null, link: address.value.trim() || null, comment: comment.value.trim() || null });
  return section("Notes", rows.length > 0 && definition(rows), isOperator && form(save, assignee, address, comment, h("button", { type: "submit", id: "note" }, "Save")), fault);
}

export async function crashes({ query, signal, again }) {
  const { since, until } = times(query, "30d");
  const state = query.get("state") ?? "unresolved";
  const asked = { since, until, state: state === "all" ? "" : state, namespace: query.get("namespace"), device: query.get("device"), limit: 200 };
  const found = await get("/crashes", asked, signal);
  const columns = [
    { title: "Crash", wide: true, cell: (group) => h("a", { class: "strong", href: link("/crash", { id: group.fingerprint }) }, group.reason || "(no reason)", " ", stateTag(group), h("span", { class: "sub" }, [group.frame ?? "no stack", group.assignee?.text].filter(Boolean).join(" · "))) },
    { title: "Trend", cell: (group) => sparkline(group.trend, `${group.count} crashes over time`) },
    { title: "Count", number: true, cell: (group) => atLeast(group.count, found.isWhole) },
    ...(query.get("device") ? [{ title: "On this device", number: true, cell: (group) => atLeast(group.deviceCount, found.isWhole) }] : []),
    { title: "Devices", number: true, cell: (group) => atLeast(group.devices, found.isWhole) },
    { title: "Versions", cell: (group) => group.versions.filter(Boolean).join(", ") || "–" },
    { title: "First", cell: (group) => h("span", { title: time(group.firstTime) }, ago(group.firstTime, found.until)) },
    { title: "Last", cell: (group) => h("span", { title: time(group.lastTime) }, ago(group.lastTime, found.until)) },
  ];
  const device = query.get("device");
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Crashes"), h("div", { class: "tools" }, h("label", { class: "field" }, h("span", null, "State"), h("select", { id: "state", onchange: (event) => go("/crashes", { ...Object.fromEntries(query), state: event.target.value }) }, STATES.map(([value, title]) => h("option", { value, selected: value === state }, title)))),
    rangePicker(query, "30d", (change) => go("/crashes", { ...Object.fromEntries(query), ...change })))),
    device && h("ul", { class: "chips", "aria-label": "Filters" }, h("li", null, h("span", null, `device = ${device}`), h("button", { type: "button", "aria-label": "Remove the filter", onclick: () => go("/crashes", { ...Object.fromEntries(query), device: null }) }, "×"))),
    found.groups.length > 0 && h("p", { class: "quiet" }, `${counted(found.count, "crash", found.isWhole)} in ${counted(found.total, "group", found.isWhole)}, from ${time(found.since)} to ${time(Math.min(found.until, Number(until)))}`),
    !found.isWhole && untilWhole("/crashes", asked, again, signal),
    found.leftOut > 0 && note("warn", `Not shown: ${counted(found.leftOut, "crash")} of groups beyond the 5,000 that are kept.`),
    found.groups.length === 0
      ? empty(state === "all" || state === "unresolved" ? "No crash in this time." : `No crash in this time is ${state}.`, state === "unresolved" && "Those that are resolved or ignored are not shown. ", "Crashes are reports of the type appCrash. In C call prism_crash_install(NULL), in Python prism.install_excepthook(); the journal’s input takes coredumps.")
      : h("section", { "aria-label": "Groups of crashes" }, table("Groups of crashes", columns, found.groups)),
    await symbols(signal));
}

/** A frame with the path of its file; the text has the last part of it only. */
function frame({ text, function: name, file, line, module, isInline }) {
  if (line === null) return h("code", null, text);
  return [h("code", null, name ?? "??"), " ", h("span", { class: "mono quiet" }, `${file}:${line}`), h("span", { class: "sub" }, [module, isInline && "inlined"].filter(Boolean).join(", "))];
}

/** What names the frames of a build. */
const naming = () => ["To name its frames, on the collector’s machine: ", h("code", null, "sudo prism-collector symbols add FILE"), ". FILE is the program as it was before it was stripped, or what ", h("code", null, "objcopy --only-keep-debug PROGRAM FILE"), " makes of it."];

/** The frames of the app, then those of libraries. A build whose frames have no name is said with the command that names them. */
function frameList(stack) {
  if (stack.length === 0) return empty("No stack is known.", "A stack is read from stack, frames, backtrace, stacktrace or traceback of the meta, or from the payload.");
  const list = (isApp) => stack.map((one, place) => one.isApp === isApp && h("li", { "data-place": place, class: isApp ? "top" : null }, frame(one))).filter(Boolean);
  const other = list(false);
  const nameless = stack.find((one) => one.isApp && one.buildId && !one.function);
  return [h("ol", { class: "frames" }, list(true)),
    other.length > 0 && h("details", null, h("summary", null, `${counted(other.length, "frame")} of libraries`), h("ol", { class: "frames" }, other)),
    nameless && h("p", { class: "quiet" }, `There is no debug file of ${nameless.module}, build `, h("code", null, nameless.buildId), ". ", naming())];
}

/** Debug files, and the builds that crashed and have no file. */
async function symbols(signal) {
  const found = await get("/symbols", {}, signal);
  if (found.total === 0 && found.missing.length === 0) return null;
  const faulty = found.files.filter((file) => file.fault);
  return section("Debug files", h("p", { class: "quiet" }, `Debug files of ${counted(found.total, "build")}. `, found.missing.length > 0 && ["The builds below crashed and have none. ", naming()]),
    found.program === null && note("warn", "eu-addr2line is missing at the collector, so no debug file is read: install elfutils."),
    faulty.map((file) => note("warn", `The debug file ${file.buildId} can’t be read: ${file.fault}.`)),
    found.missing.length > 0 && table("Builds without a debug file", [{ title: "Program", cell: (one) => one.module }, { title: "Build id", wide: true, cell: (one) => h("code", null, one.buildId) }, { title: "Crashes", number: true, cell: (one) => count(one.crashes) }], found.missing.slice(0, 20)));
}

function payloadPart(report) {
  if (report.payloadBytes === null) return h("p", { class: "quiet" }, "This report has no payload.");
  const box = h("div", { class: "payload" });
  const show = h("button", { type: "button", onclick: async () => {
    show.disabled = true;
    try {
      const payload = await text(`/reports/${report.id}/payload`, PAYLOAD_MAX);
      box.replaceChildren(h("pre", { tabindex: "0", "aria-label": "The payload as text" }, payload.text), payload.isCut ? note("warn", `The first 64 KiB of ${bytes(payload.bytes)}.`) : "");
      box.firstChild.focus();
    } catch (error) { box.replaceChildren(note("bad", error.message)); }
    show.disabled = false;
  } }, `Show the payload (${bytes(report.payloadBytes)})`);
  return [h("p", { class: "tools" }, show, h("a", { class: "button", href: address(`/reports/${report.id}/payload`), download: `report-${report.id}.bin` }, "Download")), box];
}

/** The stacks of all threads in the text of a payload, which ends one with an empty line. */
function threads(payload) {
  const found = [];
  let current = null;
  for (const line of (payload?.text ?? "").split("\n")) {
    if (THREAD.test(line) && found.length < THREADS_MAX) found.push(current = { title: line.replace(/:$/, ""), lines: [] });
    else if (line.trim() !== "") current?.lines.push(line);
    else if (current?.lines.length > 0) current = null;
  }
  if (found.length < 2) return null;
  return section(`${payload.isCut ? "≥ " : ""}${counted(found.length, "thread")}`, found.map(({ title, lines }) => h("details", null, h("summary", null, title), h("pre", { tabindex: "0", "aria-label": title }, lines.join("\n")))));
}

/** The registers of the thread that crashed. */
function registers(meta) {
  const all = Object.entries(meta?.registers ?? {}).filter(([, value]) => typeof value !== "object");
  return all.length > 0 && section("Registers", definition(all.map(([name, value]) => [name, h("code", null, value)])));
}

/** The notes, reports and log lines before a crash. */
function timeline(meta, happened) {
  const lines = Array.isArray(meta?.breadcrumbs) ? meta.breadcrumbs.filter((one) => typeof one?.text === "string") : [];
  if (lines.length === 0) return null;
  const before = (at) => (Number.isFinite(at) && happened ? `${real((at - happened) / 1000)} s` : "–");
  return section("Before the crash", table("Before the crash", [
    { title: "Time", narrow: true, cell: (one) => h("span", { title: Number.isFinite(one.time) ? time(one.time) : "" }, before(one.time)) },
    { title: "Type", narrow: true, cell: (one) => one.type ?? "note" }, { title: "Text", wide: true, cell: (one) => one.text }], lines));
}

export async function crash({ query, signal, reader, again }) {
  const { group, stack, devices, versions, reports, comments, key, groupedBy, trendEnd, isWhole, similar } = await get(`/crashes/${encodeURIComponent(query.get("id") ?? "")}`, {}, signal);
  const shown = query.get("report") ?? reports[0];
  let report = null;
  try { report = await get(`/reports/${encodeURIComponent(shown)}`, {}, signal); } catch (error) { if (error.status !== 404) throw error; }
  const stacks = report?.payloadBytes ? await text(`/reports/${report.id}/payload`, PAYLOAD_MAX).catch(() => null) : null;
  const width = (14 * DAY) / group.trend.length;
  const first = trendEnd - group.trend.length * width;
  const trend = { first, readSince: isWhole ? null : first, since: first, until: trendEnd, bucketMilliseconds: width, groups: ["crashes"], buckets: group.trend.map((value, place) => ({ time: first + place * width, counts: { crashes: value } })) };
  const share = (title, rows, cell) => section(title, table(title, [{ title, wide: true, cell }, { title: "Crashes", narrow: true, cell: (row) => portion(row.count, rows[0].count, count(row.count)) }], rows.slice(0, 10)), rows.length > 10 && h("p", { class: "quiet" }, `and ${count(rows.length - 10)} more`));
  return h("div", { "data-title": [group.reason || "Crash", group.frame].filter(Boolean).join(" in ") }, h("p", { class: "crumb" }, h("a", { href: "#/crashes" }, "Crashes")), h("div", { class: "head" }, h("h1", null, group.reason || "(no reason)", " ", stateTag(group)), reader.role === "operator" && controls(group, versions, again)),
    h("p", { class: "mono sub" }, group.frame ?? "no stack"), told(group),
    definition([["Crashes in all", atLeast(group.total, isWhole)], ["Devices in all", atLeast(group.totalDevices, isWhole)], ["First", `${time(group.firstTime)} (${ago(group.firstTime)})`], ["Last", `${time(group.lastTime)} (${ago(group.lastTime)})`], ["Namespaces", group.namespaces.join(", ")], ["Fingerprint", h("code", null, group.fingerprint)]]),
    h("div", { class: "columns even" }, section("Frames", frameList(stack)), section(`${counted(group.count, "crash", isWhole)} in the last 14 days`, bars("Crashes", trend))),
    h("div", { class: "columns two" }, share("Versions", versions, (row) => row.version || "(unknown)"), share("Devices", devices, (row) => h("a", { class: "mono", href: link("/device", { id: row.device }) }, row.device))),
    similar.length > 0 && section("Similar groups", table("Similar groups", [
      { title: "Crash", wide: true, cell: (one) => h("a", { href: link("/crash", { id: one.fingerprint }) }, one.reason || "(no reason)", h("span", { class: "sub" }, one.frame ?? "no stack")) },
      { title: "Functions in common", number: true, cell: (one) => count(one.shared) }, { title: "Crashes", number: true, cell: (one) => atLeast(one.total, isWhole) }], similar)),
    notes(group, comments, reader.role === "operator", again), grouping(group, key, groupedBy, reader.role === "operator", again),
    section("Reports", h("label", { class: "field" }, h("span", null, "Report"), h("select", { id: "report", onchange: (event) => go("/crash", { id: group.fingerprint, report: event.target.value }) },
      reports.map((id, place) => h("option", { value: id, selected: String(id) === String(shown) }, place === 0 ? `${id} (the newest)` : id)))),
    report === null ? empty("This report is gone.", "Retention has deleted it. Choose another one.") : [definition([["Received", time(report.receivedTime)], ["Device", h("a", { href: link("/device", { id: report.device }) }, report.device)], ["Report", h("code", null, report.reportId)]]),
      h("p", null, h("a", { class: "button", href: link("/explorer", { device: report.device, since: (report.createdTime ?? report.receivedTime) - AROUND, until: (report.createdTime ?? report.receivedTime) + AROUND }) }, "Reports of this device around it")),
      registers(report.meta), threads(stacks), timeline(report.meta, report.meta?.crashTime ?? report.createdTime), payloadPart(report), tree(report.meta ?? {})]));
}
