// A question about kept reports: who answered, who has not, what it cost, and the merged answer.

import { get } from "./api.js";
import { definition, h, section, table } from "./dom.js";
import { bytes, count, counted, real, span, time } from "./format.js";
import { link } from "./route.js";

const STATES = { done: "good", failed: "bad", refused: "bad", expired: "warn" };
const NUMBERS = ["sum", "min", "p50", "p90", "p95", "p99", "max"];

/** The arguments of `ask`, as lines of words. */
function words(asked) {
  const { type, rows, of, by, last, since, until, field, equals, contains, from, to } = asked ?? {};
  const given = (value) => value !== undefined;
  const when = [given(last) && `of the last ${span(last)}`, given(since) && `from ${time(since)}`, given(until) && `before ${time(until)}`];
  const range = [given(from) && `at least ${from}`, given(to) && `at most ${to}`].filter(Boolean).join(" and ");
  const meets = given(equals) ? `is ${equals}` : given(contains) ? `contains ${contains}` : range && `is ${range}`;
  return [["Type", type ?? "–"], ["Asked for", rows ? "the reports" : of ? `numbers of ${of}` : "their number"], given(by) && ["For each value of", by],
    when.some(Boolean) && ["Only reports", when.filter(Boolean).join(", ")], given(field) && ["If", `${field} ${meets}`]].filter(Boolean);
}

export async function question({ query, signal }) {
  const [namespace, id] = ["namespace", "id"].map((name) => query.get(name) ?? "");
  const found = await get(`/questions/${encodeURIComponent(namespace)}/${encodeURIComponent(id)}`, {}, signal);
  const groups = [...found.groups, ...(found.others.count > 0 ? [{ ...found.others, value: "(others)" }] : [])];
  const columns = [{ title: "Group", wide: true, cell: (one) => one.value || "all" }, { title: "Count", number: true, cell: (one) => count(one.count) },
    ...NUMBERS.map((name) => ({ title: name, number: true, cell: (one) => real(one[name]) })), { title: "Error", number: true, cell: (one) => `± ${real(one.error * 100)} %` }];
  const states = Object.entries(found.states).map(([state, number]) => h("span", { class: `tag ${STATES[state] ?? ""}` }, `${count(number)} ${state}`));
  const devices = [{ title: "Device", wide: true, cell: (one) => h("a", { href: link("/device", { id: one.device }) }, one.device) },
    { title: "State", narrow: true, cell: (one) => h("span", { class: `tag ${STATES[one.state] ?? ""}` }, one.state) },
    { title: "Reports", number: true, cell: (one) => count(one.rows) }, { title: "Bytes", number: true, cell: (one) => (one.bytes === null ? "–" : bytes(one.bytes)) },
    { title: "Says", wide: true, cell: (one) => one.message ?? "" }];
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Question")), definition([["Id", id], ["Namespace", namespace], ...words(found.question), ["Devices", states],
    ["Reports found", count(found.rows)], ["Bytes that leave", bytes(found.bytes)], ["Looked at", `${counted(found.looked, "report")} in ${count(found.ms)} ms`]]),
  groups.length > 0 && section("Answer", table("Answer", columns, groups)), section("Devices", table("Devices", devices, found.devices)));
}
