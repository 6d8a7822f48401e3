// Reports by any field: a histogram, charts of numbers, the reports themselves, as they come if wanted.

import { begin, going, isWhole } from "./answer.js";
import { address, get, Problem } from "./api.js";
import { bars, estimate, groupName, legend, lines } from "./chart.js";
import { empty, h, newID, note, section, table } from "./dom.js";
import { atLeast, brief, bytes, counted, time } from "./format.js";
import { go, link, rangePicker, times } from "./route.js";
import { condition, leaves, oneLine, pathText, tree } from "./tree.js";

const FILTERS = ["namespace", "type", "device", "kind", "meta"];
const FIGURES = [["p95", "p95"], ["p50", "p50 (median)"], ["avg", "average"], ["max", "max"], ["count", "count"]];
const PAGE = 50;
/** Values that are suggested, and the length of the longest. */
const [SUGGESTED_MAX, VALUE_MAX] = [200, 60];

function state(query) {
  const filter = { meta: query.getAll("meta") };
  for (const name of FILTERS.slice(0, 4)) filter[name] = query.get(name) ?? "";
  const all = { ...filter };
  for (const name of ["range", "since", "until", "by", "key", "figure"]) all[name] = query.get(name);
  return { filter, all };
}

function field(title, control, help) {
  return h("label", { class: "field" }, h("span", null, title), control, help && h("small", null, help));
}

/** What the reports that are shown have: conditions, devices, fields, and fields of numbers. */
function suggestions(reports) {
  const found = reports.flatMap((report) => leaves(report.meta)).filter(([, value]) => String(value).length <= VALUE_MAX);
  const often = (texts) => [...Map.groupBy(texts, (text) => text)].sort(([, one], [, other]) => other.length - one.length).map(([text]) => text).slice(0, SUGGESTED_MAX);
  return { conditions: often(found.map(([path, value]) => condition(path, value))), devices: often(reports.map((report) => report.device)),
    fields: often(found.map(([path]) => `meta.${pathText(path)}`)), numbers: often(found.filter(([, value]) => typeof value === "number").map(([path]) => pathText(path))) };
}

const options = (id, words) => h("datalist", { id }, words.map((word) => h("option", { value: word })));

/** The key of a meta with a dot in its name that a condition takes for two keys, and how it is written. */
function dotted(all, reports) {
  const keys = new Set(reports.flatMap((report) => leaves(report.meta)).flat().filter(Array.isArray).flat().filter((key) => key.includes(".")));
  const asked = [...all.meta.map((text) => text.split(/\s*[=!<>~]/)[0].trim()), all.key ?? "", (all.by ?? "").replace(/^meta\./, "")].filter((text) => text.includes(".") && !text.includes('"'));
  return asked.map((text) => [text, keys.has(text)]).sort(([, one], [, other]) => other - one)[0];
}

function dotHint(all, reports) {
  const found = dotted(all, reports);
  if (!found) return null;
  return found[1] ? note("warn", `${found[0]} is one key here. Write it in quotes: `, h("code", null, `"${found[0]}"`))
    : h("p", { class: "hint" }, `${found[0]} is a path through maps. If it is one key with a dot in its name, write it in quotes: `, h("code", null, `"${found[0]}"`));
}

