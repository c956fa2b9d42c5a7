// A recording as a map: columns of a minute with a cell for each second, or of a second with cells of 20 ms. Time goes down a
// column and then on to the next one. Pure: what is drawn where, and what a place means.
import {shareText, weightText} from './text.js';

const SECOND = 1e9, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE;
/** Columns with their cells: the first one that makes few enough columns. */
const GRIDS = [{column: SECOND, cell: 2e7, most: 600}, {column: MINUTE, cell: SECOND, most: 4320}, {column: HOUR, cell: MINUTE, most: Infinity}];

/** A step of ten seconds is some microseconds longer where the clock was corrected meanwhile. */
const CLOCK_SLACK = 1.01;

/** The meanings that a cell's colour can have. `cpu` only where weights are CPU time. */
export const COLOURS = {samples: 'Samples', cpu: 'CPU', pauses: 'Pauses', search: 'Search'};

/**
 * @typedef {object} MapGrid  in nanoseconds since the start
 * @property {number} from
 * @property {number} columnNs
 * @property {number} cellNs
 * @property {number} columns
 * @property {number} rows     cells of a column
 */

/** @param {{from, to}} span  what is shown  @param {number} stepNs  cells can't be finer  @returns {MapGrid} */
export function gridOf(span, stepNs) {
  const fits = GRIDS.find(({column, cell, most}) => (span.to - span.from) / column <= most && (stepNs <= cell || stepNs <= (column / 6) * CLOCK_SLACK)) ?? GRIDS[2];
  const columnNs = Math.max(fits.column, stepNs), cellNs = Math.min(columnNs, Math.max(fits.cell, stepNs));
  const from = Math.floor(span.from / columnNs) * columnNs;
  return {from, columnNs, cellNs, columns: Math.max(1, Math.ceil((span.to - from) / columnNs - 1e-9)), rows: Math.max(1, Math.round(columnNs / cellNs))};
}

export const endOf = (grid) => grid.from + grid.columns * grid.columnNs;
export const timeOf = (grid, cell) => grid.from + cell * grid.cellNs;
export const cellAt = (grid, ns) => Math.max(0, Math.min(grid.columns * grid.rows - 1, Math.floor((ns - grid.from) / grid.cellNs + 1e-6)));

/** Adds weights to the cells of a grid; each entry counts where it begins. */
function addSteps(values, grid, steps, cell) {
  const {stepNs} = steps, first = grid.from / stepNs, scale = stepNs / grid.cellNs;
  for (let i = steps.first[cell]; i < steps.first[cell + 1]; ++i) {
    const at = Math.floor((steps.step[i] - first) * scale + 1e-6);
    if (at >= 0 && at < values.length) values[at] += steps.sums[i + 1] - steps.sums[i];
  }
}

/** Adds `weight` from a time on, `perNs` at a time, to the cells that it goes over. */
function spread(values, grid, from, to, perNs) {
  const begin = Math.max(from, grid.from), end = Math.min(to, endOf(grid));
  for (let ns = begin; ns < end;) {
    const cell = cellAt(grid, ns), next = Math.max(ns + 1, Math.min(end, timeOf(grid, cell + 1)));
    values[cell] += (next - ns) * perNs;
    ns = next;
  }
}

const IDLE = new Set(['waiting', 'idle']);

/** Whether a group of RecordedTimes had a CPU. */
const runs = (times, {kind}) => kind === 0 || !IDLE.has(times.laneTexts[kind - 1]);

/** When a process of wanted threads stood still: two at once count once. @returns {{from: number, to: number}[]} in order, apart from each other */
function pausesOf(profile, times, wanted) {
  const wantedPids = new Set(profile.threads.filter(wanted).map(({pid}) => pid)), all = profile.threads.every(wanted);
  const pauses = times.events.filter(({kind, thread}) => kind === 'pause' && (all || wantedPids.has(profile.threads[thread]?.pid)))
    .sort((a, b) => a.from - b.from);
  const apart = [];
  for (const {from, to} of pauses) {
    const last = apart.at(-1), end = Math.max(to, from + 1e3);
    if (last && from <= last.to) last.to = Math.max(last.to, end);
    else apart.push({from, to: end});
  }
  return apart;
}

/**
 * Values of the cells: a weight, CPUs (`cpu`), or the share of the time in which a process stood still (`pauses`).
 * @param {{colour: string, wanted: (thread: object) => boolean, flags: ?Uint8Array}} choice  flags: frames that are searched for
 */
