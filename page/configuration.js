// Remote configuration: what is served, who has it, who refused it and why.

import { get } from "./api.js";
import { definition, empty, h, note, section, table } from "./dom.js";
import { ago, count, time } from "./format.js";
import { go, link } from "./route.js";
import { tree } from "./tree.js";

function share(devices, total) {
  const bar = h("span", { class: "share", "aria-hidden": "true" }, h("i"));
  bar.firstChild.style.width = `${total ? (devices / total) * 100 : 0}%`;
  return [bar, ` ${total ? Math.round((devices / total) * 100) : 0} %`];
}

export async function configuration({ query, signal }) {
  const failed = query.get("failed") === "true";
  const found = await get("/configuration", { failed: failed ? "true" : "", after: query.get("after"), limit: 50 }, signal);
  if (!found.served) {
    return h("div", null, h("h1", null, "Configuration"), empty("This collector serves no configuration.",
      "Name a folder of namespace files in remoteConfig of its configuration, and set remoteConfig.url on the devices. docs/remote-configuration.md has the steps."));
  }
  const { summary } = found;
  const total = found.versions.reduce((sum, one) => sum + one.devices, 0);
  return h("div", null, h("h1", null, "Configuration"),
    summary.faults > 0 && note("bad", h("b", null, `${summary.faults} faults in the folder. `), "What was sound before is served. The collector’s log names each fault."),
    definition([["Version served", h("b", null, summary.version)], ["Devices that asked", count(summary.devices)], ["Refused or taken back", h("span", { class: summary.failed ? "tag bad" : "tag good" }, count(summary.failed))]]),
    section("Versions on devices", found.versions.length === 0 ? empty("No device asked yet.", "Devices are noted if senders need a token or a certificate.")
      : table("Versions on devices", [{ title: "Version", wide: true, cell: (one) => (one.version === null ? "unknown" : h("span", null, one.version, one.version === summary.version && h("span", { class: "tag good" }, "served now"))) },
        { title: "Devices", number: true, cell: (one) => count(one.devices) }, { title: "Share", cell: (one) => share(one.devices, total) }, { title: "Refused", number: true, cell: (one) => h("span", { class: one.failed ? "warn" : "" }, count(one.failed)) }], found.versions)),
    section("Namespaces served", found.namespaces.length === 0 ? empty("The folder has no namespace.", "Put a file NAME.yaml there, as in namespaces.d of a device.")
      : found.namespaces.map((one) => h("details", null, h("summary", null, h("b", null, one.namespace), h("span", { class: "quiet" }, ` changed ${time(one.changedTime)}`)), tree(one.entry ?? {})))),
    section("Devices", h("div", { class: "tools" }, h("label", { class: "check" }, h("input", { type: "checkbox", id: "failed", checked: failed, onchange: (event) => go("/configuration", { failed: event.target.checked ? "true" : "" }) }), " only those that refused")),
      found.devices.length === 0 ? empty(failed ? "No device refused its configuration." : "No device asked yet.", "")
        : table("Devices", [{ title: "Device", wide: true, cell: (one) => h("a", { class: "mono", href: link("/device", { id: one.device }) }, one.device) }, { title: "Version", number: true, cell: (one) => one.version ?? "–" },
          { title: "Asked", cell: (one) => h("span", { title: time(one.askedTime) }, ago(one.askedTime)) }, { title: "Refused", cell: (one) => one.lastFailed ?? "–" }, { title: "Because", wide: true, cell: (one) => one.reason ?? "–" }], found.devices),
      h("p", { class: "pages" }, found.next !== null && h("button", { type: "button", onclick: () => go("/configuration", { failed: failed ? "true" : "", after: found.next }) }, "Next"))));
}
