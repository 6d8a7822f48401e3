// A JSON value as a tree. Every key and every text is text.

import { h } from "./dom.js";
import { time } from "./format.js";

const TEXT_MAX = 2000;
const MEMBERS_MAX = 200;

/** A number of milliseconds since 1970 under a name of a time: from 2001 to 2096. */
const isTime = (key, value) => typeof value === "number" && /time$/i.test(key) && value >= 1e12 && value < 4e12;

function leaf(key, value) {
  if (typeof value === "string") {
    return h("span", { class: "text" }, value.length > TEXT_MAX ? value.slice(0, TEXT_MAX) + "…" : value);
  }
  const plain = h("span", { class: value === null ? "nothing" : typeof value }, String(value));
  return isTime(key, value) ? [plain, " ", h("span", { class: "quiet" }, time(value))] : plain;
}

/** - `onPick(path, value)`: makes each plain value a button. */
export function tree(value, onPick, path = []) {
  const members = Array.isArray(value) ? value.map((one, place) => [String(place), one]) : Object.entries(value);
  return h("dl", { class: "tree" }, members.slice(0, MEMBERS_MAX).map(([key, one]) => {
    const inner = [...path, key];
    const isTree = one !== null && typeof one === "object";
    const isPlain = !isTree && onPick && !Array.isArray(value) && inner.every((part) => part.length > 0 && !/["\\]/.test(part)) && String(one).length <= 200;
    return h("div", null, h("dt", null, key), h("dd", null,
      isTree ? tree(one, Array.isArray(one) ? null : onPick, inner) : leaf(key, one),
      isPlain && h("button", { type: "button", class: "add", title: "Show reports with this value only", "aria-label": `Filter by ${inner.join(".")}`, onclick: () => onPick(inner, one) }, "+")));
  }), members.length > MEMBERS_MAX && h("div", null, `… ${members.length - MEMBERS_MAX} more`));
}

/** A path as a condition names it: a key with a dot or another sign is in quotes. */
export const pathText = (path) => path.map((part) => (/^[A-Za-z0-9_]+$/.test(part) ? part : `"${part}"`)).join(".");

export const condition = (path, value) => `${pathText(path)} = ${value}`;

/** The plain values of a meta, each as [path, value]. */
export function leaves(meta, path = []) {
  if (meta === null || typeof meta !== "object") return [];
  return Object.entries(meta).flatMap(([key, one]) => {
    if (key.length === 0 || /["\\]/.test(key) || Array.isArray(one)) return [];
    const inner = [...path, key];
    return one !== null && typeof one === "object" ? leaves(one, inner) : [[inner, one]];
  });
}

/** The members of a meta that say most, in one line. */
export function oneLine(meta) {
  if (meta === null || typeof meta !== "object") return "";
  const skipped = /^(SYS_|APP_|MONITOR_|REPORT_ID$|CREATE_TIME$|IS_BIZ$|OTEL_)/;
  return Object.entries(meta).filter(([key]) => !skipped.test(key)).slice(0, 12)
    .map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`).join("  ").slice(0, 400);
}