function filterBar(all, types, set, known, fault) {
  const lists = [newID("types"), newID("names")];
  const input = (name, list, hint) => h("input", { id: `filter-${name}`, value: all[name], list, placeholder: hint, spellcheck: "false", autocomplete: "off", onchange: (event) => set({ [name]: event.target.value.trim() }) });
  const isFaulty = fault?.message.startsWith("meta:");
  const meta = h("input", { id: "filter-meta", list: "conditions", placeholder: "ms >= 100", spellcheck: "false", autocomplete: "off", "aria-describedby": "meta-help", "aria-invalid": isFaulty ? "true" : null });
  const names = [...new Set(types.map(({ namespace }) => namespace))];
  const shown = types.filter(({ namespace }) => !all.namespace || namespace === all.namespace);
  return h("form", { class: "filters", onsubmit: (event) => {
    event.preventDefault();
    const value = meta.value.trim();
    meta.value = "";
    set({ type: document.getElementById("filter-type").value.trim(), namespace: document.getElementById("filter-namespace").value.trim(),
      device: document.getElementById("filter-device").value.trim(), meta: value ? [...all.meta, value] : all.meta });
  } }, field("Namespace", input("namespace", lists[1], "any")), field("Type", input("type", lists[0], "any")), field("Device", input("device", "devices", "any")),
  field("Field of the meta", meta, h("span", { id: "meta-help" }, '= != < <= > >= ~ (contains); a dotted key: "http.code" = 404')), h("button", { type: "submit", class: "main" }, "Apply"),
  options(lists[0], [...new Set(shown.map(({ type }) => type))]), options(lists[1], names), options("conditions", known.conditions), options("devices", known.devices));
}

function chips(all, set) {
  const chosen = [...FILTERS.slice(0, 4).filter((name) => all[name]).map((name) => [`${name} = ${all[name]}`, { [name]: "" }]),
    ...all.meta.map((text, place) => [text, { meta: all.meta.filter((_, other) => other !== place) }]),
    ...(all.since ? [[`${time(Number(all.since))} to ${time(Number(all.until ?? Date.now()))}`, { since: null, until: null }]] : [])];
  if (chosen.length === 0) return null;
  return h("ul", { class: "chips", "aria-label": "Filters" }, chosen.map(([text, change]) => h("li", null, h("span", null, text),
    h("button", { type: "button", "aria-label": `Remove the filter ${text}`, onclick: () => set(change) }, "×"))),
  h("li", { class: "all" }, h("button", { type: "button", onclick: () => go("/explorer", {}) }, "Clear all")));
}

// Reports

function details(report, pick) {
  const payload = report.payloadBytes === null ? "none" : h("span", null, bytes(report.payloadBytes), " ", h("a", { href: address(`/reports/${report.id}/payload`), download: `report-${report.id}.bin` }, "Download"));
  return h("div", { class: "details" }, h("dl", { class: "facts" }, [
    ["Report", h("code", null, report.reportId)], ["Received", time(report.receivedTime)], ["Created", report.createdTime === null ? "the device did not say when" : `${time(report.createdTime)}, by the device’s clock, corrected`],
    ["Device", h("a", { href: link("/device", { id: report.device }) }, report.device)], ["Packet", h("code", null, report.packetId)], ["Payload", payload],
    ["Chain", report.chainBroken ? "the packet before this one never came" : "whole"],
  ].map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))),
  report.damaged ? note("bad", "This report is damaged in the store: its content is left out.") : tree(report.meta ?? {}, pick));
}

function line(report, pick) {
  const id = newID("report");
  const inner = h("tr", { id, class: "inner", hidden: true });
  const button = h("button", { type: "button", class: "open", "aria-expanded": "false", "aria-controls": id, onclick: () => {
    const isOpen = inner.hidden;
    if (isOpen && !inner.firstChild) inner.append(h("td", { colspan: 4 }, details(report, pick)));
    inner.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  } }, h("span", { "aria-hidden": "true" }, "▸"), time(report.receivedTime));
  return [h("tr", { "data-id": report.id }, h("td", { class: "narrow" }, button), h("td", { class: "narrow" }, h("span", { class: "type" }, report.type), h("span", { class: "sub" }, report.namespace)),
    h("td", { class: "narrow mono" }, h("a", { href: link("/device", { id: report.device }) }, report.device.length > 20 ? report.device.slice(0, 18) + "…" : report.device)),
    h("td", { class: "wide line" }, report.payloadBytes !== null && h("span", { class: "tag" }, bytes(report.payloadBytes)), oneLine(report.meta))), inner];
}

