// One device: what it sent, what it lost, and where its accounts and the store differ.

import { begin, isWhole } from "./answer.js";
import { get, post } from "./api.js";
import { bars, legend } from "./chart.js";
import { acting, definition, empty, h, note, section, table } from "./dom.js";
import { ago, atLeast, bytes, count, time } from "./format.js";
import { go, link, rangePicker, times } from "./route.js";
import { oneLine, tree } from "./tree.js";

const ACCOUNTS = [["stored", "Stored"], ["waiting", "Waiting"], ["delivered", "Delivered"], ["expired", "Expired"], ["evicted", "Evicted"], ["cleared", "Cleared"], ["dead", "Dead"], ["removed", "Removed"], ["merged", "Merged"], ["kept", "Kept"], ["overwritten", "Overwritten"]];

function ledgerTable(streams) {
  return table("Accounts", [
    { title: "Namespace", wide: true, cell: (stream) => h("span", { class: "strong" }, stream.namespace, h("span", { class: "sub" }, stream.kind)) },
    ...ACCOUNTS.map(([name, title]) => ({ title, number: true, cell: (stream) => {
      const value = stream.ledger?.[name];
      return h("span", { class: value && !["stored", "waiting", "delivered", "merged"].includes(name) ? "warn" : "" }, count(value));
    } })),
    { title: "Here", number: true, cell: (stream) => atLeast(stream.reportsHere, isWhole(stream)) },
    { title: "", cell: (stream) => (stream.difference ? h("span", { class: "tag bad" }, "does not add up") : h("span", { class: "tag good" }, "adds up")) },
  ], streams);
}

const FATES = [["kept", "Kept"], ["overwritten", "Overwritten"], ["triggered", "Triggered"], ["asked", "Asked"], ["refused", "Refused"], ["declined", "Declined"]];

/** What the device keeps, and what became of it in its last hour, as its report `ringHealth` says. */
function ringSection({ devices, types }) {
  if (types.length === 0) return null;
  return section("Kept reports", table("Kept reports", [{ title: "Type", wide: true, cell: (one) => h("span", { class: "strong" }, one.type) },
    ...FATES.map(([name, title]) => ({ title, number: true, cell: (one) => count(one[name]) })),
    { title: "Size", number: true, cell: (one) => bytes(one.bytes) }], types),
  h("p", { class: "hint" }, `As of ${devices.map((one) => `${time(one.time)} (${one.namespace})`).join(", ")}; the other counts are of the hour before.`));
}

/** Dead letters wait on the device: an operator sends a command, which only a key that is not here can sign. */
function deadHints({ device: id, streams }) {
  const namespaces = [...new Set(streams.filter((stream) => stream.ledger?.dead).map((stream) => stream.namespace))];
  return namespaces.map((namespace) => h("p", { class: "hint" }, `The dead letters of ${namespace} wait on the device. Once the cause is mended, send them again with `,
    h("code", null, `prism-collector command send --config collector.yaml --namespace ${namespace} --device ${id} --sign command.pem requeue`), ", or give them up with ", h("code", null, "drop"), " instead of ", h("code", null, "requeue"), "."));
}

function facts(found) {
  const meta = found.newest?.meta ?? {};
  const enrolled = found.enrolled;
  const last = Math.max(0, ...found.streams.map((stream) => stream.seenTime));
  return definition([["Last packet", last ? `${time(last)} (${ago(last, found.now)})` : "none yet"],
    meta.SYS_SYSTEM_VERSION && ["System", String(meta.SYS_SYSTEM_VERSION)], (meta.SYS_BRAND || meta.SYS_PHONE_MODEL) && ["Hardware", [meta.SYS_BRAND, meta.SYS_PHONE_MODEL].filter(Boolean).join(" ")],
    meta.APP_NAME && ["Last app", [meta.APP_NAME, meta.APP_VERSION].filter(Boolean).join(" ")],
    enrolled && ["Enrolled", enrolled.enrolledTime ? time(enrolled.enrolledTime) : "no"], enrolled?.revokedTime && ["Revoked", h("span", { class: "tag bad" }, time(enrolled.revokedTime))], enrolled?.info && ["Description", enrolled.info]]);
}

const TAGS = "prism.tags";
const SOURCES = { device: "its own file", enrollment: "its enrollment", operator: "operators" };

