// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
export const brief = (value) => (Math.abs(value) < 10000 ? precise.format(value) : short.format(value));
export const real = (value) => (value === null || value === undefined ? "–" : precise.format(value));

const two = (value) => String(value).padStart(2, "0");

/** 2026-11-23 10:31:05, of the reader's own clock. */
export function time(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) return "–";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(milliseconds, true)}`;
}

export function clock(milliseconds, hasSeconds) {
  const date = new Date(milliseconds);
  return `${two(date.getHours())}:${two(date.getMinutes())}${hasSeconds ? ":" + two(date.getSeconds()) : ""}`;
}

export function day(milliseconds) {
  const date = new Date(milliseconds);
  return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function span(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS[3];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}

/** `3 min ago`, with the time itself where the pointer rests. */
export function ago(milliseconds, now = Date.now()) {
  const seconds = (now - milliseconds) / 1000;
  return seconds < 5 ? "now" : `${span(seconds)} ago`;
}

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  if (value < 1048576) return `${precise.format(Math.round(value / 102.4) / 10)} KiB`;
  return `${precise.format(Math.round(value / 104857.6) / 10)} MiB`;
}
