// Answers that are shown before they are whole: they go on by themselves, and say how far they are.

import { get } from "./api.js";
import { h, say } from "./dom.js";
import { narrow } from "./route.js";

/** Milliseconds of one part of an answer; longer where the part before brought nothing. */
const [PART, PART_MAX] = [1000, 20000];

export const isWhole = (answer) => answer.readSince === null || answer.readSince === undefined;

/** Lets something go on beside a bar with its progress and a button to cancel it. `step(signal)` does a part, and returns the share that is done, undefined where it is not known, or null at the end. */
export function going(step, share, signal) {
  let control = null;
  const bar = h("progress", { max: 1, "aria-label": "Share of the reports that are read" });
  const words = h("span", { class: "quiet" });
  const button = h("button", { type: "button", onclick: () => (control ? control.abort() : goOn()) });
  const state = h("p", { class: "going" }, bar, words, button);
  const show = (text) => {
    if (share === undefined) bar.removeAttribute("value");
    else bar.value = share;
    [words.textContent, button.textContent] = [text ?? (share === undefined ? "Reports are read" : `${Math.floor(share * 100)} % of the reports are read`), control ? "Cancel" : "Go on"];
    state.classList.toggle("on", control !== null);
  };
  const escape = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !event.target.closest("input, select, dialog")) control?.abort();
  };
  async function goOn() {
    control = new AbortController();
    const either = AbortSignal.any([control.signal, signal]);
    let fault = null;
    addEventListener("keydown", escape);
    try {
      while (share !== null) {
        show();
        share = await step(either);
      }
    } catch (error) { fault = either.aborted ? null : error.message; }
    removeEventListener("keydown", escape);
    control = null;
    if (share !== null) return show(fault);
    if (document.activeElement === button) document.getElementById("main").focus({ preventScroll: true });
    state.className = "going done";
    if (!signal.aborted) say("The answer is there");
  }
  goOn();
  return state;
}

/** The same for an answer that says no more than whether it is whole. `again` shows the view once it is. */
export const untilWhole = (path, parameters, again, signal) => going(async (either) => ((await get(path, parameters, either)).isWhole ? (again(), null) : undefined), undefined, signal);

/** Asks a question of the API. `grow(draw)` shows its answer, and asks on until it is whole; `draw(answer)` returns the content. */
export async function begin(path, parameters, signal) {
  let [answer, within] = [await get(path, { ...parameters, within: PART }, signal), PART];
  return { grow(draw) {
    const content = h("div", null, draw(answer));
    const part = async (either) => {
      const next = await get(path, { ...parameters, within }, either);
      const isFurther = next.progress > answer.progress || !next.goesOn;
      // The collector may have begun again: then it gets more time, and what is shown stays.
      within = isFurther ? PART : Math.min(PART_MAX, within * 2);
      if (isFurther) answer = next;
      // Nothing changes below a pointer or the focus until the answer is whole.
      if (!answer.goesOn || !content.matches(":hover, :focus-within")) redraw();
      return answer.goesOn ? answer.progress : null;
    };
    const redraw = () => {
      const hadFocus = content.contains(document.activeElement);
      content.replaceChildren(...[draw(answer)].flat());
      if (hadFocus) (content.querySelector(".plot") ?? document.getElementById("main")).focus({ preventScroll: true });
      if (!answer.goesOn && !isWhole(answer)) content.append(h("p", { class: "going" }, "There are more groups or different numbers than one answer holds. ", narrow(answer.readSince)));
    };
    if (!answer.goesOn) { if (!isWhole(answer)) redraw(); return content; }
    return [content, going(part, answer.progress, signal)];
  } };
}
