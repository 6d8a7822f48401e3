// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
/** A count, or what is known of it while not all is read. */
export const atLeast = (value, isWhole, write = count) => (isWhole ? "" : "≥ ") + write(value);
/** 1 crash, 2 crashes, ≥ 3 new reports. */
export const counted = (value, noun, isWhole = true) => `${atLeast(value, isWhole)} ${noun}${value === 1 && isWhole ? "" : /(ch|sh|s)$/.test(noun) ? "es" : "s"}`;
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

/** As a field for a date and a time takes it: 2026-11-23T10:31:05. */
export const local = (milliseconds) => time(milliseconds).replace(" ", "T");

/** The difference of the reader's own clock to UTC: UTC+01:00. */
export function zone(milliseconds) {
  const minutes = -new Date(milliseconds).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const [HOUR, DAY] = [3600, 86400];

/** Round times of the reader's own clock, at most about `most` of them, each with its text. */
export function ticks(from, to, most) {
  const least = (to - from) / 1000 / most;
  const seconds = SECONDS.find((step) => step >= least);
  const days = [1, 2, 7, 14].find((step) => step * DAY >= least);
  const months = [1, 2, 3, 6, 12, 24, 60].find((step) => step * 30 * DAY >= least) ?? 120;
  const first = new Date(from);
  const [year, month, date] = [first.getFullYear(), first.getMonth(), first.getDate()];
  const begin = seconds ? Math.floor((from - new Date(year, month, date)) / 1000 / seconds) : 0;
  const at = (place) => (seconds ? new Date(year, month, date, 0, 0, (begin + place) * seconds) : days
    ? new Date(year, month, date + place * days) : new Date(year, Math.floor(month / months) * months + place * months, 1)).getTime();
  const text = (one) => {
    if (!seconds) return days ? day(one) : `${new Date(one).getFullYear()}-${two(new Date(one).getMonth() + 1)}`;
    const isMidnight = new Date(one).getHours() === 0 && (one - new Date(one).setHours(0, 0, 0, 0)) < 1000;
    return isMidnight && seconds >= HOUR / 4 ? day(one) : clock(one, seconds < 60);
  };
  const found = [];
  for (let place = 0; at(place) <= to; place += 1) if (at(place) >= from) found.push([at(place), text(at(place))]);
  return found;
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
