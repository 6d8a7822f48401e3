// Charts as inline SVG: bars and lines over time. A chart names its figures to screen readers, and shows those of one bucket
// where the pointer is, or where the arrow keys go.

import { isWhole } from "./answer.js";
import { h, svg } from "./dom.js";
import { atLeast, brief, count, real, ticks, time, zone } from "./format.js";

const WIDTH = 1000;
const HEIGHT = 160;
/** Groups beyond have the same colours, hatched. */
const COLOURS = 8;

function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

export function colour(groups, group) {
  const place = groups.indexOf(group);
  return group === "…" ? "cx" : `c${place % COLOURS}${place >= COLOURS ? " hatched" : ""}`;
}

export const groupName = (group) => (group === "" ? "(none)" : group === "…" ? "(others)" : group);

export function legend(groups, href) {
  return h("ul", { class: "legend" }, groups.map((group) => h("li", null,
    h("i", { class: colour(groups, group), "aria-hidden": "true" }),
    href && group !== "…" && group !== "" ? h("a", { href: href(group) }, group) : groupName(group))));
}

function places(data) {
  const width = data.bucketMilliseconds;
  const first = data.first ?? Math.floor(data.since / width) * width;
  const total = Math.max(1, Math.ceil((data.until - first) / width));
  return { first, width, total };
}

/** Round times below a chart, with the zone at its end, and lines at them. */
function axis(first, last) {
  const isNarrow = innerWidth < 640;
  const found = ticks(first, last, isNarrow ? 5 : 9).map(([at, text]) => [(at - first) / (last - first), text]);
  const shown = found.filter(([share]) => share > 0.03 && share < (isNarrow ? 0.75 : 0.92));
  const marks = shown.map(([share, text]) => {
    const mark = h("span", null, text);
    mark.style.left = `${share * 100}%`;
    return mark;
  });
  return { lines: found.map(([share]) => svg("line", { class: "grid", x1: share * WIDTH, x2: share * WIDTH, y1: 0, y2: HEIGHT })),
    element: h("div", { class: "axis", "aria-hidden": "true" }, marks, h("em", null, zone(last))) };
}

/** `onPick(since, until)`: gets what is clicked, drawn over with the pointer, or chosen with the arrow keys, Shift and Enter. */
function frame(title, top, data, marks, rows, onPick) {
  const { first, width, total } = places(data);
  const tip = h("div", { class: "tip", "aria-hidden": "true" });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, x1: -10, x2: -10 });
  const chosen = svg("rect", { class: "chosen", y: 0, height: HEIGHT, width: 0 });
  const grid = [0.25, 0.5, 0.75].map((share) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * share, y2: HEIGHT * share }));
  const below = axis(first, first + total * width);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    grid, below.lines, marks, chosen, cursor);
  const plot = h("div", { class: onPick ? "plot pick" : "plot", tabindex: "0", role: "img", "aria-label": title }, drawing, tip);
  let at = null;
  /** Where a choice of several bars began. */
  let anchor = null;
  const ends = () => [Math.min(at, anchor ?? at), Math.max(at, anchor ?? at) + 1];
  function show(place) {
    at = Math.min(total - 1, Math.max(0, place));
    const x = ((at + 0.5) / total) * WIDTH;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    const [from, to] = ends();
    chosen.setAttribute("x", (from / total) * WIDTH);
    chosen.setAttribute("width", anchor === null ? 0 : ((to - from) / total) * WIDTH);
    tip.replaceChildren(h("b", null, time(first + at * width)), rows(first + at * width));
    tip.style.left = `${(x / WIDTH) * 100}%`;
    tip.classList.toggle("left", x > WIDTH / 2);
    tip.classList.add("on");
  }
  function hide() {
    [at, anchor] = [null, null];
    tip.classList.remove("on");
    cursor.setAttribute("x1", -10);
    cursor.setAttribute("x2", -10);
    chosen.setAttribute("width", 0);
  }
  function pick() {
    const [from, to] = ends();
    hide();
    onPick(first + from * width, first + to * width);
  }
  const place = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.floor(((event.clientX - box.left) / box.width) * total);
  };
  plot.addEventListener("pointermove", (event) => show(place(event)));
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("pointercancel", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      anchor = event.shiftKey && onPick ? anchor ?? at : null;
      show((at ?? (step > 0 ? -1 : total)) + step);
    } else if (event.key === "Escape") hide();
    else if (event.key === "Enter" && at !== null && onPick) pick();
    else return;
    event.preventDefault();
  });
  if (onPick) {
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      plot.setPointerCapture(event.pointerId);
      show(place(event));
      anchor = at;
    });
    plot.addEventListener("pointerup", () => anchor !== null && pick());
  }
  return h("div", { class: isWhole(data) ? "chart" : "chart part" }, h("div", { class: "top", "aria-hidden": "true" }, brief(top)), plot, below.element);
}

