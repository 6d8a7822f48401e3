// Rules like those of axe-core: contrast, names, labels, headings, ids, focus. Returns what is wrong, one line each.
const faults = [];
const text = (element) => (element.textContent || "").trim();
const isShown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
const where = (element) => `${element.tagName.toLowerCase()}${element.id ? "#" + element.id : ""} "${text(element).slice(0, 40)}"`;

function name(element) {
  const label = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.getAttribute("title");
  const by = element.getAttribute("aria-labelledby");
  return (label || (by && document.getElementById(by)?.textContent) || text(element) || element.getAttribute("alt") || "").trim();
}
for (const element of document.querySelectorAll("a[href], button, input, select, textarea, [role=region], [role=img], summary, section, nav")) {
  if (isShown(element) && !name(element)) faults.push(`no name: ${where(element)}`);
}

// Contrast (WCAG 2.2, 1.4.3): 4.5 to 1.
function parse(colour) {
  const parts = colour.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => { const share = part / 255; return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function paper(element) {
  for (let one = element; one; one = one.parentElement) {
    const { rgb, alpha } = parse(getComputedStyle(one).backgroundColor);
    if (alpha > 0.99) return rgb;
  }
  return [255, 255, 255];
}
const seen = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || seen.has(element) || element.closest(".hidden, .skip, script, style, option, datalist, noscript, svg") || !isShown(element)) continue;
  seen.add(element);
  const [a, b] = [luminance(parse(getComputedStyle(element).color).rgb), luminance(paper(element))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${where(element)}`);
}

const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
for (const id of new Set(ids.filter((id, place) => ids.indexOf(id) !== place))) faults.push(`two elements have the id ${id}`);
for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for", "list"]) {
  for (const element of document.querySelectorAll(`[${attribute}]`)) {
    if (!document.getElementById(element.getAttribute(attribute))) faults.push(`${attribute} leads nowhere: ${where(element)}`);
  }
}
if (document.querySelectorAll("h1").length !== 1) faults.push("there is not one h1");
let level = 0;
for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) faults.push(`a heading leaves out a level: ${where(heading)}`);
  level = own;
}
for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) faults.push(`tabindex over 0: ${where(element)}`);
for (const element of document.querySelectorAll("th")) if (!element.scope) faults.push(`a column without scope: ${where(element)}`);
for (const list of document.querySelectorAll("ul, ol")) {
  if ([...list.children].some((child) => child.tagName !== "LI")) faults.push(`a list with something else than items: ${where(list)}`);
}
if (!document.documentElement.lang) faults.push("the page names no language");
if (document.querySelectorAll("main").length !== 1) faults.push("there is not one main");
for (const image of document.querySelectorAll("[style]")) if (image.getAttribute("style").includes("url(")) faults.push("a style loads something");
return faults;
