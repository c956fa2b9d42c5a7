// The server's timeline as columns of numbers, and what a drawing of it needs. No canvas here.
import {inert, processText} from './format.js';

const MS = 'milliseconds a second';

/**
 * The quantities that the height of the areas can stand for. `field`: of the answer; `rate`: it is a sum in a step, and shown as one in a
 * second; `scale`: what a number of the answer is of the unit; `mean`: that unit in words.
 */
export const MEASURES = {
  cpu: {field: 'cores', rate: false, unit: 'cores', mean: 'cores', text: 'CPU'},
  jit: {field: 'jit_ms', rate: true, unit: 'ms/s', mean: MS, text: 'Compiling'},
  pause: {field: 'pause_ms', rate: true, unit: 'ms/s', mean: MS, text: 'Pauses'},
  'suspend-delay': {field: 'suspend_ms', rate: true, unit: 'ms/s', mean: MS, text: 'Suspend delay'},
  alloc: {field: 'alloc_bytes', rate: true, scale: 1e-6, unit: 'MB/s', mean: 'megabytes a second', text: 'Allocations'},
  'off-cpu': {field: 'wait_ms', rate: true, scale: 1e-3, unit: 'threads', mean: 'threads that wait', text: 'Waiting'},
};

/** The same where the series are what threads do: BY.state. */
export const STATES_MEASURE = {field: 'wait_ms', rate: true, scale: 1e-3, unit: 'threads', mean: 'threads', text: 'Threads'};

const FIELDS = ['cores', 'pause_ms', 'suspend_ms', 'jit_ms', 'alloc_bytes', 'wait_ms'];
const MOST_STEPS = 100_000;

const numberOf = (value) => (Number.isFinite(value) && value > 0 ? value : 0);

const OTHERS = '[others]';  // what the server calls the rest, where there are too many series
const harmless = (value) => (typeof value === 'string' ? inert(value) : value);

/**
 * @param {object} answer  of api/timeline, with texts as they are: what a series is narrowed to is sent back
 * @param {string} by  what was asked for: 'process' or 'container'
 * @returns {{grid: {begin, step, steps}, covered: Uint8Array, knownMs: Float64Array, series: object[], states: object[], pauses: object[]}}
 *   knownMs: how much of each step was recorded; series: {key, label, pid, container, dotnet, cores, pause_ms, suspend_ms, jit_ms, alloc_bytes, wait_ms: Float64Array, narrowTo: ?object}, as the
 *   server orders them; states: what threads do, as series of the same kind; pauses in the order of their times
 */
export function readTimeline(answer, by) {
  const steps = Math.min(MOST_STEPS, Math.max(0, Math.trunc(answer.steps) || 0));
  const column = (values) => Float64Array.from({length: steps}, (_, i) => numberOf(values?.[i]));
  const seen = new Map();  // a pid that was given away twice has two series
  const series = (answer.series ?? []).map((one) => {
    const pid = Number.isInteger(one.pid) ? one.pid : null, name = String(one.label ?? '');
    const isOthers = pid === null && name === OTHERS;
    const container = by === 'container' && !isOthers ? name : String(one.container ?? '');
    const narrowTo = by === 'process' ? pid !== null && {pid} : !isOthers && name !== '' && {container: name};
    const label = isOthers ? 'others' : by === 'process' ? processText({comm: inert(name), pid}) : inert(name) || 'no container';
    const named = `${pid ?? ''}/${name}`, times = seen.get(named) ?? 0;
    seen.set(named, times + 1);
    return {
      key: times === 0 ? named : `${named}#${times}`, label, pid, container: inert(container), dotnet: one.dotnet === true, isOthers, narrowTo: narrowTo || null,
      ...Object.fromEntries(FIELDS.map((field) => [field, column(one[field])])),
    };
  });
  const knownMs = column(answer.covered_ms);
  const pauses = (answer.pauses ?? []).filter(({t}) => Number.isFinite(t)).sort((a, b) => a.t - b.t);
  return {
    grid: {begin: answer.begin, step: answer.step_ms, steps},
    covered: Uint8Array.from(knownMs, (ms) => (ms > 0 ? 1 : 0)),
    knownMs,
    series,
    states: readStates(answer, column),
    pauses: pauses.map((pause) => Object.fromEntries(Object.entries(pause).map(([key, value]) => [key, harmless(value)]))),
  };
}