/** Tags by who wrote them, and an operator's form for his own. */
function tagSection(id, tags, reader, again) {
  const own = tags.find((one) => one.id === "operator" && one.namespace === "prism")?.fields ?? {};
  const shown = tags.length === 0 ? h("p", { class: "quiet" }, "This device has no tags.")
    : definition(tags.map((one) => [`Of ${SOURCES[one.id] ?? one.id} (${one.namespace})`, Object.entries(one.fields).map(([name, text]) => h("span", { class: "tag" }, `${name}=${text}`))]));
  if (reader.role !== "operator") return section("Tags", shown);
  const { fault, act } = acting();
  const field = h("input", { id: "tags", value: Object.entries(own).map(([name, text]) => `${name}=${text}`).join(", "), placeholder: "region=eu, ring=early", autocomplete: "off" });
  return section("Tags", shown, h("form", { class: "tools", onsubmit: (event) => {
    event.preventDefault();
    const words = field.value.split(",").map((one) => one.trim()).filter(Boolean).map((one) => one.split(/=(.*)/s));
    const fields = Object.fromEntries(words.map(([name, text]) => [name.trim(), (text ?? "").trim()]));
    act(() => post(`/records/prism/${TAGS}/operator`, fields, { method: "PUT", device: id }), again);
  } }, h("label", { class: "field" }, h("span", null, "Tags of operators"), field), h("button", { type: "submit", class: "main", id: "tag" }, "Save the tags"), fault));
}

const RECORDS = 50;
const COMMANDS_MAX = 200;
const COMMANDS = "prism.command";
const OUTCOMES = { done: "good", running: "good", accepted: "good", failed: "bad", refused: "bad", expired: "warn" };

/** Commands are records of a table of their own: who sent one writes it, and the device answers in it. */
function commandSection(commands) {
  if (commands.length === 0) return null;
  const state = ({ fields, pending }) => (fields.state ? h("span", { class: `tag ${OUTCOMES[fields.state] ?? ""}` }, String(fields.state)) : h("span", { class: "quiet" }, Number(fields.expires) < Date.now() ? "expired unanswered" : pending ? "not fetched yet" : "not answered yet"));
  const result = ({ fields }) => {
    if (fields.result === undefined || fields.result === null) return "–";
    return typeof fields.result === "object" ? h("details", null, h("summary", { class: "line" }, oneLine(fields.result)), tree(fields.result)) : h("span", { class: "line" }, String(fields.result).slice(0, 2000));
  };
  const when = (milliseconds) => (Number.isFinite(milliseconds) ? h("span", { title: time(milliseconds) }, time(milliseconds)) : "–");
  return section("Commands", table("Commands", [
    { title: "Command", wide: true, cell: (one) => h("span", { class: "strong" }, one.fields.name === "ask" ? h("a", { href: link("/question", { namespace: one.namespace, id: one.id }) }, "ask") : String(one.fields.name ?? "(no name)"), h("span", { class: "sub" }, `${one.id}, ${one.namespace}`)) },
    { title: "Arguments", wide: true, cell: (one) => (one.fields.args && Object.keys(one.fields.args).length > 0 ? h("span", { class: "line" }, oneLine(one.fields.args)) : "–") },
    { title: "State", narrow: true, cell: (one) => [state(one), one.fields.stateTime && h("span", { class: "sub" }, when(one.fields.stateTime))] },
    { title: "Result", wide: true, cell: result },
    { title: "Expires", narrow: true, cell: (one) => when(one.fields.expires) }], commands.toReversed()));
}

/** Where the server changed a record last: whether the device has that, and what it had before. */
function onDevice({ pending, fetchedTime, reported, changedTime }) {
  if (pending === undefined) return h("span", { class: "quiet" }, "the same");
  if (!pending) return [h("span", { class: "tag good" }, "fetched"), fetchedTime && h("span", { class: "sub" }, time(fetchedTime))];
  return [h("span", { class: "tag warn" }, "not fetched yet"), h("span", { class: "sub" }, `wanted since ${time(changedTime)}`),
    reported && h("details", null, h("summary", { class: "line" }, `has ${oneLine(reported)}`), tree(reported))];
}

/** What the device keeps in tables, with the server's changes of it. */
function recordSection(found, query) {
  const more = found.records.length === RECORDS;
  const records = found.records.filter((one) => ![COMMANDS, TAGS].includes(one.table));
  if (records.length === 0 && !more) return section("Records", h("p", { class: "quiet" }, query.get("records") ? "No further record." : "This device keeps no records here."));
  return section("Records", table("Records", [
    { title: "Record", narrow: true, cell: (one) => h("span", { class: "strong" }, one.id, h("span", { class: "sub" }, `${one.namespace}, ${one.table}`)) },
    { title: "Version", number: true, cell: (one) => count(one.version) }, { title: "Changed", narrow: true, cell: (one) => h("span", { title: time(one.changedTime) }, ago(one.changedTime)) },
    { title: "Fields", wide: true, cell: (one) => h("details", null, h("summary", { class: "line" }, oneLine(one.fields)), tree(one.fields)) },
    { title: "On the device", narrow: true, cell: onDevice }], records),
  more && h("p", { class: "pages" }, h("button", { type: "button", onclick: () => go("/device", { ...Object.fromEntries(query), records: found.next }) }, "Further records")));
}

