// Profiles for the tests of the page: stacks in, the page's data or a whole page out. The form of the data is that of
// userspace/output/html_data.h; that the program writes it so is proved where its own pages are opened.
import {readFileSync} from 'node:fs';
import {deflateSync, inflateSync} from 'node:zlib';

export const PAGE = new URL('../../userspace/output/page/page.html', import.meta.url);
const LINE_KINDS = ['none', 'exact', 'optimised'];
const LANES = ['Other', '.NET', 'precompiled .NET', 'native', 'kernel', 'garbage collection', 'JIT compiler', 'waiting', 'idle'];
const WAITS = new Set(['waiting', 'idle']);  // frames behind them are the waker's
const EVENT_KINDS = ['pause', 'collection', 'compilation'];
const KINDS = ['unknown', 'kernel', 'native', 'jit', 'r2r', 'aot', 'role', 'mark', 'inlined'];

/** A number generator that gives the same numbers each time. */
export function seeded(seed) {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

export class DataBuilder {
  constructor(about = {}) {
    this.about = {title: 'test', view: 'cpu', unit: 'samples', period_ns: 10101010, start_unix_ns: 0, duration_ns: 1e10, recorded_ns: about?.duration_ns ?? 1e10, host: 'testhost', command: '', creator: 'test', ...about};
    this.strings = [''];
    this.stringIds = new Map([['', 0]]);
    this.frames = {name: [], kind: [], module: [], tier: [], source: []};
    this.frameIds = new Map();
    this.nodes = {up: [], frame: []};
    this.nodeIds = new Map();
    this.nodeLines = [];  // an index of lines and one more, 0 without a line
    this.lines = {file: [], line: [], kind: []};
    this.lineIds = new Map();
    this.sources = {file: [], url: [], text: []};
    this.threads = {pid: [], tid: [], comm: [], name: [], container: []};
    this.cells = new Map();
    this.code = [];
    this.times = [];  // {key of a cell, timeMs, weight}
    this.events = [];
    this.untimed = 0;
  }

  string(text) {
    if (!this.stringIds.has(text)) this.stringIds.set(text, this.strings.push(text) - 1);
    return this.stringIds.get(text);
  }

  /** frame: 'name' or {name, kind, module, tier, source} */
  frame(frame) {
    const {name, kind = 'jit', module = '', tier = '', source = ''} = typeof frame === 'string' ? {name: frame} : frame;
    const key = JSON.stringify([name, kind, module]);
    if (!this.frameIds.has(key)) {
      this.frameIds.set(key, this.frames.name.push(this.string(name)) - 1);
      this.frames.kind.push(KINDS.indexOf(kind));
      this.frames.module.push(this.string(module));
      this.frames.tier.push(this.string(tier));
      this.frames.source.push(this.string(source));
    }
    return this.frameIds.get(key);
  }

  node(parent, frame, line = 0) {
    const key = (line * 2 ** 24 + parent) * 2 ** 24 + frame;
    if (!this.nodeIds.has(key)) {
      const node = this.nodes.frame.push(frame) - 1;
      this.nodes.up.push(node - parent);
      this.nodeLines.push(line);
      this.nodeIds.set(key, node);
    }
    return this.nodeIds.get(key);
  }

  /** frame: as of stack, with a place {file, line, lineKind} or without */
  line({file = '', line = 0, lineKind = 'none'}) {
    if (!line) return 0;
    const key = JSON.stringify([file, line, lineKind]);
    if (!this.lineIds.has(key)) {
      this.lines.file.push(this.string(file));
      this.lines.kind.push(LINE_KINDS.indexOf(lineKind));
      this.lineIds.set(key, this.lines.line.push(line));
    }
    return this.lineIds.get(key);
  }

  /** Facts about a file of source text. */
  source(file, {url = '', text = ''}) {
    this.sources.file.push(this.string(file));
    this.sources.url.push(this.string(url));
    this.sources.text.push(text);
    return this;
  }

  /** A body of a method's machine code; rows: [offset, text, file, line, self]. */
  body(frame, what, rows) {
    const files = [...new Set(rows.map(([, , file]) => file).filter(Boolean))];
    const column = (name, at) => [name, rows.map(at)];
    const columns = Object.fromEntries([column('offset', ([offset]) => offset), column('text', ([, text]) => text), column('file', ([, , file]) => files.indexOf(file) + 1),
      column('line', ([, , , line]) => line), column('self', ([, , , , self]) => self)]);
    this.code.push({frame: this.frame(frame), what, files, ...columns});
    return this;
  }

  thread({pid = 1, tid = 1, comm = 'app', name = 'main', container = ''} = {}) {
    const {threads} = this;
    threads.pid.push(pid);
    threads.comm.push(this.string(comm));
    threads.name.push(this.string(name));
    threads.container.push(this.string(container));
    return threads.tid.push(tid) - 1;
  }

  /** A stack, outermost frame first. */
  stack(frames, weight = 1, thread = 0, before = 0) {
    let node = -1;
    for (const frame of frames) node = this.node(node, this.frame(frame), this.line(frame));
    this.weigh(node, weight, thread, before);
    return this;
  }

  /** A stack that was seen at a time. */
  at(timeMs, frames, weight = 1, thread = 0) {
    let node = -1;
    for (const frame of frames) node = this.node(node, this.frame(frame), 0);
    this.weigh(node, weight, thread);
    this.times.push({key: `${node}/${thread}`, timeMs, weight});
    return this;
  }

  /** kind: of EVENT_KINDS; name, detail: texts */
  event({kind = 'pause', timeMs, durationMs, thread = 0, name = 'gen0 GC', detail = ''}) {
    this.events.push({kind: EVENT_KINDS.indexOf(kind), timeUs: timeMs * 1000, durationUs: durationMs * 1000, thread, name: this.string(name), detail: this.string(detail)});
    return this;
  }

  weigh(node, weight, thread = 0, before = 0) {
    const key = `${node}/${thread}`;
    const cell = this.cells.get(key) ?? {node, thread, weight: 0, before: 0};
    cell.weight += weight;
    cell.before += before;
    this.cells.set(key, cell);
  }

  framesData() {
    if (this.times.length === 0) return this.frames;
    const lane = {unknown: 0, jit: 1, r2r: 2, aot: 2, native: 3, kernel: 4, role: 5}, marks = {'[sleep]': 7, '[idle]': 8};
    return {...this.frames, lane: this.frames.kind.map((kind, i) => (lane[KINDS[kind]] ?? marks[this.strings[this.frames.name[i]]] ?? -1) + 1)};
  }

  /** packedTimes: what pageOf puts into its own place; more.stepMs: of the stacks, more.lanesMs: of lanes that stand apart */
  timesData(cells, more) {
    const {stepMs = 20, lanesMs = 0} = more, lanes = new Map();
    const numbers = new Map(cells.map(({node, thread}, i) => [`${node}/${thread}`, i])), frames = this.framesData();
    const kindAt = (node) => {
      const before = node < 0 ? 0 : kindAt(node - this.nodes.up[node]);
      return node < 0 || WAITS.has(LANES[before - 1]) ? before : frames.lane[this.nodes.frame[node]] || before;
    };
    const laneOf = cells.map(({node, thread}) => {
      const key = `${thread}/${kindAt(node)}`;
      if (!lanes.has(key)) lanes.set(key, lanes.size);
      return lanes.get(key);
    });
    const samples = this.times.map(({key, timeMs, weight}) => ({cell: numbers.get(key), timeMs, weight}));
    const ofLanes = samples.map((sample) => ({...sample, cell: laneOf[sample.cell]}));
    const column = (of) => this.events.map(of);
    const events = {kind: column(({kind}) => kind), time_us: column(({timeUs}, i) => timeUs - (i === 0 ? 0 : this.events[i - 1].timeUs)), duration_us: column(({durationUs}) => durationUs),
      thread: column(({thread}) => thread), name: column(({name}) => name), detail: column(({detail}) => detail)};
    return {
      packedTimes: [packSteps(samples, cells.length, stepMs), ...(lanesMs ? [packSteps(ofLanes, lanes.size, lanesMs)] : [])],
      times: {untimed: this.untimed, lanes: LANES, events},
    };
  }

  /** more: account, account_before, diff; stepMs, lanesMs */
  data(more = {}) {
    if (this.threads.tid.length === 0) this.thread();
    const cells = [...this.cells.values()].sort((a, b) => a.node - b.node || a.thread - b.thread);
    let last = -1;
    const steps = cells.map(({node}) => { const step = node - last; last = node; return step; });
    return {
      version: 1, about: this.about, ...(this.times.length > 0 ? this.timesData(cells, more) : {}), strings: this.strings, frames: this.framesData(), threads: this.threads,
      ...(this.lines.line.length > 0 ? {nodes: {...this.nodes, line: this.nodeLines}, lines: this.lines, sources: this.sources} : {nodes: this.nodes}),
      cells: {step: steps, thread: cells.map(({thread}) => thread), weight: cells.map(({weight}) => weight), ...(more.diff ? {before: cells.map(({before}) => before)} : {})},
      ...(this.code.length > 0 ? {code: this.code} : {}), ...more, ...(more.account ? {account: JSON.stringify(more.account)} : {}),
    };
  }
}

const varintsOf = (numbers) => numbers.flatMap((number) => {
  const bytes = [];
  let rest = number;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
});

/**
 * The samples as output/html_times.h has them.
 * @param {{cell: number, timeMs: number, weight: number}[]} samples
 */
export function packSteps(samples, cells, stepMs) {
  const perCell = Array.from({length: cells}, () => new Map());
  let last = 0;
  for (const {cell, timeMs, weight} of samples) {
    const step = Math.floor(timeMs / stepMs);
    last = Math.max(last, step);
    perCell[cell].set(step, (perCell[cell].get(step) ?? 0) + weight);
  }
  const sorted = perCell.map((steps) => [...steps].sort(([a], [b]) => a - b));
  const order = [...sorted].sort((a, b) => b.length - a.length);
  const steps = order.flatMap((entries) => entries.map(([step], i) => step - (i === 0 ? 0 : entries[i - 1][0])));
  const weights = order.flatMap((entries) => entries.map(([, weight]) => weight));
  return Uint8Array.from(varintsOf([stepMs, last + 1, steps.length, ...sorted.map(({length}) => length), ...steps, ...weights]));
}

/** The page with the data in it. */
export function pageOf(data) {
  const {packedTimes = [], ...rest} = data;
  const pack = (bytes) => deflateSync(bytes).toString('base64');
  return readFileSync(PAGE, 'utf8').replace('@PROFILE@', () => pack(Buffer.from(JSON.stringify(rest))))
    .replace('@LANES@', () => packedTimes.slice(1).map(pack).join('')).replace('@TIMES@', () => packedTimes.slice(0, 1).map(pack).join(''));
}

/** A recording of tests/testdata/page. */
export function recorded(name) {
  return JSON.parse(inflateSync(readFileSync(new URL(`../testdata/page/${name}.json.z`, import.meta.url))));
}

/** Adds the stacks of a profile's data. threadOf: (index of a thread) => its number in the builder; isBefore: as those that are compared with */
export function addStacks(builder, data, threadOf, isBefore = false) {
  const text = (index) => data.strings[index];
  const nodes = [];
  data.nodes.frame.forEach((frame, i) => {
    const up = i - data.nodes.up[i];
    const {name, kind, module, tier, source} = Object.fromEntries(Object.entries(data.frames).map(([key, column]) => [key, column[frame]]));
    const own = builder.frame({name: text(name), kind: KINDS[kind], module: text(module), tier: text(tier), source: text(source)});
    nodes.push(builder.node(up < 0 ? -1 : nodes[up], own));
  });
  let node = -1;
  data.cells.step.forEach((step, i) => {
    node += step;
    const weight = data.cells.weight[i];
    builder.weigh(node < 0 ? -1 : nodes[node], isBefore ? 0 : weight, threadOf(data.cells.thread[i]), isBefore ? weight : 0);
  });
}

/** Two recordings as one comparison. Their threads are told apart by name only. */
export function compared(before, after, rule) {
  const builder = new DataBuilder({...after.about, title: `${before.about.title} \u2192 ${after.about.title}`});
  const threads = new Map();
  for (const [data, isBefore] of [[after, false], [before, true]]) {
    const threadOf = (thread) => {
      const name = data.strings[data.threads.name[thread]];
      if (!threads.has(name)) threads.set(name, builder.thread({pid: 0, tid: 0, comm: data.strings[data.threads.comm[thread]], name}));
      return threads.get(name);
    };
    addStacks(builder, data, threadOf, isBefore);
  }
  return {...builder.data({diff: rule}), account: after.account, account_before: before.account};
}

/** About as real profiles are: new stacks branch off somewhere from those that are there. 50,000 make some 175,000 nodes. */
export function manyStacks(stacks, threadCount = 40, compared = false) {
  const random = seeded(12345);
  const builder = new DataBuilder({title: `${stacks} stacks`});
  for (let i = 0; i < threadCount; ++i) builder.thread({tid: 100 + i, name: i < threadCount / 2 ? '.NET TP Worker' : `worker ${i}`});
  const kinds = ['jit', 'jit', 'jit', 'r2r', 'r2r', 'native', 'kernel'];
  const depth = [];
  while (builder.cells.size < stacks) {
    let node = builder.nodes.frame.length === 0 ? -1 : Math.floor(random() * builder.nodes.frame.length);
    if (node >= 0 && depth[node] > 60) continue;
    for (let more = 1 + Math.floor(random() * 6); more > 0; --more) {
      const type = Math.floor(random() * 900);
      const frame = builder.frame({name: `Shop.Inventory.Type${type}.Method${Math.floor(random() * 9)}`, kind: kinds[type % kinds.length], module: `Lib${type % 20}`, tier: 'OptimizedTier1'});
      const down = builder.node(node, frame);
      depth[down] ??= node < 0 ? 1 : depth[node] + 1;
      node = down;
    }
    const weight = 1 + Math.floor(1 / (random() + 0.01));
    builder.weigh(node, weight, Math.floor(random() * threadCount), compared ? Math.round(weight * (0.8 + 0.4 * random())) : 0);
  }
  return builder;
}

const mark = (name) => ({name: `[${name}]`, kind: 'mark'});

/** A recording of wall time: a lock that a slow thread holds, requests that wait for tasks, and what is in nobody's way. */
export function waitingShop({wakers = true} = {}) {
  const builder = new DataBuilder({view: 'wall', unit: 'microseconds', period_ns: 0});
  const worker = builder.thread({tid: 2, name: '.NET TP Worker'}), slow = builder.thread({tid: 3, name: 'slow one'});
  const wait = (frames, kind, weight, thread, waker = [], who = '') =>
    builder.stack([...frames, mark(kind), ...(wakers && who ? [mark(`woken by ${who}`), ...waker] : [])], weight, thread);
  const add = ['Shop.Main', 'Shop.Cart.Add', 'System.Threading.Monitor.Enter', {name: 'futex_wait', kind: 'kernel'}];
  wait(add, 'monitor', 4_000_000, worker, ['System.Threading.Monitor.Exit', 'Shop.Report.Write', 'Shop.Report.Loop'], 'thread slow one');
  wait(add, 'monitor', 500_000, worker, [], 'an interrupt');
  wait(add, 'monitor', 500_000, worker);
  wait(['Shop.Main', 'Shop.Answer', 'System.Threading.Tasks.Task.Wait'], 'task wait', 9_000_000, worker, ['System.Threading.Tasks.Task.TrySetResult', 'Shop.Look'], 'thread .NET TP Worker');
  wait(['System.Threading.LowLevelLifoSemaphore.Wait'], 'idle', 6_000_000, worker);
  wait(['Shop.Main'], 'runnable', 300_000, worker);
  wait(['Shop.Report.Loop', 'Shop.Report.Write', 'System.Threading.Thread.Sleep'], 'sleep', 2_000_000, slow);
  builder.stack(['Shop.Report.Loop', 'Shop.Report.Write'], 1_000_000, slow);
  return builder.stack([mark('waits shorter than 1ms')], 40_000, worker);
}
