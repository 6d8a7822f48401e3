// Remote configuration: what is served, who has it, who refused it and why.

import { get, post } from "./api.js";
import { acting, ask, definition, empty, h, note, portion, section, table } from "./dom.js";
import { ago, count, counted, time } from "./format.js";
import { go, link } from "./route.js";
import { tree } from "./tree.js";

const STATES = { running: ["is running", "good"], paused: ["is paused", "warn"], rolledBack: ["was rolled back", "bad"], done: ["is done", "good"] };

const GUARD = { notEnoughData: "warn", notWorse: "good", worse: "bad" };

function entries(namespaces) {
  return namespaces.map((one) => h("details", null, h("summary", null, h("b", null, one.namespace)), tree(one.entry)));
}

function reachOf(one) {
  return `${one.percent} % of devices${one.where ? ` where ${one.where}` : ""}${one.groups.length > 0 ? `, and ${one.groups.join(", ")}` : ""}`;
}

/** The buttons of an operator. */
function controls(rollout, again) {
  const { fault, act } = acting();
  const change = (body) => act(() => post("/configuration/rollout", body), again);
  const percent = h("input", { type: "number", id: "percent", min: rollout?.percent ?? 0, max: 100, step: 1, required: true, value: rollout?.percent ?? 10 });
  const groups = h("input", { id: "groups", placeholder: "lab-*, till-0007", autocomplete: "off" });
  const where = h("input", { id: "where", placeholder: "tag.region = eu and version < 2.10", maxlength: 2048, autocomplete: "off", value: rollout?.where ?? "" });
  const guarded = h("input", { type: "checkbox", id: "guarded", checked: true });
  const button = (name, title, question) => h("button", { type: "button", id: name, onclick: async () => {
    if (!question || await ask(question, title)) await change({ action: name });
  } }, title);
  return h("form", { class: "tools", onsubmit: async (event) => {
    event.preventDefault();
    const reach = { percent: Number(percent.value), groups: groups.value.split(/[\s,]+/).filter(Boolean), where: where.value.trim() };
    if (reach.percent === 100 && !reach.where && !await ask("Every device gets this configuration. It can be rolled back.", "Give it to all")) return;
    await change({ action: rollout ? "widen" : "start", ...reach, ...(!rollout && guarded.checked ? { guard: {} } : {}) });
  } }, h("label", { class: "field" }, h("span", null, "Percent of devices"), percent), h("label", { class: "field" }, h("span", null, "where"), where), h("label", { class: "field" }, h("span", null, "and these devices"), groups),
  !rollout && h("label", { class: "check" }, guarded, " roll back by itself if they crash more often"),
  h("button", { type: "submit", class: "main", id: "go" }, rollout ? "Widen" : "Start the rollout"),
  rollout?.state === "running" && button("pause", "Pause"), rollout?.state === "paused" && button("resume", "Resume"), rollout && button("rollBack", "Roll back", `It goes back to what was before: ${counted(rollout.given, "device")}. Rollout ${rollout.id} ends.`), fault);
}

function rolloutSection(found, reader, again) {
  const { rollout, candidate, history } = found;
  const isOperator = reader.role === "operator";
  const [words, kind] = rollout ? STATES[rollout.state] : [];
  const content = rollout
    ? [h("p", null, h("span", { class: `tag ${kind}` }, rollout.state), `Rollout ${rollout.id} ${words}: ${reachOf(rollout)}.`),
      definition([["For", counted(rollout.chosen, "known device")], ["Got it", count(rollout.given)], ["Confirmed it", count(rollout.confirmed)], ["Refused", h("span", { class: rollout.failed ? "tag bad" : "tag good" }, count(rollout.failed))]]),
      rollout.guard && h("p", null, h("span", { class: `tag ${GUARD[rollout.guard.state.verdict]}` }, "guard"), ` ${rollout.guard.action === "pause" ? "Pauses" : "Rolls back"} by itself if the devices ${rollout.guard.type ? `send more reports of the type ${rollout.guard.type}` : "crash more often"}. ${rollout.guard.state.verdict === "notEnoughData" ? `Not enough data: ${count(rollout.guard.state.hours)} of ${counted(rollout.guard.hours, "hour")}.` : rollout.guard.state.reason}`),
      entries(rollout.namespaces), h("p", { class: "hint" }, "Move the files from next/ into the folder to end it: then every device has them.")]
    : candidate.faults.length > 0 ? candidate.faults.map((fault) => note("bad", fault))
      : candidate.namespaces.length > 0 ? [h("p", null, `The files in next/ change ${counted(candidate.namespaces.length, "namespace")}.`), entries(candidate.namespaces)]
        : [h("p", { class: "quiet" }, "Put changed files into next/ of the folder to give them to a part of the devices first.")];
  return section("Rollout", content, isOperator && (rollout || (candidate.namespaces.length > 0 && candidate.faults.length === 0)) && controls(rollout, again),
    history.length > 0 && h("details", null, h("summary", null, "Changes of rollouts"), table("Changes of rollouts", [
      { title: "When", narrow: true, cell: (one) => time(one.time) }, { title: "Rollout", number: true, cell: (one) => one.id }, { title: "State", narrow: true, cell: (one) => h("span", { class: `tag ${STATES[one.state][1]}` }, one.state) },
      { title: "For", wide: true, cell: reachOf }, { title: "By", narrow: true, cell: (one) => one.who || "the collector" }], history)));
}