function reportTable() {
  const body = h("tbody");
  return { body, element: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Reports" }, h("table", { class: "reports" }, h("caption", { class: "hidden" }, "Reports, the newest first"),
    h("thead", null, h("tr", null, ["Received", "Type", "Device", "Meta"].map((title) => h("th", { scope: "col" }, title)))), body)) };
}

function live(filter, body, pick, button, told) {
  const source = new EventSource(address("/tail", filter));
  let shown = 0;
  const stop = () => {
    source.close();
    [button.textContent, told.textContent] = ["Live", counted(shown, "new report")];
    button.setAttribute("aria-pressed", "false");
  };
  source.addEventListener("report", (event) => {
    const report = JSON.parse(event.data);
    if (body.querySelector(`tr[data-id="${Number(report.id)}"]`)) return;
    body.prepend(...line(report, pick));
    shown += 1;
    while (body.children.length > 400) body.lastChild.remove();
    told.textContent = counted(shown, "new report");
  });
  source.addEventListener("cut", () => { told.textContent = `${counted(shown, "new report")}; more come than are shown`; });
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) { told.textContent = "The collector does not answer; the live tail asks again."; return; }
    stop();
    told.textContent = "The live tail ended: the collector refused it.";
  });
  source.addEventListener("open", () => { told.textContent = counted(shown, "new report"); });
  button.textContent = "Stop";
  button.setAttribute("aria-pressed", "true");
  addEventListener("prism-leave", () => source.close(), { once: true });
  return stop;
}

function reportSection(page, asked, all, pick, signal) {
  const { since, until, ...filter } = asked;
  const told = h("span", { class: "quiet", role: "status" });
  const { body, element } = reportTable();
  let stop = null;
  const toggle = h("button", { type: "button", "aria-pressed": "false", onclick: () => { stop = stop ? (stop(), null) : live(filter, body, pick, toggle, told); } }, "Live");
  const blank = empty("No report matches.", all.meta.length ? "A condition on a field that a report does not have never holds. " : "", "Choose a longer time, or remove a filter.");
  let next = page.next;
  /** Of the reports that are shown next. */
  let left = PAGE;
  const more = h("button", { type: "button", onclick: () => {
    left = PAGE;
    search.replaceChildren(going(step, 0, signal));
  } }, "Older reports");
  /** A search that found too few goes on where it came to; null: it found enough, or there are no more. */
  const add = (found) => {
    body.append(...found.reports.flatMap((report) => line(report, pick)));
    [next, left] = [found.next, left - found.reports.length];
    const goesOn = next !== null && left > 0 && found.readSince !== null;
    [more.hidden, blank.hidden] = [next === null || goesOn, goesOn || body.children.length > 0];
    return goesOn ? Math.min(1, Math.max(0, (until - found.readSince) / (until - since))) : null;
  };
  const step = async (either) => {
    more.hidden = true;
    return add(await get("/reports", { ...asked, before: next, limit: left }, either));
  };
  const share = add(page);
  const search = h("div", null, share !== null && going(step, share, signal));
  const file = (format) => h("a", { class: "button", href: address("/export", { ...asked, format }), download: `reports.${format}`, title: `what is shown, from ${time(Number(since))} to ${time(Number(until))}; at most the newest 10,000` }, format.toUpperCase());
  return section("Reports", h("div", { class: "tools" }, toggle, told, h("span", { class: "right" }, "Export ", file("ndjson"), " ", file("csv"))), blank, element,
    search, h("p", { class: "pages" }, more));
}

// Numbers

