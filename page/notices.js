// Notices, their receivers and states.

import { get, post } from "./api.js";
import { acting, definition, empty, h, section, table } from "./dom.js";
import { ago, count, counted, time } from "./format.js";
import { go, link } from "./route.js";

const STATES = [["", "all"], ["waiting", "waiting"], ["delivered", "delivered"], ["dead", "dead letters"], ["dropped", "dropped"]];
const KINDS = { waiting: "", delivered: "good", dead: "bad", dropped: "" };
const EVENTS = { newGroup: "new groups", regressedGroup: "regressed groups", silentDevice: "silent devices", count: "a count" };

function item({ text, object }, event) {
  const path = { newGroup: "/crash", regressedGroup: "/crash", silentDevice: "/device" }[event];
  return h("span", { class: "sub" }, path ? h("a", { href: link(path, { id: object }) }, text || object) : text || object);
}

export async function notices({ query, signal, reader, again }) {
  const state = query.get("state") ?? "";
  const found = await get("/notices", { state, before: query.get("before"), limit: 100 }, signal);
  const { fault, act } = acting();
  const isOperator = reader.role === "operator";
  const button = (title, path, body) => h("button", { type: "button", onclick: () => act(() => post(path, body), again) }, title);
  const acts = (notice) => [["dead", "dropped"].includes(notice.state) && button("Send again", `/notices/${notice.id}`, { action: "send" }), ["dead", "waiting"].includes(notice.state) && button("Drop", `/notices/${notice.id}`, { action: "drop" })].filter(Boolean);
  const columns = [
    { title: "Notice", wide: true, cell: (notice) => [h("span", { class: "strong" }, notice.title), notice.items.map((one) => item(one, notice.event)), notice.count > notice.items.length && notice.items.length > 0 && h("span", { class: "sub" }, `and ${count(notice.count - notice.items.length)} more`)] },
    { title: "When", cell: (notice) => h("span", { title: time(notice.time) }, ago(notice.time)) },
    { title: "Receiver", cell: (notice) => notice.receiver },
    { title: "State", cell: (notice) => [h("span", { class: `tag ${KINDS[notice.state]}` }, notice.state), h("span", { class: "sub" }, [counted(notice.attempts, "attempt"), notice.result].filter(Boolean).join(", "))] },
    ...(isOperator ? [{ title: "Act", cell: acts }] : []),
  ];
  const receivers = found.receivers.map((one) => [one.name, [`${one.form}${one.isSigned ? ", signed" : ""}: ${one.on.map((event) => EVENTS[event]).join(", ")} `, isOperator && button("Test", "/notices/test", { receiver: one.name })]]);
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Notices"), h("div", { class: "tools" }, h("label", { class: "field" }, h("span", null, "State"), h("select", { id: "state", onchange: (event) => go("/notices", { state: event.target.value }) }, STATES.map(([value, title]) => h("option", { value, selected: value === state }, value ? `${title} (${count(found.counts[value])})` : title)))))),
    fault,
    receivers.length === 0 ? empty("No receiver is configured.", "The key notices of the collector’s file lists webhooks and the events that they get notices of: new and regressed groups of crashes, silent devices, counts.") : section("Receivers", definition(receivers)),
    found.notices.length === 0 ? receivers.length > 0 && empty("No notice.", state ? "No notice has this state." : "What was there when this receiver was added gives none; later crashes and changes do.") : section("List", table("Notices", columns, found.notices)),
    found.next !== null && h("p", { class: "tools" }, h("button", { type: "button", onclick: () => go("/notices", { state, before: found.next }) }, "Older")));
}