function configurationSection(entry) {
  if (!entry) return section("Configuration", h("p", { class: "quiet" }, "The device did not ask this collector for its configuration."));
  return section("Configuration", definition([["Version in force", entry.version ?? "unknown"], ["Last applied", entry.lastApplied >= 1e12 ? time(entry.lastApplied) : (entry.lastApplied ?? "–")], ["Asked", `${time(entry.askedTime)} (${ago(entry.askedTime)})`],
    ["Refused or taken back", entry.lastFailed ? h("span", { class: "tag bad" }, entry.lastFailed) : "nothing"], entry.reason && ["Because", entry.reason]]));
}

export async function device({ query, signal, reader, again }) {
  const id = query.get("id") ?? "";
  const { since, until } = times(query, "7d");
  const [found, chart, page, groups, records, commands, tags, rings] = await Promise.all([get("/device", { id }, signal), begin("/histogram", { device: id, since, until, by: "type", buckets: 84 }, signal),
    get("/reports", { device: id, limit: 20 }, signal), get("/crashes", { device: id, since: 0, limit: 5 }, signal),
    get("/records", { device: id, after: query.get("records"), limit: RECORDS }, signal), get("/records", { device: id, table: COMMANDS, limit: COMMANDS_MAX }, signal),
    get("/records", { device: id, table: TAGS, limit: COMMANDS_MAX }, signal), get("/rings", { device: id }, signal)]);
  const differences = found.streams.filter((stream) => stream.difference);
  return h("div", null, h("p", { class: "crumb" }, h("a", { href: "#/fleet" }, "Fleet")), h("div", { class: "head" }, h("h1", { class: "mono" }, found.device), rangePicker(query, "7d", (change) => go("/device", { id, ...change }))),
    facts(found), tagSection(id, tags.records, reader, again), differences.map((stream) => note("bad", h("b", null, `${stream.namespace}, ${stream.kind}: `), stream.difference)),
    chart.grow((chart) => section("Reports by type", chart.total === 0 ? h("div", { class: "chart blank" }, isWhole(chart) ? "No report in this time." : "No report so far.") : [bars("Reports by type", chart, (from, to) => go("/explorer", { device: id, since: from, until: to })), legend(chart.groups, (type) => link("/explorer", { device: id, type, range: query.get("range") ?? "7d", since: query.get("since"), until: query.get("until") }))])),
    section("Accounts", found.streams.length === 0 ? empty("No packet yet.", "The device was enrolled, but has not sent anything.") : [ledgerTable(found.streams),
      h("p", { class: "hint" }, "Each column is what the device said with its last packet. “Here” is what the store has. The rows of that packet do not count as waiting: they are here. Rows that the device stored after it are not in its accounts yet."), deadHints(found)]),
    ringSection(rings),
    section("Crashes", groups.groups.length === 0 ? h("p", { class: "quiet" }, "This device sent no crash.") : table("Crashes", [
      { title: "Crash", wide: true, cell: (group) => h("a", { class: "strong", href: link("/crash", { id: group.fingerprint }) }, group.reason || "(no reason)", h("span", { class: "sub" }, group.frame ?? "no stack")) },
      { title: "On this device", number: true, cell: (group) => count(group.deviceCount) },
      { title: "Last on any device", cell: (group) => ago(group.lastTime) }], groups.groups)),
    section("Latest reports", page.reports.length === 0 ? empty("No report here.", "Retention may have deleted them.") : [table("Latest reports", [
      { title: "Received", narrow: true, cell: (report) => time(report.receivedTime) }, { title: "Type", narrow: true, cell: (report) => h("a", { href: link("/explorer", { device: id, type: report.type, range: "30d" }) }, report.type) },
      { title: "Meta", wide: true, cell: (report) => h("span", { class: "line" }, oneLine(report.meta)) }], page.reports), h("p", null, h("a", { href: link("/explorer", { device: id, range: "30d" }) }, "All reports of this device"))]),
    commandSection(commands.records), recordSection(records, query), configurationSection(found.configuration),
    found.newest && section("Newest report", tree(found.newest.meta ?? {})));
}
