// Builds elements. What comes from devices only ever becomes text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

let ids = 0;
export function newID(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** A table. A column is {title, cell(row), number, narrow, wide, sort}; `href(row)` makes its first column a link. */
export function table(caption, columns, rows, options = {}) {
  const head = columns.map((column) => {
    const sorted = options.sort && column.sort === options.sort;
    const title = column.sort && options.onSort
      ? h("button", { type: "button", class: "sort", onclick: () => options.onSort(column.sort) }, column.title,
        h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? "↓" : ""))
      : column.title;
    return h("th", { scope: "col", class: kind(column), "aria-sort": sorted ? "descending" : null }, title);
  });
  const body = rows.map((row) => h("tr", null, columns.map((column) => h("td", { class: kind(column) }, column.cell(row)))));
  const content = h("table", null, h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, head)), h("tbody", null, body));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, content);
}

function kind(column) {
  return [column.number && "number", column.wide && "wide", column.narrow && "narrow"].filter(Boolean).join(" ") || null;
}

/** What a part of the page says when it has nothing to show: what is so, and what to do. */
export function empty(title, ...text) {
  return h("div", { class: "empty" }, h("p", { class: "title" }, title), h("p", null, text));
}

export function note(kind, ...text) {
  return h("p", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null }, text);
}

export function section(title, ...content) {
  const id = newID("part");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), content);
}

export function definition(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
}

/** Asks before an act that reaches many: whether to do it. */
export function ask(text, act) {
  const dialog = h("dialog", { "aria-label": act }, h("p", null, text), h("p", { class: "tools" },
    h("button", { type: "button", class: "main", onclick: () => dialog.close("yes") }, act), h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Cancel")));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    dialog.remove();
    done(dialog.returnValue === "yes");
  }));
}

/** Runs changes. The fault of one is said in the element `fault`; after one that is done `then` runs. */
export function acting() {
  const fault = h("p", { class: "note bad", role: "alert", hidden: true });
  const act = async (change, then) => {
    try {
      await change();
      fault.hidden = true;
      await then();
    } catch (error) { [fault.hidden, fault.textContent] = [false, error.message]; }
  };
  return { fault, act };
}

/** Shows a view again and again until it is left, while no field of it is in use. */
export function refresh(again, milliseconds) {
  const timer = setInterval(() => {
    if (document.visibilityState === "visible" && !document.querySelector(".going.on") && !document.activeElement?.closest("main section, main .tools")) again();
  }, milliseconds);
  addEventListener("prism-leave", () => clearInterval(timer), { once: true });
}

/** A part of a whole as a bar, with its words. */
export function portion(part, whole, words) {
  const bar = h("span", { class: "share", "aria-hidden": "true" }, h("i"));
  bar.firstChild.style.width = `${whole ? (part / whole) * 100 : 0}%`;
  return [bar, ` ${words}`];
}

export function say(text) {
  document.getElementById("status").textContent = text;
}
