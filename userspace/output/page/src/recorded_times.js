// When each stack had samples, and what the runtime did when. output/html_times.h says how the times are packed.
//
// Of each cell of the profile (a stack of a thread) the steps of time are known in which it has weight, with sums up to each of
// them. So the weight of a range of time is two searches a cell, however many samples there are.
import {inflate} from './packed.js';

/** Kinds of events as the data numbers them. */
const EVENT_KINDS = ['pause', 'collection', 'compilation'];

const FEW = 16;  // entries that are looked at one by one

/** Fills an array with the next varints. */
function readVarints(reader, numbers) {
  const {bytes} = reader;
  let {at} = reader;
  for (let i = 0; i < numbers.length; ++i) {
    let value = bytes[at++];
    if (value >= 0x80) {
      value -= 0x80;
      for (let scale = 128, byte = 0x80; byte >= 0x80; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 0x7f) * scale;
      }
    }
    numbers[i] = value;
  }
  if (at > bytes.length) throw new Error('the times of the samples are cut off');
  reader.at = at;
  return numbers;
}

/** Cells, those with the largest counts first. */
function mostFirst(counts, entries) {
  const most = counts.reduce((largest, count) => Math.max(largest, count), 0);
  if (most > entries) throw new Error('the times of the samples do not fit the profile');
  const place = new Uint32Array(most + 2);  // of a count: the first one of its cells
  for (const count of counts) ++place[most - count + 1];
  for (let i = 0; i <= most; ++i) place[i + 1] += place[i];
  const order = new Uint32Array(counts.length);
  for (let cell = 0; cell < counts.length; ++cell) order[place[most - counts[cell]]++] = cell;
  return order;
}

/** Numbers that were written cell by cell in `order`, at the places of their cells. add: each is behind the one before. */
function inOrder(numbers, order, first, Column, add) {
  const column = new Column(numbers.length);
  let at = 0;
  for (const cell of order) {
    for (let i = first[cell], sum = 0; i < first[cell + 1]; ++i) {
      const number = numbers[at++];
      column[i] = add ? (sum += number) : number;
    }
  }
  return column;
}

/** Sorted steps of time with weights, of each of some cells. */
export class StepWeights {
  /**
   * @param {Uint8Array} bytes  as html_times.h has them
   * @param {number} cells
   */
  constructor(bytes, cells) {
    const reader = {bytes, at: 0};
    const [milliseconds, steps, entries] = readVarints(reader, new Float64Array(3));
    this.stepNs = milliseconds * 1e6;
    this.steps = steps;
    /** entries of cell c: first[c] up to first[c + 1] - 1 */
    this.first = new Uint32Array(cells + 1);
    const counts = readVarints(reader, new Uint32Array(cells));
    for (let cell = 0; cell < cells; ++cell) this.first[cell + 1] = this.first[cell] + counts[cell];
    // Each takes two bytes at least, so what a file claims can't be more than it has.
    if (this.first[cells] !== entries || 2 * entries > bytes.length) throw new Error('the times of the samples do not fit the profile');
    const order = mostFirst(counts, entries);
    this.step = inOrder(readVarints(reader, new Uint32Array(entries)), order, this.first, Uint32Array, true);
    /** weight of all entries before each */
    this.sums = new Float64Array(entries + 1);
    const weights = inOrder(readVarints(reader, new Float64Array(entries)), order, this.first, Float64Array, false);
    for (let i = 0; i < entries; ++i) this.sums[i + 1] = this.sums[i] + weights[i];
  }

  get cells() {
    return this.first.length - 1;
  }

