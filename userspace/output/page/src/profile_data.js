// The profile inside the page: JSON. output/html_data.h says what it holds.
import {accountInShort, accountInWords} from './account.js';
import {TreeBuilder, TreeColumns} from './frame_tree.js';
import {inflate} from './packed.js';
import {RecordedTimes} from './recorded_times.js';
import {inert, shorterNames} from './text.js';

export const DATA_VERSION = 1;

/** Kinds of frames as the data numbers them; the last one is made here. */
export const KINDS = ['unknown', 'kernel', 'native', 'jit', 'r2r', 'aot', 'role', 'mark', 'inlined', 'type', 'process'];
/** Kinds of lines as the data numbers them. */
const LINE_KINDS = ['none', 'exact', 'optimised'];
const PROCESS_KIND = KINDS.indexOf('process');
const DOTTED = new Set(['jit', 'r2r', 'aot', 'inlined', 'type', 'unknown']);  // kinds whose names have namespaces

/** @param {string} base64  @returns {Promise<object>} the parsed JSON */
export async function unpack(base64) {
  return JSON.parse(new TextDecoder().decode(await inflate(base64)));
}

/** An account comes from a file that anyone may have written: one that makes no sense is none. */
function readAccount(text) {
  if (!text) return null;
  try {
    const account = JSON.parse(text, (_, value) => (typeof value === 'string' ? inert(value) : value));
    accountInWords(account);
    accountInShort(account);
    return account;
  } catch {
    return null;
  }
}

export class Profile {
  /**
   * @param {object} data  what unpack gave
   * @param {object} times  what unpackTimes gave
   */
  constructor(data, times = {}) {
    if (data.version !== DATA_VERSION) throw new Error(`data of version ${data.version}; this page reads ${DATA_VERSION}`);
    const text = data.strings.map(inert);
    const column = (indexes) => indexes.map((index) => text[index]);
    this.about = data.about;
    this.account = readAccount(data.account);
    this.accountBefore = readAccount(data.account_before);
    /** @type {?import('./significance.js').DiffRule} */
    this.diff = data.diff ?? null;

    this.names = column(data.frames.name);
    this.kinds = Uint8Array.from(data.frames.kind);
    this.modules = column(data.frames.module);
    this.tiers = column(data.frames.tier);
    this.sources = column(data.frames.source);
    this.noiseSelf = data.frames.noise_self ?? [];
    this.noiseTotal = data.frames.noise_total ?? [];
    this.forms = [];

    const nodes = data.nodes.frame.length;
    this.nodeFrame = Int32Array.from(data.nodes.frame);
    this.nodeParent = new Int32Array(nodes);  // -1: the root
    for (let node = 0; node < nodes; ++node) this.nodeParent[node] = node - data.nodes.up[node];

    this.readLines(data, text);
    this.readCode(data);

    const {threads} = data;
    this.threads = threads.tid.map((tid, i) =>
      ({index: i, pid: threads.pid[i], tid, comm: text[threads.comm[i]], name: text[threads.name[i]],
        container: text[threads.container[i]], weight: 0, before: 0}));
    this.cellThread = Int32Array.from(data.cells.thread);
    this.cellNode = new Int32Array(this.cellThread.length);
    this.cellWeight = Float64Array.from(data.cells.weight);
    this.cellBefore = this.diff ? Float64Array.from(data.cells.before) : null;
    for (let cell = 0, node = -1; cell < this.cellNode.length; ++cell) {
      this.cellNode[cell] = node += data.cells.step[cell];
      const thread = this.threads[this.cellThread[cell]];
      thread.weight += this.cellWeight[cell];
      thread.before += this.cellBefore?.[cell] ?? 0;
    }
    this.makeProcesses();
    this.text = (index) => text[index];
    this.frameLanes = data.frames.lane ?? [];
    /** @type {?RecordedTimes} null: no sample has a time */
    this.times = data.times ? new RecordedTimes(this, data.times, times) : null;
    /** @type {?{range: object, base: ?object}} what within() was asked for */
    this.chosen = null;
  }

  /**
   * The same profile with the weights of a part of its time, and of another part to compare with. Its frames, nodes, threads and
   * processes have the same numbers.
   * @param {{range: {from, to}, base: ?{from, to}}} chosen
   * @param {?object} rule  how the two are judged: diff, noiseSelf and noiseTotal
   */
  within(chosen, weights, before = null, rule = null) {
    const part = Object.create(this);
    Object.assign(part, {chosen, whole: this, cellWeight: weights, cellBefore: before, code: new Map()}, rule);
    const byThread = (column) => {
      const {cellThread} = this, sums = new Float64Array(this.threads.length);
      for (let cell = 0; cell < cellThread.length; ++cell) sums[cellThread[cell]] += column[cell];
      return sums;
    };
    const after = byThread(weights), compared = before && byThread(before);
    part.threads = this.threads.map((thread, i) => Object.assign(Object.create(thread), {weight: after[i], before: compared?.[i] ?? 0}));
    const sum = (threads, key) => threads.reduce((total, thread) => total + thread[key], 0);
    part.processes = this.processes.map((process) => {
      const threads = process.threads.map(({index}) => part.threads[index]);
      const own = Object.assign(Object.create(process), {threads, weight: sum(threads, 'weight'), before: sum(threads, 'before')});
      for (const thread of threads) thread.process = own;
      return own;
    });
    return part;
  }