function numberSection(data, all, set) {
  const figure = all.figure ?? "p95";
  const picker = h("select", { id: "figure", "aria-label": "Figure", onchange: (event) => set({ figure: event.target.value }) }, FIGURES.map(([name, title]) => h("option", { value: name, selected: name === figure }, title)));
  const zoom = (from, to) => set({ since: from, until: to, range: null });
  const rows = data.groups.filter((group) => data.summary[group]).map((group) => ({ group, ...data.summary[group] }));
  return section(`Numbers of ${all.key}`, h("div", { class: "tools" }, picker), rows.length === 0
    ? empty(isWhole(data) ? "No report in this time has a number there." : "No number so far.", "Write the field’s path, as ms or net.ms. Texts are not counted.")
    : [lines(`${figure} of ${all.key}`, data, figure, zoom), legend(data.groups),
      table("Figures", [{ title: all.by ? all.by : "Reports", wide: true, cell: (row) => groupName(row.group) === "(none)" && !all.by ? "all" : groupName(row.group) }, { title: "Count", number: true, cell: (row) => atLeast(row.count, isWhole(data)) },
        ...["avg", "min", "p50", "p95", "max"].map((name) => ({ title: name, number: true, cell: (row) => estimate(name, row[name], data) }))], rows)]);
}

/** What the filters find; a filter that the collector refuses has `fault` in the place of all of it. */
async function found(asked, all, by, signal) {
  try {
    const [chart, page, numbers] = await Promise.all([begin("/histogram", { ...asked, by, buckets: 80 }, signal), get("/reports", { ...asked, limit: PAGE }, signal),
      all.key ? begin("/aggregate", { ...asked, key: all.key, by: all.by, buckets: 80 }, signal) : null]);
    return { chart, page, numbers };
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400) throw error;
    return { fault: error, page: { reports: [] } };
  }
}

export async function explorer({ query, signal }) {
  const { filter, all } = state(query);
  const { since, until } = times(query);
  const by = all.by ?? "type";
  const asked = { ...filter, since, until };
  const [types, { chart, page, numbers, fault }] = await Promise.all([get("/types", {}, signal), found(asked, all, by, signal)]);
  const set = (change) => go("/explorer", { ...all, ...change });
  const pick = (path, value) => set({ meta: [...all.meta, condition(path, value)].slice(0, 8) });
  const known = suggestions(page.reports);
  const groups = ["type", "namespace", "device", "kind"];
  const title = [...FILTERS.slice(0, 4).map((name) => all[name]), ...all.meta].filter(Boolean).join(", ");
  return h("div", { "data-title": title ? `${title} · Explorer` : "Explorer" }, h("div", { class: "head" }, h("h1", null, "Explorer"), rangePicker(query, "24h", set)),
    filterBar(all, types.types, set, known, fault), chips(all, set), fault && note("bad", h("b", null, "Not asked: "), fault.message), dotHint(all, page.reports),
    h("div", { class: "tools" },
      field("Group by", h("input", { id: "group-by", value: all.by ?? "", placeholder: "type", list: "group-words", spellcheck: "false", autocomplete: "off", onchange: (event) => { const word = event.target.value.trim(); set({ by: word && !groups.includes(word) && !word.startsWith("meta.") ? `meta.${word}` : word }); } })),
      options("group-words", [...groups, ...known.fields]), options("number-words", known.numbers),
      field("Chart the numbers of", h("input", { id: "chart-key", value: all.key ?? "", placeholder: "a field, as ms", list: "number-words", spellcheck: "false", autocomplete: "off", onchange: (event) => set({ key: event.target.value.trim() }) }))),
    !fault && [chart.grow((chart) => section(`${atLeast(chart.total, isWhole(chart), brief)} reports`, chart.total === 0 ? h("div", { class: "chart blank" }, isWhole(chart) ? "No report in this time matches." : "No report so far.") : [bars("Reports", chart, (from, to) => set({ since: from, until: to, range: null })),
      legend(chart.groups, by === "type" ? (type) => link("/explorer", { ...all, type }) : null)])),
    !all.kind && page.reports.some((one) => one.kind === "payload") && h("p", { class: "hint" }, "A report with a payload is two rows here, one of each kind. With the kind meta each report is one."),
    numbers?.grow((data) => numberSection(data, all, set)), reportSection(page, asked, all, pick, signal)]);
}