/** A version that is further behind was counted by another collector. */
const BEHIND_MAX = 10000;

/** A version as people name it: how far it is behind the one that is served. */
function versionName(version, served) {
  if (version === null) return "unknown";
  return [`version ${version} `, version === served ? h("span", { class: "tag good" }, "served now") : h("span", { class: "quiet" }, served > version && served - version < BEHIND_MAX ? `${count(served - version)} behind` : "not of this collector")];
}

export async function configuration({ query, signal, reader, again }) {
  const failed = query.get("failed") === "true";
  const found = await get("/configuration", { failed: failed ? "true" : "", after: query.get("after"), limit: 50 }, signal);
  if (!found.served) {
    return h("div", null, h("h1", null, "Configuration"), empty("This collector serves no configuration.",
      "Name a folder of namespace files in remoteConfig of its configuration, and set remote.url in prismd.yaml of the devices. docs/remote-configuration.md has the steps."));
  }
  const { summary } = found;
  const total = found.versions.reduce((sum, one) => sum + one.devices, 0);
  const changed = Math.max(0, ...found.namespaces.map((one) => one.changedTime));
  return h("div", null, h("h1", null, "Configuration"),
    summary.faults > 0 && note("bad", h("b", null, `${summary.faults} faults in the folder. `), "What was sound before is served. The collector’s log names each fault."),
    definition([["Served", [h("b", null, `version ${summary.version}`), changed > 0 && `, changed ${time(changed)}`]], ["Devices that asked", count(summary.devices)], ["Refused or taken back", h("span", { class: summary.failed ? "tag bad" : "tag good" }, count(summary.failed))]]),
    rolloutSection(found, reader, again),
    section("Versions on devices", found.versions.length === 0 ? empty("No device asked yet.", "Devices are noted if senders need a token or a certificate.")
      : table("Versions on devices", [{ title: "Version", wide: true, cell: (one) => versionName(one.version, summary.version) },
        { title: "Devices", number: true, cell: (one) => count(one.devices) }, { title: "Share", cell: (one) => portion(one.devices, total, `${total ? Math.round((one.devices / total) * 100) : 0} %`) }, { title: "Refused", number: true, cell: (one) => h("span", { class: one.failed ? "warn" : "" }, count(one.failed)) }], found.versions)),
    section("Namespaces served", found.namespaces.length === 0 ? empty("The folder has no namespace.", "Put a file NAME.yaml there, as in namespaces.d of a device.")
      : found.namespaces.map((one) => h("details", null, h("summary", null, h("b", null, one.namespace), h("span", { class: "quiet" }, ` changed ${time(one.changedTime)}`)), tree(one.entry ?? {})))),
    section("Devices", h("div", { class: "tools" }, h("label", { class: "check" }, h("input", { type: "checkbox", id: "failed", checked: failed, onchange: (event) => go("/configuration", { failed: event.target.checked ? "true" : "" }) }), " only those that refused")),
      found.devices.length === 0 ? empty(failed ? "No device refused its configuration." : "No device asked yet.", "")
        : table("Devices", [{ title: "Device", wide: true, cell: (one) => h("a", { class: "mono", href: link("/device", { id: one.device }) }, one.device) }, { title: "Version", number: true, cell: (one) => [one.version ?? "–", one.staged && h("span", { class: "tag good" }, "rollout")] },
          { title: "Asked", cell: (one) => h("span", { title: time(one.askedTime) }, ago(one.askedTime)) }, { title: "Refused", cell: (one) => one.lastFailed ?? "–" }, { title: "Because", wide: true, cell: (one) => one.reason ?? "–" }], found.devices),
      h("p", { class: "pages" }, found.next !== null && h("button", { type: "button", onclick: () => go("/configuration", { failed: failed ? "true" : "", after: found.next }) }, "Next"))));
}