const STATE_TEXTS = {running: 'running', runnable: 'waits for a CPU', suspended: 'paused by the runtime', short: 'short waits'};

/** The states of threads as series, from the bottom up: running, then what is in somebody's way, then what mostly is in nobody's. */
function readStates(answer, column) {
  const states = (answer.states ?? []).map(({state, ms}) => ({state: String(state), ms}));
  const rank = ({state}) => (STATE_ORDER.indexOf(state) + STATE_ORDER.length + 1) % (STATE_ORDER.length + 1);
  return states.sort((a, b) => rank(a) - rank(b)).map(({state, ms}) => ({
    key: state, label: inert(STATE_TEXTS[state] ?? state), pid: null, container: '', dotnet: false, isOthers: false, narrowTo: null, isState: true,
    ...Object.fromEntries(FIELDS.map((field) => [field, column(field === 'wait_ms' ? ms : [])])),
  }));
}

const STATE_ORDER = ['running', 'runnable', 'suspended', 'monitor', 'lock', 'task wait', 'semaphore', 'event', 'futex', 'socket', 'file', 'pipe', 'page fault',
  'child process', 'other', 'short', 'not told', 'poll', 'sleep', 'idle'];

export const endOf = ({begin, step, steps}) => begin + step * steps;
export const reachOf = (grid) => ({from: grid.begin, to: endOf(grid)});

/** The step that a time lies in; the first or last one for a time outside. */
export function stepAt({begin, step, steps}, time) {
  return Math.min(steps - 1, Math.max(0, Math.floor((time - begin) / step)));
}

/** A number of the answer in the unit of a measure that is a rate: of the part of the step that was recorded. */
export const rateOf = (value, {scale = 1}, {knownMs}, step) => (knownMs[step] > 0 ? (value * scale * 1000) / knownMs[step] : 0);

/** Values of one series in the measure's unit. */
export function valuesOf(series, measure, timeline) {
  const values = series[measure.field];
  return measure.rate ? values.map((value, step) => rateOf(value, measure, timeline, step)) : values;
}

/**
 * Areas on top of each other, the first series at the bottom.
 * @returns {{tops: Float64Array[], highest: number}} tops[i][step]: upper edge of series i; its lower edge is that of i - 1
 */
export function stack(timeline, measure) {
  const tops = [];
  let below = new Float64Array(timeline.grid.steps), highest = 0;
  for (const series of timeline.series) {
    const top = valuesOf(series, measure, timeline);
    const sum = Float64Array.from(below, (value, i) => value + top[i]);
    tops.push((below = sum));
  }
  for (const value of below) highest = Math.max(highest, value);
  return {tops, highest};
}

/** The series whose area holds a value at a step, or -1. */
export function seriesAt({tops}, step, value) {
  return tops.findIndex((top, i) => value < top[step] && value >= (i > 0 ? tops[i - 1][step] : 0));
}

/** Mean of a series over what was recorded of the steps of a range. */
export function meanIn(timeline, series, measure, range) {
  const {grid, knownMs} = timeline;
  if (grid.steps === 0) return 0;
  const values = series[measure.field];
  const first = stepAt(grid, range.from), last = stepAt(grid, Math.max(range.from, range.to - 1));
  let sum = 0, known = 0;
  for (let i = first; i <= last; ++i) {
    if (knownMs[i] === 0) continue;
    sum += measure.rate ? values[i] * (measure.scale ?? 1) * 1000 : values[i] * knownMs[i];
    known += knownMs[i];
  }
  return known > 0 ? sum / known : 0;
}