export function mapValues(profile, times, grid, {colour, wanted, flags}) {
  const values = new Float64Array(grid.columns * grid.rows);
  if (colour === 'pauses') {
    for (const {from, to} of pausesOf(profile, times, wanted)) spread(values, grid, from, to, 1 / grid.cellNs);
    return values;
  }
  if (colour === 'search') {
    if (!flags || !times.stacks) return values;
    const through = new Uint8Array(profile.nodeFrame.length);
    for (let node = 0; node < through.length; ++node) through[node] = flags[profile.nodeFrame[node]] | (profile.nodeParent[node] >= 0 ? through[profile.nodeParent[node]] : 0);
    const {stepNs, steps} = times.stacks, counts = Uint8Array.from(profile.cellNode, (node, cell) => (node >= 0 && through[node] && wanted(profile.threads[profile.cellThread[cell]]) ? 1 : 0));
    const first = grid.from / stepNs, scale = stepNs / grid.cellNs;
    times.stacks.forEach(Math.floor(first), Math.min(steps, Math.ceil(endOf(grid) / stepNs)), (cell, weight, step) => {
      const at = Math.floor((step - first) * scale + 1e-6);
      if (counts[cell] && at >= 0 && at < values.length) values[at] += weight;
    });
    return values;
  }
  times.groups.forEach((group, at) => {
    if (wanted(profile.threads[group.thread]) && (colour !== 'cpu' || runs(times, group))) addSteps(values, grid, times.groupSteps, at);
  });
  if (colour === 'cpu') {
    const perCell = cpuNs(profile) / grid.cellNs;
    for (let i = 0; i < values.length; ++i) values[i] *= perCell;
  }
  return values;
}

/** A value of a cell in words. */
export function valueText({about}, colour, value) {
  if (colour === 'cpu') return `${value.toFixed(2)} CPUs`;
  if (colour === 'pauses') return value === 0 ? 'no pause' : `paused ${shareText(value, 1)}`;
  return `${weightText(value, about.unit)}${colour === 'search' ? ' matched' : ''}`;
}

/** CPU time that a weight of 1 stands for; 0: weights are something else. */
export function cpuNs({about}) {
  if (about.view !== 'cpu' && about.view !== 'wall') return 0;
  return {samples: about.period_ns, microseconds: 1e3, nanoseconds: 1}[about.unit] ?? 0;
}

/** The value from which on a cell has the strongest colour: few cells are above, so that one of them does not make all others pale. */
export function strongest(values) {
  const some = values.filter((value) => value > 0).sort();
  return some.length === 0 ? 0 : some[Math.floor(0.995 * (some.length - 1))];
}

/**
 * Rectangles of a range in columns and rows, at most three: the rest of its first column, whole columns, the begin of its last.
 * @returns {{column: number, row: number, columns: number, rows: number}[]}
 */
export function rectanglesOf(grid, {from, to}) {
  const {rows} = grid, last = grid.columns * grid.rows;
  const begin = Math.max(0, Math.min(last, Math.round((from - grid.from) / grid.cellNs))), end = Math.max(0, Math.min(last, Math.round((to - grid.from) / grid.cellNs)));
  if (begin >= end) return [];
  const first = Math.floor(begin / rows), behind = Math.floor(end / rows);
  if (first === behind) return [{column: first, row: begin % rows, columns: 1, rows: end - begin}];
  const all = [];
  if (begin % rows > 0) all.push({column: first, row: begin % rows, columns: 1, rows: rows - (begin % rows)});
  const whole = begin % rows > 0 ? first + 1 : first;
  if (behind > whole) all.push({column: whole, row: 0, columns: behind - whole, rows});
  if (end % rows > 0) all.push({column: behind, row: 0, columns: 1, rows: end % rows});
  return all;
}

/**
 * A map by keyboard.
 * @param {{key: string, shiftKey: boolean}} event
 * @param {MapGrid} grid
 * @param {number} cursor  a cell
 * @returns {?{cursor: number, extend: boolean}|{choose|clear|zoomIn|zoomOut|compare|all: true}} null: the key means nothing
 */
export function mapKey({key, shiftKey}, grid, cursor) {
  const last = grid.columns * grid.rows - 1;
  const steps = {ArrowDown: 1, ArrowUp: -1, ArrowRight: grid.rows, ArrowLeft: -grid.rows, PageDown: 10 * grid.rows, PageUp: -10 * grid.rows, Home: -last, End: last};
  if (Object.hasOwn(steps, key)) return {cursor: Math.max(0, Math.min(last, cursor + steps[key])), extend: shiftKey};
  const acts = {Enter: 'choose', ' ': 'choose', Escape: 'clear', '+': 'zoomIn', '=': 'zoomIn', '-': 'zoomOut', _: 'zoomOut', c: 'compare', a: 'all'};
  return Object.hasOwn(acts, key) ? {[acts[key]]: true} : null;
}
