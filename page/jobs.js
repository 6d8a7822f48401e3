// Jobs: a command for the devices of an expression, how far it came, and who failed.

import { get, post } from "./api.js";
import { acting, ask, definition, empty, h, portion, refresh, section, table } from "./dom.js";
import { ago, count, counted, time } from "./format.js";
import { go, link } from "./route.js";

const STATES = { running: "", paused: "warn", stopped: "bad", cancelled: "", expired: "warn", done: "good" };
const PROGRESS = { waiting: "", sent: "warn", done: "good", failed: "bad" };
/** A job goes on in steps of 5 s. */
const BEAT = 5000;

const total = (job) => Object.values(job.devices).reduce((sum, one) => sum + one, 0);
const what = ({ change }) => [change.command ?? `${change.table}/${change.record}`, change.args && Object.keys(change.args).length > 0 && h("span", { class: "sub mono" }, JSON.stringify(change.args)),
  (change.fields ?? change.patch) && h("span", { class: "sub mono" }, JSON.stringify(change.fields ?? change.patch)), change.delete && h("span", { class: "sub" }, "is deleted")];
const counts = (job) => Object.entries(job.devices).filter(([, number]) => number > 0).map(([name, number]) => h("span", { class: `tag ${PROGRESS[name]}` }, `${count(number)} ${name}`));

function bar(job) {
  const [made, all] = [job.devices.done + job.devices.failed, total(job)];
  return portion(made, all, `${count(made)} of ${count(all)}`);
}

/** Acts of an operator, whose fault is said below them. */
function operating(again) {
  const { fault, act } = acting();
  const change = (path, body) => act(() => post(path, body), again);
  const buttons = (job) => [job.state === "running" && ["pause", "Pause"], ["paused", "stopped"].includes(job.state) && ["resume", "Go on"], ["running", "paused", "stopped"].includes(job.state) && ["cancel", "End"]].filter(Boolean).map(([action, title]) =>
    h("button", { type: "button", onclick: async () => {
      if (action !== "cancel" || await ask(`Not carried out by ${counted(job.devices.waiting, "waiting device")}.`, "End the job")) await change(`/jobs/${job.id}`, { action });
    } }, title));
  return { fault, change, buttons };
}

/** The form that begins a job. Before it begins, it says how many devices the expression chooses. */
function beginning(change, reader) {
  const field = (id, title, options) => h("label", { class: "field" }, h("span", null, title), h("input", { id, autocomplete: "off", required: true, ...options }));
  const fields = [field("namespace", "Namespace", { value: reader.namespaces?.[0] ?? "", placeholder: "shop" }), field("where", "Devices", { placeholder: "tag.region = eu and seen < 1d" }),
    field("command", "Command", { placeholder: "flush" }), field("args", "Arguments, as JSON", { required: false, placeholder: "{\"level\": \"debug\"}" }),
    field("perMinute", "Devices per minute", { type: "number", min: 1, max: 60000, value: 600 }), field("failuresMax", "Stop after more failures than", { type: "number", min: 0, max: 100000, value: 10 }), field("hours", "End after hours", { type: "number", min: 1, max: 720, value: 1 })];
  const value = (id) => fields.map((one) => one.querySelector("input")).find((one) => one.id === id).value.trim();
  const begin = async () => {
    const args = value("args") ? JSON.parse(value("args")) : undefined;
    const chosen = await get("/devices", { where: value("where"), limit: 1 });
    if (!await ask(`The expression chooses ${counted(chosen.total, "device")}. Those that send to ${value("namespace")} get “${value("command")}”.`, "Begin the job")) return;
    await change("/jobs", { namespace: value("namespace"), where: value("where"), command: value("command"), args, perMinute: Number(value("perMinute")), failuresMax: Number(value("failuresMax")), expireTime: Date.now() + Number(value("hours")) * 3600000 });
  };
  return h("form", { class: "tools", onsubmit: async (event) => {
    event.preventDefault();
    const args = event.target.querySelector("#args");
    args.setCustomValidity("");
    try { await begin(); } catch (error) {
      const [at, text] = error instanceof SyntaxError ? [args, "must be a JSON object"] : [event.target.querySelector("#where"), error.message];
      at.setCustomValidity(text);
      at.reportValidity();
      at.addEventListener("input", () => at.setCustomValidity(""), { once: true });
    }
  } }, fields, h("button", { type: "submit", class: "main", id: "begin" }, "Begin a job"));
}