  /** The first entry of the cell at `step` or behind it. */
  lowerBound(cell, step) {
    let low = this.first[cell], high = this.first[cell + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.step[middle] < step) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Weight of each cell in steps from (that one included) to (that one not). */
  weights(from, to) {
    const {first, step, sums} = this, weights = new Float64Array(this.cells);
    for (let cell = 0; cell < weights.length; ++cell) {
      let low = first[cell], high = first[cell + 1];
      if (high - low > FEW) {
        low = this.lowerBound(cell, from);
        high = this.lowerBound(cell, to);
      } else {
        while (low < high && step[low] < from) ++low;
        while (low < high && step[high - 1] >= to) --high;
      }
      if (low < high) weights[cell] = sums[high] - sums[low];
    }
    return weights;
  }
}

/**
 * @param {string} text  of the page's element
 * @returns {Promise<{stacks: ?Uint8Array, lanes: ?Uint8Array, later: ?(() => Promise<Uint8Array>)}>} where lanes stand apart, the stacks
 *     are so many that they come later
 */
export async function unpackTimes(text) {
  const [stacks = '', lanes = ''] = text.trimEnd().split(' ');
  if (lanes === '') return {stacks: stacks === '' ? null : await inflate(stacks), lanes: null, later: null};
  return {stacks: null, lanes: await inflate(lanes), later: stacks === '' ? null : () => inflate(stacks)};
}

/**
 * @typedef {object} TimedEvent  from and to in nanoseconds since the start
 * @property {string} kind  of EVENT_KINDS
 */

export class RecordedTimes {
  /**
   * @param {Profile} profile
   * @param {object} data  what the page's data has of times
   * @param {object} packed  of unpackTimes
   */
  constructor(profile, data, {stacks = null, lanes = null, later = null}) {
    this.untimed = data.untimed;
    this.laneTexts = data.lanes;
    this.makeLanes(profile);
    /** @type {?StepWeights} null: not yet, or without hasStacks never: no step was coarse enough for this profile */
    this.stacks = stacks && new StepWeights(stacks, profile.cellNode.length);
    /** @type {?() => Promise<void>} until it was called: brings the stacks */
    this.load = later && (() => {
      this.load = null;
      return later().then((bytes) => { this.stacks = new StepWeights(bytes, profile.cellNode.length); });
    });
    this.hasStacks = stacks !== null || later !== null;
    /** of groups, by the second or finer */
    this.groupSteps = lanes ? new StepWeights(lanes, this.groups.length) : this.stacks && sumUp(this.stacks, this.groupOf, this.groups.length);
    this.readEvents(profile, data.events);
    const known = this.groupSteps ?? this.stacks;
    this.durationNs = known ? Math.max(known.steps * known.stepNs, profile.about.duration_ns) : 0;
  }

  /** Groups of cells: of one thread, at one kind of work. In the order in which the cells come to them, as the program numbers them. */
  makeLanes(profile) {
    const {nodeFrame, nodeParent, cellNode, cellThread} = profile;
    const kinds = new Uint8Array(nodeFrame.length);
    for (let node = 0; node < kinds.length; ++node) {
      kinds[node] = profile.frameLanes[nodeFrame[node]] || (nodeParent[node] >= 0 ? kinds[nodeParent[node]] : 0);
    }
    const ids = new Map();
    /** @type {{thread: number, kind: number}[]} kind: of laneTexts and one more; 0: not known */
    this.groups = [];
    this.groupOf = new Int32Array(cellNode.length);
    for (let cell = 0; cell < cellNode.length; ++cell) {
      const kind = cellNode[cell] < 0 ? 0 : kinds[cellNode[cell]];
      const key = cellThread[cell] * 256 + kind;
      if (!ids.has(key)) ids.set(key, this.groups.push({thread: cellThread[cell], kind}) - 1);
      this.groupOf[cell] = ids.get(key);
    }
  }

  readEvents(profile, events) {
    let at = 0;
    /** @type {TimedEvent[]} */
    this.events = events.kind.map((kind, i) => {
      at += events.time_us[i];
      return {kind: EVENT_KINDS[kind], from: at * 1e3, to: (at + events.duration_us[i]) * 1e3, thread: events.thread[i], name: profile.text(events.name[i]), detail: profile.text(events.detail[i])};
    });
  }

  /** The nearest range that stacks can be told apart in, as {from, to} of nanoseconds. */
  snap({from, to}) {
    if (!this.stacks) return {from, to};
    const {stepNs, steps} = this.stacks;
    const first = Math.min(Math.floor(from / stepNs + 1e-6), steps - 1);
    return {from: first * stepNs, to: Math.max(first + 1, Math.ceil(to / stepNs - 1e-6)) * stepNs};
  }

  /** Weight of each cell of the profile in a range. */
  weightsIn(range) {
    const {stepNs} = this.stacks, {from, to} = this.snap(range);
    return this.stacks.weights(Math.round(from / stepNs), Math.round(to / stepNs));
  }
}

/** The entries of groups of cells, put together. */
function sumUp(cells, groupOf, groups) {
  const perGroup = Array.from({length: groups}, () => []);
  for (let cell = 0; cell < groupOf.length; ++cell) perGroup[groupOf[cell]].push(cell);
  const first = new Uint32Array(groups + 1), step = new Uint32Array(cells.step.length), sums = new Float64Array(cells.step.length + 1);
  const weights = new Float64Array(cells.steps), touched = new Uint32Array(cells.steps);
  let size = 0;
  perGroup.forEach((members, group) => {
    let count = 0;
    for (const cell of members) {
      for (let i = cells.first[cell]; i < cells.first[cell + 1]; ++i) {
        const at = cells.step[i];
        if (weights[at] === 0) touched[count++] = at;
        weights[at] += cells.sums[i + 1] - cells.sums[i];
      }
    }
    for (const at of touched.subarray(0, count).sort()) {
      step[size] = at;
      sums[size + 1] = sums[size] + weights[at];
      weights[at] = 0;
      ++size;
    }
    first[group + 1] = size;
  });
  return Object.assign(Object.create(StepWeights.prototype), {stepNs: cells.stepNs, steps: cells.steps, first, step: step.slice(0, size), sums: sums.slice(0, size + 1)});
}
