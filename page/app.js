// The frame: which view is shown, who reads, what failed.

import { keep, post, Problem, session } from "./api.js";
import { configuration } from "./configuration.js";
import { crash, crashes } from "./crashes.js";
import { device } from "./device.js";
import { h, note, say } from "./dom.js";
import { explorer } from "./explorer.js";
import { fleet } from "./fleet.js";
import { time } from "./format.js";
import { job, jobs } from "./jobs.js";
import { notices } from "./notices.js";
import { question } from "./question.js";
import { releases } from "./releases.js";
import { current, go, link } from "./route.js";

const VIEWS = [["/fleet", "Fleet", fleet], ["/explorer", "Explorer", explorer], ["/crashes", "Crashes", crashes], ["/notices", "Notices", notices],
  ["/configuration", "Configuration", configuration], ["/releases", "Releases", releases], ["/jobs", "Jobs", jobs]];
/** About all namespaces: a reader of some can't ask for these. */
const WHOLE = ["/notices", "/configuration"];
const OTHERS = { "/device": ["Device", device], "/crash": ["Crash", crash], "/question": ["Question", question], "/job": ["Job", job] };

const main = document.getElementById("main");
const progress = document.getElementById("progress");
const notice = document.getElementById("notice");
const BEAT = 5000;
let reader = null;
let running = null;
/** The view that is shown, and what it is about. */
let shown = null;
/** Since when the collector does not answer. */
let silent = null;
/** The field that has something typed which no change took yet. */
let typed = null;

function find(path) {
  const view = VIEWS.find(([own]) => own === path);
  return view ? [view[1], view[2]] : OTHERS[path];
}

function frame(path) {
  const parents = { "/device": "/fleet", "/crash": "/crashes", "/question": "/fleet", "/job": "/jobs" };
  const box = document.getElementById("reader");
  document.getElementById("views").replaceChildren(...(reader?.signedIn ? VIEWS : []).filter(([own]) => !reader.namespaces || !WHOLE.includes(own)).map(([own, title]) =>
    h("a", { href: link(own), "aria-current": own === (parents[path] ?? path) ? "page" : null }, title)));
  if (!reader?.signedIn) return box.replaceChildren();
  box.replaceChildren(h("span", { class: "who", title: `who reads: ${reader.role === "operator" ? "an operator, who may change things" : "a viewer"}${reader.namespaces ? ` of ${reader.namespaces.join(", ")}` : ""}` }, reader.name),
    reader.expires ? h("button", { type: "button", onclick: signOut }, "Sign out") : "");
  document.querySelector("#views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Puts the content in the place of the one before. In the same view the focus stays, with what is typed. */
function fill(content, stays) {
  const { id, value } = document.activeElement;
  const [isInside, isTyped] = [main.contains(document.activeElement), document.activeElement === typed];
  main.replaceChildren(content);
  const field = id && stays ? document.getElementById(id) : null;
  if (field && isTyped) field.value = value;
  field?.focus({ preventScroll: true });
  if (!stays || (isInside && !field)) main.focus({ preventScroll: true });
}

/** A view returns its content once all of it is there, so nothing moves when data arrives. */
async function show({ isQuiet = false } = {}) {
  running?.abort();
  const control = new AbortController();
  running = control;
  const { path, query } = current();
  const about = `${path} ${query.get("id") ?? ""}`;
  const stays = isQuiet || about === shown;
  const [title, view] = find(path) ?? ["Not found", nowhere];
  progress.className = "on";
  dispatchEvent(new Event("prism-leave"));
  let content;
  try {
    if (reader === null) reader = await session();
    content = reader.signedIn ? await view({ query, signal: control.signal, reader, again: () => show({ isQuiet: true }) }) : signIn();
  } catch (error) {
    if (control.signal.aborted) return;
    if (isQuiet && error.status === 0 && main.firstChild) {
      progress.className = "";
      return miss();
    }
    if (error instanceof Problem && error.status === 401) {
      reader = null;
      content = signIn("Your session ended. Sign in again.");
    } else content = failure(title, error);
  }
  if (control.signal.aborted) return;
  progress.className = "";
  document.title = `${content.dataset.title ?? content.querySelector("h1")?.textContent ?? title} · prism`;
  frame(path);
  fill(content, stays);
  shown = about;
  if (!stays) scrollTo(0, 0);
  if (!isQuiet) say(`${title} is shown`);
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

/** The collector does not answer: what is shown stays, with a word about it. */
function miss() {
  silent ??= Date.now();
  notice.textContent = `The collector has not answered since ${time(silent)}. What is shown is older. The page asks again every ${BEAT / 1000} s.`;
  notice.hidden = false;
}

/** Asks whether the collector answers, and whether the session holds. */
async function beat() {
  if (document.visibilityState !== "visible") return;
  try {
    const found = await session(AbortSignal.timeout(BEAT));
    if (silent === null && found.signedIn === reader?.signedIn) return;
    [silent, notice.hidden, reader] = [null, true, found];
    show({ isQuiet: true });
  } catch { miss(); }
}

setInterval(beat, BEAT);
main.addEventListener("input", (event) => { typed = event.target; });
main.addEventListener("change", () => { typed = null; });
addEventListener("hashchange", () => show());
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, dialog") || !reader?.signedIn) return;
  const view = VIEWS[Number(event.key) - 1];
  if (view) go(view[0]);
  if (event.key === "/") {
    [...document.querySelectorAll("main input")].find((one) => one.offsetParent && one.type !== "datetime-local")?.focus();
    event.preventDefault();
  }
});
show();