  /** How long its weights are of: of a chosen part its length, so far as that was recorded. */
  durationNs() {
    const {recorded_ns: recorded, duration_ns: duration} = this.about;
    if (!this.chosen) return recorded;
    const {from, to} = this.chosen.range;
    return Math.max(0, Math.min(to, duration) - from);
  }

  /** Where the profile has lines: of each node its line, and what is known of the files. */
  readLines(data, text) {
    /** @type {?{file: string, line: number, kind: string}[]} null: no line is known */
    this.lines = data.lines ? data.lines.file.map((file, i) => ({file: text[file], line: data.lines.line[i], kind: LINE_KINDS[data.lines.kind[i]]})) : null;
    this.nodeLine = data.lines ? Int32Array.from(data.nodes.line) : null;  // an index of lines and one more; 0: not known
    /** @type {Map<string, {url: string, text: string}>} by file */
    this.files = new Map(data.sources?.file.map((file, i) => [text[file], {url: data.strings[data.sources.url[i]], text: data.sources.text[i]}]));
  }

  /** Machine code, where the recording keeps it: bodies by frame, those with most samples first. */
  readCode(data) {
    /** @type {Map<number, {what: string, samples: number, rows: {offset: number, text: string, file: string, line: number, self: number}[]}[]>} */
    this.code = new Map();
    for (const {frame, what, files, ...columns} of data.code ?? []) {
      const rows = columns.offset.map((offset, i) =>
        ({offset, text: inert(columns.text[i]), file: inert(files[columns.file[i] - 1] ?? ''), line: columns.line[i], self: columns.self[i]}));
      const samples = columns.self.reduce((sum, self) => sum + self, 0);
      this.code.set(frame, [...this.code.get(frame) ?? [], {what: inert(what), samples, rows}].sort((a, b) => b.samples - a.samples));
    }
  }

  /** The frame's name, and shorter forms of it. */
  formsOf(frame) {
    return (this.forms[frame] ??= shorterNames(this.names[frame], DOTTED.has(KINDS[this.kinds[frame]])));
  }

  /** The method with its type: what tells it from others in little room. */
  shortName(frame) {
    const forms = this.formsOf(frame);
    return forms[Math.max(0, forms.length - 2)];
  }

  /** The frame that is the same as one of another profile; made, without any stack, when there is none. */
  frameLike(other, frame) {
    const keyOf = (profile, at) => JSON.stringify([profile.names[at], profile.modules[at], profile.kinds[at]]);
    this.frameByKey ??= new Map(this.names.map((_, at) => [keyOf(this, at), at]));
    const key = keyOf(other, frame);
    if (!this.frameByKey.has(key)) {
      this.frameByKey.set(key, this.names.length);
      for (const column of ['names', 'modules', 'tiers', 'sources']) this[column].push(other[column][frame]);
      const kinds = new Uint8Array(this.names.length);
      kinds.set(this.kinds);
      kinds[kinds.length - 1] = other.kinds[frame];
      this.kinds = kinds;
      this.frameCount = this.names.length;
    }
    return this.frameByKey.get(key);
  }

  /** Processes, most weight first; each is a frame as well, behind those of the data. */
  makeProcesses() {
    const byKey = new Map();
    for (const thread of this.threads) {
      const key = `${thread.pid}\n${thread.comm}`;
      if (!byKey.has(key)) byKey.set(key, {pid: thread.pid, comm: thread.comm, container: thread.container, threads: [], weight: 0, before: 0});
      const process = byKey.get(key);
      process.threads.push(thread);
      process.weight += thread.weight;
      process.before += thread.before;
    }
    this.processes = [...byKey.values()].sort((a, b) => b.weight - a.weight);
    const kinds = [...this.kinds];
    this.processes.forEach((process, index) => {
      process.index = index;
      process.label = process.pid ? `${process.comm || 'process'} (${process.pid})` : process.comm || 'unknown process';
      process.frame = this.names.length;
      this.names.push(process.label);
      this.modules.push(process.container);
      this.tiers.push('');
      this.sources.push('');
      kinds.push(PROCESS_KIND);
      for (const thread of process.threads) thread.process = process;
    });
    this.kinds = Uint8Array.from(kinds);
    this.frameCount = this.names.length;
  }

