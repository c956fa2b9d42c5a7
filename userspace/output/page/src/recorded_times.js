// When each stack had samples, and what the runtime did when. output/html_times.h says how the times are packed.
//
// For each step of time it knows which cells of the profile (a stack of a thread) have weight in it.
import {inflate} from './packed.js';
import {CellSteps, StepEntries} from './step_weights.js';

/** Kinds of events as the data numbers them. */
const EVENT_KINDS = ['pause', 'collection', 'compilation'];

/** Kinds of work that are none. The frames behind them on a stack are the waker's. */
const WAITS = new Set(['waiting', 'idle']);

/**
 * @param {string} lanes  of the page's element; empty where those of the stacks are fine enough
 * @param {() => Promise<string>} stacks  the same, which stands behind the page's script
 * @returns {Promise<{stacks: ?Uint8Array, lanes: ?Uint8Array, later: ?(() => Promise<Uint8Array>)}>} where lanes stand apart, the stacks
 *     are so many that they come later
 */
export async function unpackTimes(lanes, stacks) {
  if (lanes !== '') return {stacks: null, lanes: await inflate(lanes), later: async () => inflate(await stacks())};
  const text = await stacks();
  return {stacks: text === '' ? null : await inflate(text), lanes: null, later: null};
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
    /** @type {?StepEntries} null: not yet, or without hasStacks never: no step was coarse enough for this profile */
    this.stacks = stacks && new StepEntries(stacks, profile.cellNode.length);
    /** @type {?() => Promise<void>} until it was called: brings the stacks */
    this.load = later && (() => {
      this.load = null;
      return later().then((bytes) => { this.stacks = new StepEntries(bytes, profile.cellNode.length); });
    });
    this.hasStacks = stacks !== null || later !== null;
    /** of groups, by the second or finer */
    this.groupSteps = lanes ? CellSteps.unpack(lanes, this.groups.length) : this.stacks && this.stacks.sumUp(this.groupOf, this.groups.length);
    this.readEvents(profile, data.events);
    const known = this.groupSteps ?? this.stacks;
    this.durationNs = known ? Math.max(known.steps * known.stepNs, profile.about.duration_ns) : 0;
  }

  /** Groups of cells: of one thread, at one kind of work. In the order in which the cells come to them, as the program numbers them. */
  makeLanes(profile) {
    const {nodeFrame, nodeParent, cellNode, cellThread} = profile;
    const kinds = new Uint8Array(nodeFrame.length);
    for (let node = 0; node < kinds.length; ++node) {
      const before = nodeParent[node] >= 0 ? kinds[nodeParent[node]] : 0;
      kinds[node] = WAITS.has(this.laneTexts[before - 1]) ? before : profile.frameLanes[nodeFrame[node]] || before;
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
    const {stepNs} = this.stacks;
    const first = Math.floor(from / stepNs + 1e-6);  // perhaps behind the last sample
    return {from: first * stepNs, to: Math.max(first + 1, Math.ceil(to / stepNs - 1e-6)) * stepNs};
  }

  /** Weight of each cell of the profile in a range. */
  weightsIn(range) {
    const {stepNs} = this.stacks, {from, to} = this.snap(range);
    return this.stacks.weights(Math.round(from / stepNs), Math.round(to / stepNs));
  }
}