/** Stacked bars of a histogram. */
export function bars(title, data, onPick) {
  const { first, width, total } = places(data);
  const sums = data.buckets.map((bucket) => Object.values(bucket.counts).reduce((sum, one) => sum + one, 0));
  const top = ceiling(Math.max(0, ...sums));
  const step = WIDTH / total;
  const marks = data.buckets.flatMap((bucket) => {
    const x = ((bucket.time - first) / width) * step;
    let y = HEIGHT;
    return data.groups.filter((group) => bucket.counts[group]).map((group) => {
      const height = (bucket.counts[group] / top) * HEIGHT;
      y -= height;
      const [name, box] = [colour(data.groups, group), { x: x + step * 0.08, y, width: step * 0.84, height }];
      return [svg("rect", { class: name, ...box }), name.endsWith("hatched") && svg("rect", { fill: "url(#hatch)", ...box })];
    });
  });
  const byTime = new Map(data.buckets.map((bucket) => [bucket.time, bucket.counts]));
  const rows = (at) => {
    const counts = byTime.get(at) ?? {};
    const found = data.groups.filter((group) => counts[group]);
    return found.length === 0 ? h("span", null, "0") : found.map((group) => h("span", null,
      h("i", { class: colour(data.groups, group) }), groupName(group), h("em", null, atLeast(counts[group], isWhole(data)))));
  };
  const total_ = sums.reduce((sum, one) => sum + one, 0);
  return frame(`${title}: ${isWhole(data) ? "" : "at least "}${count(total_)} from ${time(data.since)} to ${time(data.until)}, at most ${count(Math.max(0, ...sums))} in one bar${isWhole(data) ? "" : " so far"}`,
    top, data, marks, rows, onPick);
}

/** A figure of numbers. What is not read yet can make the most only more, the least only less, and others either. */
export const estimate = (figure, value, data) => (isWhole(data) ? "" : { count: "≥ ", max: "≥ ", min: "≤ " }[figure] ?? "≈ ") + real(value);

/** Lines of one figure (p50, p95, …) of an aggregate, one a group. */
export function lines(title, data, figure, onPick) {
  const { first, width, total } = places(data);
  const values = data.buckets.flatMap((bucket) => Object.values(bucket.groups).map((group) => group[figure]));
  const top = ceiling(Math.max(0, ...values));
  const marks = data.groups.flatMap((group) => {
    const points = data.buckets.filter((bucket) => bucket.groups[group]).map((bucket) => [
      ((bucket.time - first) / width + 0.5) * (WIDTH / total), HEIGHT - (Math.max(0, bucket.groups[group][figure]) / top) * HEIGHT]);
    const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    return [svg("polyline", { class: colour(data.groups, group), points: text }),
      ...(points.length < 60 ? points.map(([x, y]) => svg("line", { class: `dot ${colour(data.groups, group)}`, x1: x, x2: x, y1: y, y2: y })) : [])];
  });
  const byTime = new Map(data.buckets.map((bucket) => [bucket.time, bucket.groups]));
  const rows = (at) => Object.entries(byTime.get(at) ?? {}).map(([group, figures]) => h("span", null,
    h("i", { class: colour(data.groups, group) }), groupName(group), h("em", null, estimate(figure, figures[figure], data))));
  return frame(`${title}, at most ${real(Math.max(0, ...values))}${isWhole(data) ? "" : " so far"}`, top, data, marks, rows, onPick);
}

export function sparkline(values, title) {
  const top = Math.max(1, ...values);
  const step = 120 / values.length;
  return svg("svg", { class: "spark", viewBox: "0 0 120 24", preserveAspectRatio: "none", role: "img", "aria-label": title },
    svg("line", { class: "grid", x1: 0, x2: 120, y1: 23.5, y2: 23.5 }),
    values.map((value, place) => value > 0 && svg("rect", { class: "c0", x: place * step + 0.4, width: step - 0.8, y: 24 - Math.max(2, (value / top) * 24), height: Math.max(2, (value / top) * 24) })));
}
