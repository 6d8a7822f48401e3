// The address holds all of a view: #/explorer?type=order&range=24h

import { h } from "./dom.js";
import { local, zone } from "./format.js";

export const RANGES = [["15m", "15 minutes", 900], ["1h", "1 hour", 3600], ["6h", "6 hours", 21600], ["24h", "24 hours", 86400],
  ["7d", "7 days", 604800], ["30d", "30 days", 2592000], ["365d", "1 year", 31536000]];

export function current() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/fleet", query: new URLSearchParams(query ?? "") };
}

export function link(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return `#${path}${text ? "?" + text : ""}`;
}

export function go(path, parameters) {
  const next = link(path, parameters);
  if (location.hash === next) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = next;
}

/** The times of the view: `since` and `until` of the address, or a range that ends now. */
export function times(query, standard = "24h") {
  if (query.get("since")) return { since: query.get("since"), until: query.get("until") ?? String(Date.now()) };
  const range = RANGES.find(([name]) => name === query.get("range")) ?? RANGES.find(([name]) => name === standard);
  const until = Date.now();
  return { since: String(until - range[2] * 1000), until: String(until) };
}

/** A range that ends now, or two times. `onChange` gets the members of the address: range, since and until. */
export function rangePicker(query, standard, onChange) {
  const chosen = query.get("since") ? "own" : query.get("range") ?? standard;
  const shown = times(query, standard);
  const field = (id, title, at) => h("input", { type: "datetime-local", id, "aria-label": title, step: 1, required: true, value: local(Number(at)) });
  const [from, to] = [field("since", "From", shown.since), field("until", "Until", shown.until)];
  const fault = h("span", { class: "fault", role: "alert" });
  const form = h("form", { class: "times", hidden: chosen !== "own", onsubmit: (event) => {
    event.preventDefault();
    const [since, until] = [from, to].map((one) => new Date(one.value).getTime());
    if (since < until) onChange({ range: null, since, until });
    else fault.textContent = "The first time must be before the second.";
  } }, from, " to ", to, h("button", { type: "submit", id: "times" }, "Show"), h("small", null, zone(Number(shown.until))), fault);
  const pick = (value) => {
    form.hidden = value !== "own";
    if (value === "own") from.focus();
    else onChange({ range: value, since: null, until: null });
  };
  return h("div", { class: "tools range" }, h("label", { class: "field" }, h("span", null, "Time"),
    h("select", { id: "range", onchange: (event) => pick(event.target.value) },
      RANGES.map(([name, title]) => h("option", { value: name, selected: name === chosen }, `last ${title}`)),
      h("option", { value: "own", selected: chosen === "own" }, "from … to …"))), form);
}

/** A way from an answer that is cut to one that is whole: the same view, from the time on that was read. */
export function narrow(since) {
  const { path, query } = current();
  const parameters = {};
  for (const name of new Set(query.keys())) parameters[name] = query.getAll(name);
  return h("a", { href: link(path, { ...parameters, range: "", since: String(since), until: String(Date.now()) }) }, "Show from then on");
}