export async function jobs({ signal, reader, again }) {
  const found = await get("/jobs", {}, signal);
  const isOperator = reader.role === "operator";
  const { fault, change, buttons } = operating(again);
  refresh(again, BEAT);
  const columns = [
    { title: "Job", wide: true, cell: (job) => [h("a", { class: "strong", href: link("/job", { id: job.id }) }, what(job)[0]), what(job).slice(1), h("span", { class: "sub" }, `${job.namespace}: ${job.where}`)] },
    { title: "Devices", cell: bar }, { title: "By state", wide: true, cell: counts },
    { title: "State", narrow: true, cell: (job) => h("span", { class: `tag ${STATES[job.state]}` }, job.state) },
    { title: "Made", cell: (job) => [h("span", { title: time(job.madeTime) }, ago(job.madeTime)), h("span", { class: "sub" }, `by ${job.who || "the owner"}`)] },
    ...(isOperator ? [{ title: "Act", cell: buttons }] : []),
  ];
  return h("div", null, h("div", { class: "head" }, h("h1", null, "Jobs")), isOperator && section("Begin a job", beginning(change, reader)), fault,
    section("Jobs made", found.jobs.length === 0 ? empty("No job was made yet.", isOperator ? "A job brings a command to the devices of an expression, some at a time. It stops by itself past the failures that it may have. Devices with remote.publicKey carry out signed commands only: prism-collector command send --where … --sign FILE makes their job." : "Operators make jobs here, or with prism-collector command send --where.") : table("Jobs", columns, found.jobs)));
}

export async function job({ query, signal, reader, again }) {
  const [id, progress] = [query.get("id") ?? "", query.get("progress") ?? ""];
  const found = await get(`/jobs/${encodeURIComponent(id)}`, { progress, after: query.get("after"), limit: 100 }, signal);
  const { fault, buttons } = operating(again);
  refresh(again, BEAT);
  const one = found.job;
  const columns = [{ title: "Device", wide: true, cell: (device) => h("a", { class: "mono", href: link("/device", { id: device.device }) }, device.device) },
    { title: "Progress", narrow: true, cell: (device) => h("span", { class: `tag ${PROGRESS[device.progress]}` }, device.progress) },
    { title: "Says", wide: true, cell: (device) => device.result ?? "" }, { title: "Since", cell: (device) => h("span", { title: time(device.changedTime) }, ago(device.changedTime)) }];
  return h("div", { "data-title": `Job ${one.change.command ?? one.change.table}` }, h("div", { class: "head" }, h("div", null, h("p", { class: "crumb" }, h("a", { href: link("/jobs") }, "Jobs")), h("h1", null, what(one)))),
    definition([["State", h("span", { class: `tag ${STATES[one.state]}` }, one.state)], ["Devices", [bar(one), " ", counts(one)]], ["Chosen by", h("span", { class: "mono" }, one.where)], ["Namespace", one.namespace], ["Made", `${time(one.madeTime)} by ${one.who || "the owner"}`], ["Ends", time(one.expireTime)],
      ["Rate", `${counted(one.perMinute, "device")} a minute`], ["Stops", `past ${counted(one.failuresMax, "failure")}`]]),
    reader.role === "operator" && h("p", { class: "tools" }, buttons(one)), fault,
    section("Its devices", h("div", { class: "tools" }, h("label", { class: "field" }, h("span", null, "Progress"), h("select", { id: "chosen", onchange: (event) => go("/job", { id, progress: event.target.value }) }, ["", ...Object.keys(PROGRESS)].map((name) => h("option", { value: name, selected: name === progress }, name ? `${name} (${count(one.devices[name])})` : "all"))))),
      found.devices.length === 0 ? empty("No device has this progress.", "") : table("Devices", columns, found.devices)),
    found.next !== null && h("p", { class: "pages" }, h("button", { type: "button", onclick: () => go("/job", { id, progress, after: found.next }) }, "Next")));
}