  /**
   * The tree of the stacks of some threads.
   * @param {(thread: object) => boolean} wanted
   * @param {boolean} apart  with several processes, each is a child of the root
   */
  tree(wanted = () => true, apart = true) {
    return this.treeOf(this.nodeFrame, wanted, apart);
  }

  /**
   * The same with frames that are of one line each; spots says which.
   * @returns {{tree: FrameTree, frameOf: (spot: number) => number, lineOf: (spot: number) => number}} lineOf: an index of lines, -1 if it is not known
   */
  lineTree(wanted, apart) {
    // Frames without a line are themselves; those with one follow behind all frames.
    const first = this.frameCount, ids = new Map(), frames = [], lines = [];
    const spots = this.nodeFrame.map((frame, node) => {
      const line = this.nodeLine[node];
      if (line === 0) return frame;
      const key = line * first + frame;
      if (!ids.has(key)) {
        ids.set(key, first + frames.push(frame) - 1);
        lines.push(line - 1);
      }
      return ids.get(key);
    });
    return {
      tree: this.treeOf(spots, wanted, apart),
      frameOf: (spot) => (spot < first ? spot : frames[spot - first]),
      lineOf: (spot) => (spot < first ? -1 : lines[spot - first]),
    };
  }

  treeOf(nodeFrame, wanted, apart) {
    const processes = this.processes.filter((process) => process.threads.some(wanted));
    const isApart = apart && processes.length > 1;
    const nodes = new TreeColumns(this.diff !== null, this.nodeFrame.length + processes.length + 1);
    const rank = new Int32Array(this.threads.length).fill(-1);
    processes.forEach((process, i) => {
      for (const thread of process.threads) if (wanted(thread)) rank[thread.index] = i;
    });
    // Process by process, so that one array of places serves all: place[n] counts if stamp[n] is the process's.
    const {alike, count} = this.alikeBy(nodeFrame), {cellNode, nodeParent, cellWeight, cellBefore} = this;
    const place = new Int32Array(count), stamp = new Int32Array(count).fill(-1);
    const pending = [];
    for (const [process, cells] of this.cellsByRank(rank, processes.length).entries()) {
      const root = isApart ? nodes.append(0, processes[process].frame) : 0, at = isApart ? process : 0;
      for (const cell of cells) {
        let node = cellNode[cell];
        for (; node >= 0 && stamp[alike[node]] !== at; node = nodeParent[node]) pending.push(node);
        let parent = node < 0 ? root : place[alike[node]];
        while (pending.length > 0) {
          const down = pending.pop(), own = alike[down];
          // Another one with the same frames may have come before.
          if (stamp[own] !== at) place[own] = nodes.append(parent, nodeFrame[down]);
          stamp[own] = at;
          parent = place[own];
        }
        nodes.add(parent, cellWeight[cell], cellBefore ? cellBefore[cell] : 0);
      }
    }
    return nodes.build();
  }

  /** For each node a number that it shares with those that have the same frames from the outermost on; and how many numbers there are. */
  alikeBy(nodeFrame) {
    const own = this.whole ?? this;
    if (nodeFrame === own.nodeFrame && own.alike) return own.alike;
    const builder = new TreeBuilder(false, nodeFrame.length + 1), alike = new Int32Array(nodeFrame.length);
    for (let node = 0; node < alike.length; ++node) {
      const above = this.nodeParent[node];
      alike[node] = builder.child(above < 0 ? 0 : alike[above], nodeFrame[node]);
    }
    const found = {alike, count: builder.size};
    if (nodeFrame === own.nodeFrame) own.alike = found;
    return found;
  }

  /** The cells that have weight, of each rank an array. */
  cellsByRank(rank, count) {
    const {cellThread, cellWeight, cellBefore} = this, ends = new Uint32Array(count + 1);
    const rankOf = (cell) => (cellWeight[cell] === 0 && !cellBefore?.[cell] ? -1 : rank[cellThread[cell]]);  // else not in the part of the time
    for (let cell = 0; cell < cellThread.length; ++cell) if (rankOf(cell) >= 0) ++ends[rankOf(cell) + 1];
    for (let at = 0; at < count; ++at) ends[at + 1] += ends[at];
    const cells = new Uint32Array(ends[count]), next = ends.slice();
    for (let cell = 0; cell < cellThread.length; ++cell) if (rankOf(cell) >= 0) cells[next[rankOf(cell)]++] = cell;
    return Array.from({length: count}, (_, at) => cells.subarray(ends[at], ends[at + 1]));
  }
}