/** How much of a range was recorded, 0 to 1. */
export function coverageOf({grid, covered}, range) {
  if (grid.steps === 0) return 0;
  const first = stepAt(grid, range.from), last = stepAt(grid, Math.max(range.from, range.to - 1));
  let count = 0;
  for (let i = first; i <= last; ++i) count += covered[i];
  return count / (last - first + 1);
}

const PENDING_MS = 30_000;  // a window is shown when it is over and written

/**
 * Where nothing was recorded. `pending`: at the end, so shortly before `now` that it may only not be there yet.
 * @returns {{first: number, end: number, pending: boolean}[]} steps
 */
export function gapsOf({grid, covered}, now) {
  const gaps = [];
  for (let first = 0; first < grid.steps; ++first) {
    if (covered[first]) continue;
    let end = first + 1;
    while (end < grid.steps && !covered[end]) ++end;
    const settled = now - PENDING_MS;
    const late = end < grid.steps || settled >= endOf(grid) ? end : Math.max(first, stepAt(grid, settled));
    if (late > first) gaps.push({first, end: late, pending: false});
    if (late < end) gaps.push({first: late, end, pending: true});
    first = end;
  }
  return gaps;
}

/** A round upper end for an axis, and the marks on it: three to six. */
export function niceScale(highest) {
  if (!(highest > 0)) return {top: 1, ticks: [0, 1]};
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
  const count = Math.max(1, Math.ceil(highest / step - 1e-9));
  return {top: step * count, ticks: Array.from({length: count + 1}, (_, i) => Number((i * step).toPrecision(12)))};
}

// --- pauses -----------------------------------------------------------------------------------------------------------------

const SHORTEST_MS = 0.1;

/** Height of a pause's mark, 0 to 1: a logarithm, since pauses of 1 ms and of 1 s are to be seen in one picture. */
export function pauseHeight(ms, longestMs) {
  const range = Math.log10(Math.max(10, longestMs) / SHORTEST_MS);
  return Math.min(1, Math.max(0.06, Math.log10(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) / range));
}

/**
 * The pauses that are drawn: of those that begin in one column of pixels the longest, however many there are.
 * @param {(time: number) => number} xOf
 * @returns {{x: number, pause: object}[]} from left to right
 */
export function pauseColumns(pauses, xOf) {
  const columns = [];
  let last = null;
  for (const pause of pauses) {
    const x = Math.floor(xOf(pause.t));
    if (last && last.x === x) {
      if (pause.pause_ms > last.pause.pause_ms) last.pause = pause;
    } else {
      columns.push((last = {x, pause}));
    }
  }
  return columns;
}

/** The pause whose mark is at x or nearest to it, at most `reach` pixels away; of several the longest. Or null. */
export function pauseNear(columns, x, reach, widthOf) {
  let best = null, bestScore = Infinity;
  for (const {x: left, pause} of columns) {
    const away = Math.max(0, left - x, x - left - widthOf(pause));
    if (away > reach) continue;
    if (away < bestScore - 0.5 || (away < bestScore + 0.5 && best && pause.pause_ms > best.pause_ms)) {
      best = pause;
      bestScore = Math.min(away, bestScore);
    }
  }
  return best;
}

const KIND_WORDS = {
  blocking: 'blocking GC', 'background-initial': 'background GC, first stop', 'background-final': 'background GC, last stop',
  'heap-count-change': 'heap count change', 'no-gc': 'no collection', other: 'other reason',
};

/** "blocking GC, generation 2" */
export function kindText({kind, generation}) {
  const word = KIND_WORDS[kind] ?? kind ?? '';
  return Number.isInteger(generation) ? `${word}, generation ${generation}` : word;
}

/** Whether the threads stood still for a collection. */
export const isGcPause = ({kind}) => kind === 'blocking' || kind === 'background-initial' || kind === 'background-final';
