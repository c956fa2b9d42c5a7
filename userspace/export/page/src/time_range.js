// Times and ranges of time, {from, to} in milliseconds since 1970: their texts, and what is done to them.

export const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
export const MIN_SPAN = 10 * SECOND;

export const lengthOf = ({from, to}) => to - from;
export const sameRange = (a, b) => a === b || (a !== null && b !== null && a.from === b.from && a.to === b.to);

/** The part of a range within another one, moved rather than cut where that is possible. */
export function moveWithin(range, bounds) {
  const length = Math.min(lengthOf(range), lengthOf(bounds));
  const from = Math.min(Math.max(range.from, bounds.from), bounds.to - length);
  return {from, to: from + length};
}

/**
 * The whole steps between two times in any order, at least one.
 * @param {{begin: number, step: number, steps: number}} grid
 */
export function snap(a, b, {begin, step, steps}) {
  const at = (time, round) => Math.min(Math.max(round((time - begin) / step), 0), steps);
  let first = at(Math.min(a, b), Math.floor), last = at(Math.max(a, b), Math.ceil);
  if (first === last) first < steps ? ++last : --first;
  return {from: begin + first * step, to: begin + last * step};
}

/** A span that is `factor` times as long, with `center` where it was. Never shorter than MIN_SPAN. */
export function zoom(span, factor, center = (span.from + span.to) / 2) {
  const length = Math.max(MIN_SPAN, Math.round(lengthOf(span) * factor));
  const from = Math.round(center - (length * (center - span.from)) / lengthOf(span));
  return {from, to: from + length};
}

export const shift = ({from, to}, by) => ({from: from + by, to: to + by});

const UNITS = {ms: 1, s: SECOND, m: MINUTE, min: MINUTE, h: HOUR, d: DAY};

/** "5m", "1.5 h", "1h30m": a length of time in milliseconds, or null. */
function parseLength(text) {
  if (!/^(\d+(\.\d+)?\s*(ms|s|min|m|h|d)\s*)+$/.test(text)) return null;
  return [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)/g)].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0);
}

/**
 * A time that somebody types: "now", "-5m", "-1h30m", "14:03", "14:03:10", "2026-11-22 14:03", RFC 3339, unix seconds.
 * @param {number} now  @returns {?number} null: it is none
 */
export function parseTime(text, now) {
  const trimmed = text.trim();
  if (trimmed === 'now') return now;
  const ago = /^[-\u2212]/.test(trimmed) ? parseLength(trimmed.slice(1)) : null;
  if (ago !== null) return now - ago;
  if (/^\d{9,11}(\.\d+)?$/.test(trimmed)) return Number(trimmed) * SECOND;
  const clock = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/.exec(trimmed);
  if (clock) {
    const [hours, minutes, seconds] = [clock[1], clock[2], clock[3] ?? 0].map(Number);
    if (hours > 23 || minutes > 59 || seconds >= 60) return null;
    const time = new Date(now).setHours(hours, minutes, 0, 0) + Math.round(seconds * SECOND);
    return time <= now + MINUTE ? time : new Date(time).setDate(new Date(time).getDate() - 1);  // the last time that a clock showed it
  }
  if (!/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:\d{2})?)?$/.test(trimmed)) return null;
  const time = Date.parse(trimmed.length === 10 ? `${trimmed}T00:00` : trimmed.replace(' ', 'T'));
  return Number.isNaN(time) ? null : time;
}

const two = (number) => String(number).padStart(2, '0');

export function dateText(time) {
  const date = new Date(time);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "14:03:10", of the clock here; with milliseconds if asked for. */
export function clockText(time, milliseconds = false) {
  const date = new Date(time);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return milliseconds ? `${text}.${String(date.getMilliseconds()).padStart(3, '0')}` : text;
}

/** The clock's time, and the date unless it is that of `now`. */
export function timeText(time, now, milliseconds = false) {
  const day = dateText(time);
  return day === dateText(now) ? clockText(time, milliseconds) : `${day} ${clockText(time, milliseconds)}`;
}

/** "14:03:10 – 14:03:50" */
export function rangeText({from, to}, now) {
  const end = dateText(from) === dateText(to) ? clockText(to) : timeText(to, from);
  return `${timeText(from, now)} \u2013 ${end}`;
}

/** "40 s", "5 min", "1 h 30 min": with the largest units, at most so many of them. */
export function lengthText(ms, most = 2) {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${Number((ms / SECOND).toFixed(1))} s`;
  const parts = [[DAY, 'd'], [HOUR, 'h'], [MINUTE, 'min'], [SECOND, 's']];
  let rest = Math.round(ms / SECOND) * SECOND;
  const words = [];
  for (const [size, unit] of parts) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) words.push(`${count} ${unit}`);
  }
  return words.slice(0, most).join(' ');
}

const TICK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * SECOND);

/** Marks for an axis, at round times of the clock here: no closer to each other than a `most`th of the range. */
export function timeTicks({from, to}, most) {
  const step = TICK_STEPS.find((size) => (to - from) / size <= most) ?? Math.ceil((to - from) / most / DAY) * DAY;
  const offset = -new Date(from).getTimezoneOffset() * MINUTE;
  const ticks = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) {
    const clock = clockText(at);
    const midnight = clock === '00:00:00';
    ticks.push({at, text: midnight ? dateText(at).slice(5) : step < MINUTE ? clock : clock.slice(0, 5), strong: midnight});
  }
  return ticks;
}
