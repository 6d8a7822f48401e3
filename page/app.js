// The frame: which view is shown, who reads, what failed.

import { keep, post, Problem, session } from "./api.js";
import { configuration } from "./configuration.js";
import { crash, crashes } from "./crashes.js";
import { device } from "./device.js";
import { h, note, say } from "./dom.js";
import { explorer } from "./explorer.js";
import { fleet } from "./fleet.js";
import { current, go, link } from "./route.js";

const VIEWS = [["/fleet", "Fleet", fleet], ["/explorer", "Explorer", explorer], ["/crashes", "Crashes", crashes],
  ["/configuration", "Configuration", configuration]];
const OTHERS = { "/device": ["Device", device], "/crash": ["Crash", crash] };

const main = document.getElementById("main");
const progress = document.getElementById("progress");
let reader = null;
let running = null;

function find(path) {
  const view = VIEWS.find(([own]) => own === path);
  return view ? [view[1], view[2]] : OTHERS[path];
}

function frame(path) {
  const parents = { "/device": "/fleet", "/crash": "/crashes" };
  document.getElementById("views").replaceChildren(...VIEWS.map(([own, title]) =>
    h("a", { href: link(own), "aria-current": own === (parents[path] ?? path) ? "page" : null }, title)));
  const box = document.getElementById("reader");
  if (!reader?.signedIn) return box.replaceChildren();
  box.replaceChildren(h("span", { class: "who", title: "who reads, and with which role" }, reader.name),
    reader.changeToken ? h("button", { type: "button", onclick: signOut }, "Sign out") : "");
}

/** A view returns its content once all of it is there, so nothing moves when data arrives. */
async function show({ isQuiet = false } = {}) {
  running?.abort();
  const control = new AbortController();
  running = control;
  const { path, query } = current();
  const [title, view] = find(path) ?? ["Not found", nowhere];
  progress.className = "on";
  dispatchEvent(new Event("prism-leave"));
  let content;
  try {
    if (reader === null) reader = await session();
    content = reader.signedIn ? await view({ query, signal: control.signal, reader, again: () => show({ isQuiet: true }) }) : signIn();
  } catch (error) {
    if (control.signal.aborted) return;
    if (error instanceof Problem && error.status === 401) {
      reader = null;
      content = signIn("Your session ended. Sign in again.");
    } else content = failure(title, error);
  }
  if (control.signal.aborted) return;
  progress.className = "";
  document.title = `${title} · prism`;
  frame(path);
  const active = document.activeElement?.id;
  main.replaceChildren(content);
  if (active && isQuiet) document.getElementById(active)?.focus();
  if (!isQuiet) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    say(`${title} is shown`);
  }
}

async function nowhere() {
  return h("div", null, h("h1", null, "Not found"), h("p", null, "There is no such view. ", h("a", { href: "#/fleet" }, "Go to the fleet.")));
}

function failure(title, error) {
  if (!(error instanceof Problem)) console.error(error);
  return h("div", null, h("h1", null, title), note("bad", h("b", null, error.title ?? "The page failed"), " – ", error.message),
    h("p", null, h("button", { type: "button", onclick: () => show() }, "Try again")));
}

// Signing in

function signIn(reason) {
  const fault = h("p", { class: "note bad", role: "alert", hidden: !reason }, reason ?? "");
  const field = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
  return h("form", { class: "sign-in", onsubmit: async (event) => {
    event.preventDefault();
    try {
      reader = keep(await post("/session", { token: field.value.trim() }));
      show();
    } catch (error) {
      [fault.hidden, fault.textContent] = [false, error.message];
      field.select();
    }
  } }, h("h1", null, "Sign in"), h("input", { type: "text", name: "username", autocomplete: "username", value: "reader", hidden: true }), h("label", { for: "token" }, "A reader's token"), field, h("button", { type: "submit", class: "main" }, "Sign in"), fault,
  h("p", { class: "hint" }, "Tokens are in the file that readerTokenFile of the collector names, one a line. Those of operatorTokenFile may change things, too."));
}

async function signOut() {
  try { await post("/session/end"); } catch { /* the session ended before */ }
  reader = null;
  show();
}

addEventListener("hashchange", () => show());
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const place = "1234".indexOf(event.key);
  if (place >= 0 && event.key.length === 1) go(VIEWS[place][0]);
  if (event.key === "/") {
    document.querySelector("main input")?.focus();
    event.preventDefault();
  }
});
show();
