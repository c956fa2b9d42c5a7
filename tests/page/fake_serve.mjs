// A made-up `clrsampler serve` for the tests of its page: the page's files, and answers of the API in the forms that it promises. It is
// as strict as the real one: a parameter that it doesn't know is an error.
//
//   node fake_serve.mjs [PORT]     serves it, to look at the page by hand
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {addStacks, compared, DataBuilder, recorded, seeded} from './page_data.mjs';

const PAGE = new URL('../../userspace/export/page/', import.meta.url);
const FILES = {
  '/': ['index.html', 'text/html; charset=utf-8'], '/assets/app.js': ['built/app.js', 'text/javascript; charset=utf-8'],
  '/assets/app.css': ['built/app.css', 'text/css; charset=utf-8'], '/assets/licences.txt': ['built/licences.txt', 'text/plain; charset=utf-8'],
};
export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: 'self'";
export const HOSTILE = '<img src=x onerror=window.broken=1>\u202e';
const WINDOW = 10_000;

export const PROCESSES = [
  {pid: 4711, comm: 'shop', container: 'shop-web', dotnet: true, cores: 1.3, wave: 0.5, pauses: 0.9},
  {pid: 4812, comm: 'orders', container: 'shop-orders', dotnet: true, cores: 0.6, wave: 0.2, pauses: 0.4,
    labels: {'k8s.pod.name': 'orders-7c9', 'service.name': HOSTILE, 'service.version': '2.1', 'team': 'shop'}},
  {pid: 933, comm: 'postgres', container: 'db', dotnet: false, cores: 0.45, wave: 0.25, pauses: 0},
  {pid: 871, comm: 'nginx', container: 'edge', dotnet: false, cores: 0.2, wave: 0.1, pauses: 0},
  {pid: 5230, comm: HOSTILE, container: `${HOSTILE}"><svg onload=window.broken=1>`, dotnet: true, cores: 0.12, wave: 0.1, pauses: 0.1},
  {pid: 6021, comm: 'mailer', container: 'shop-mail', dotnet: true, cores: 0.1, wave: 0.05, pauses: 0.15},
  {pid: 311, comm: 'journald', container: '', dotnet: false, cores: 0.03, wave: 0.02, pauses: 0},
];

/** The same number for the same words, 0 to 1. */
function chance(...words) {
  let h = 0x811c9dc5;
  for (const c of words.join('/')) h = Math.imul(h ^ c.charCodeAt(0), 0x01000193);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3ca5);
  return ((h ^ (h >>> 13)) >>> 0) / 2 ** 32;
}

export class FakeServe {
  /** options: now (fixed clock), processes, notices, gaps ([{from, to}] in which nothing was recorded), recordings */
  constructor(options = {}) {
    this.start = Date.now();
    this.options = {processes: PROCESSES, notices: [], gaps: [], profile: null, ...options};
    /** Addresses that were asked for, with their parameters. */
    this.requests = [];
    /** path -> {status, body} that is answered instead */
    this.broken = new Map();
    this.server = createServer((request, response) => this.handle(request, response));
  }

  listen(port = 0) {
    return new Promise((resolve) => this.server.listen(port, '127.0.0.1', () => resolve(`http://127.0.0.1:${this.server.address().port}/`)));
  }

  close() {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }

  get now() {
    return this.options.now ?? Date.now();
  }

  handle(request, response) {
    const url = new URL(request.url, 'http://x');
    this.requests.push(request.url);
    const send = (status, type, body, more = {}) => {
      response.writeHead(status, {'Content-Type': type, 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store', ...more});
      response.end(body);
    };
    const file = FILES[url.pathname];
    if (file) return send(200, file[1], readFileSync(new URL(file[0], PAGE)));
    const broken = this.broken.get(url.pathname);
    if (broken) return send(broken.status, 'application/json', typeof broken.body === 'string' ? broken.body : JSON.stringify(broken.body));
    try {
      const answer = this.answer(url.pathname, Object.fromEntries(url.searchParams));
      return send(200, 'application/json', JSON.stringify(answer));
    } catch (error) {
      return send(error.status ?? 500, 'application/json', JSON.stringify({error: error.message, hint: error.hint ?? ''}));
    }
  }

  answer(path, parameters) {
    const sel = ['from', 'to', 'pid', 'comm', 'container', 'thread'];
    const routes = {
      '/api/status': [[], () => this.status()],
      '/api/timeline': [[...sel, 'by', 'points', 'series'], (given) => this.timeline(given)],
      '/api/processes': [sel, (given) => this.processes(given)],
      '/api/lanes': [[...sel, 'points', 'threads', 'method'], (given) => this.lanes(given)],
      '/api/profile': [[...sel, 'view', 'format'], (given) => this.profile(given)],
      '/api/diff': [[...sel, 'base_from', 'base_to', 'view', 'format'], (given) => this.diff(given)],
      '/api/pauses': [[...sel, 'limit'], (given) => this.pausesAnswer(given)],
      '/api/jit': [[...sel, 'limit'], (given) => this.jit(given)],
      '/api/health': [['from', 'to'], (given) => this.health(given)],
      '/api/recordings': [[], () => ({recordings: this.recordings()})],
    };
    const recording = /^\/api\/recordings\/([^/]+)$/.exec(path);
    const route = recording ? [['format'], () => this.recording(decodeURIComponent(recording[1]))] : routes[path];
    if (!route) throw refusal(404, `There is no ${path}.`, 'The page is at /.');
    const [known, act] = route;
    const strange = Object.keys(parameters).find((name) => !known.includes(name));
    if (strange) throw refusal(400, `There is no parameter ${strange}.`, `Known are ${known.join(', ')}.`);
    return act(parameters);
  }

  // --- what happened on the made-up host ---------------------------------------------------------------------------------------

  range({from = '-5m', to = 'now'}) {
    const at = (text) => {
      if (text === 'now') return this.now;
      const relative = /^-(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(text);
      if (relative) return this.now - Number(relative[1]) * {s: 1e3, m: 6e4, h: 36e5, d: 864e5}[relative[2]];
      if (!/^\d+(\.\d+)?$/.test(text)) throw refusal(400, `"${text}" is no time.`, 'Unix seconds, RFC 3339, now, or -5m.');
      return Math.round(Number(text) * 1000);
    };
    const range = {from: at(from), to: at(to)};
    if (!(range.from < range.to)) throw refusal(400, 'The range ends before it begins.', 'from comes before to.');
    return range;
  }

  wanted({pid, container}) {
    return this.options.processes.filter((one) => (pid === undefined || one.pid === Number(pid)) && (container === undefined || one.container === container));
  }

  processes(given) {
    return {processes: this.wanted(given).map(({pid, comm, container, dotnet, cores, labels = {}}) => ({pid, comm, container, runtime: dotnet ? '10.0.14' : null, labels, cores,
      pause_ms: 0, jit_ms: 0, alloc_bytes: 0, wait_ms: 0}))};
  }

  isCovered(time) {
    return time < this.now && !this.options.gaps.some(({from, to}) => time >= from && time < to);
  }

  cores({pid, cores, wave}, time) {
    const slow = Math.sin((time / 60_000) * 0.9 + pid), fast = chance(pid, Math.floor(time / WINDOW)) - 0.5;
    const burst = chance('burst', pid, Math.floor(time / 45_000)) > 0.88 ? 2.2 : 1;
    return Math.max(0, cores * burst + wave * (0.6 * slow + 0.8 * fast));
  }

  /** Those that begin in the range. */
  pauses(range, processes) {
    const pauses = [];
    for (const one of processes) {
      for (let second = Math.floor(range.from / 1000); one.pauses > 0 && second * 1000 < range.to; ++second) {
        if (chance('pause', one.pid, second) > one.pauses * 0.12) continue;
        const t = second * 1000 + Math.floor(1000 * chance('ms', one.pid, second));
        if (t < range.from || t >= range.to || !this.isCovered(t)) continue;
        const weight = chance('long', one.pid, second), generation = weight > 0.9 ? 2 : weight > 0.6 ? 1 : 0;
        const suspend = 0.05 * 10 ** (2.6 * chance('suspend', one.pid, second) ** 3);
        const kind = generation < 2 ? 'blocking' : chance('kind', one.pid, second) > 0.5 ? 'background-final' : 'background-initial';
        pauses.push({
          t, pid: one.pid, comm: one.comm, container: one.container, kind, reason: 'GC', gc_reason: generation === 2 ? 'induced' : 'small object allocation',
          generation, gc_index: second % 10_000, induced: generation === 2, pause_ms: suspend + 0.4 * 10 ** (2.6 * weight ** 2), suspend_ms: suspend, tid: one.pid + 7, thread: '.NET TP Worker',
          culprits: suspend > 1 ? [{method: 'Shop.Text.Parser.Scan(System.String)', tid: one.pid + 9, delay_ms: suspend}, {method: 'memmove', tid: one.pid + 12, delay_ms: suspend / 3}] : [],
        });
      }
    }
    return pauses;
  }

  status() {
    return {
      version: '0.8.0', host: 'shop-host-3', cpus: 4, frequency_hz: 19, started: this.now - 9 * 864e5, now: this.now, oldest: this.now - 9 * 864e5, newest: this.now - 4000, window_ms: WINDOW,
      store: {bytes: 311_427_072, max_bytes: 2 ** 30, windows: 8640, minutes: 12_960, hours: 216}, notices: this.options.notices,
    };
  }

  timeline(given) {
    const {from, to} = this.range(given);
    const step = Math.max(WINDOW, Math.ceil((to - from) / Number(given.points ?? 120) / WINDOW) * WINDOW);
    const begin = Math.floor(from / step) * step, steps = Math.max(1, Math.ceil((to - begin) / step));
    const processes = this.wanted(given);
    const groups = new Map();
    for (const one of processes) {
      const key = given.by === 'container' ? one.container : one.pid;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(one);
    }
    const covered = Array.from({length: steps}, (_, i) => this.isCovered(begin + i * step));
    const pauses = this.pauses({from: begin, to: begin + steps * step}, processes);
    const column = (value) => covered.map((is, i) => (is ? value(begin + i * step) : 0));
    const sums = new Map();  // of pauses, by process, step and field
    const keyOf = (pid, time, field) => `${pid}/${Math.floor((time - begin) / step)}/${field}`;
    for (const one of pauses) for (const field of ['pause_ms', 'suspend_ms']) sums.set(keyOf(one.pid, one.t, field), (sums.get(keyOf(one.pid, one.t, field)) ?? 0) + one[field]);
    const sumOf = (members, field, time) => members.reduce((sum, {pid}) => sum + (sums.get(keyOf(pid, time, field)) ?? 0), 0);
    const series = [...groups.values()].map((members) => ({
      ...(given.by === 'container' ? {label: members[0].container, pid: null, container: ''} : {label: members[0].comm, pid: members[0].pid, container: members[0].container}),
      dotnet: members.some(({dotnet}) => dotnet),
      cores: column((time) => members.reduce((sum, one) => sum + this.cores(one, time), 0)),
      pause_ms: column((time) => sumOf(members, 'pause_ms', time)), suspend_ms: column((time) => sumOf(members, 'suspend_ms', time)),
      jit_ms: column((time) => members.reduce((sum, one) => sum + (one.dotnet ? step * 0.004 * one.cores * chance('jit', one.pid, time) ** 4 : 0), 0)),
      wait_ms: column((time) => members.reduce((sum, one) => sum + (one.dotnet ? step * 3 * chance('wait', one.pid, time) : 0), 0)),
      alloc_bytes: column((time) => members.reduce((sum, one) => sum + (one.dotnet ? Math.round(step * 1e5 * one.cores * chance('alloc', one.pid, time)) : 0), 0)),
    }));
    const threads = (state, each) => ({state, ms: column((time) => processes.reduce((sum, one) => sum + each(one, time), 0))});
    const states = [threads('running', (one, time) => step * this.cores(one, time)), threads('monitor', (one, time) => (one.dotnet ? step * 2 * chance('lock', one.pid, time) : 0)),
      threads('task wait', (one, time) => (one.dotnet ? step * chance('task', one.pid, time) : 0)), threads('idle', () => step * 40)];
    const most = Number(given.series ?? 12);
    if (series.length > most) {
      const others = series.splice(most - 1);
      const sum = (field) => covered.map((_, i) => others.reduce((all, one) => all + one[field][i], 0));
      series.push({label: '[others]', pid: null, container: '', dotnet: false, ...Object.fromEntries(['cores', 'pause_ms', 'suspend_ms', 'jit_ms', 'alloc_bytes', 'wait_ms'].map((field) => [field, sum(field)]))});
    }
    const longest = pauses.sort((a, b) => b.pause_ms - a.pause_ms).slice(0, this.options.mostPauses ?? 200).sort((a, b) => a.t - b.t);
    return {begin, step_ms: step, steps, covered, covered_ms: covered.map((is) => (is ? step : 0)), series, states: this.options.noWaits ? [] : states, pauses: longest};
  }

  /** Two threads for each process; those of .NET collect garbage now and then, and wait. */
  lanes(given) {
    const {from, to} = this.range(given);
    const step = Math.max(WINDOW, Math.ceil((to - from) / Number(given.points ?? 360) / WINDOW) * WINDOW);
    const begin = Math.floor(from / WINDOW) * WINDOW, steps = Math.max(1, Math.ceil((to - begin) / step));
    const states = ['Other', '.NET', 'precompiled .NET', 'native', 'kernel', 'garbage collection', 'JIT compiler', 'waiting', 'idle'];
    const matches = given.method === undefined ? 1 : 'shop.burst'.includes(given.method.toLowerCase()) ? 0.5 : 0;
    const all = this.wanted(given).flatMap((one) => [0.7, 0.3].map((part, i) => {
      const us = (state, share) => {
        const times = Array.from({length: steps}, (_, at) => begin + at * step), ran = (time) => Math.round(1e3 * step * this.cores(one, time) * part * share * matches);
        const at = times.map((time, index) => [index, this.isCovered(time) ? ran(time) : 0]).filter(([, value]) => value > 0);
        return {state, step: at.map(([index]) => index), us: at.map(([, value]) => value)};
      };
      const lanes = (one.dotnet ? [us(1, 0.8), us(5, 0.2), ...(this.options.noWaits ? [] : [us(8, 0.5)])] : [us(3, 0.6), us(4, 0.4)]).filter(({us: values}) => values.length > 0);
      const ms = lanes.reduce((sum, lane) => sum + lane.us.reduce((a, b) => a + b, 0), 0) / 1e3;
      return {thread: {pid: one.pid, comm: one.comm, container: one.container, tid: one.pid + 7 * i, name: i === 0 ? one.comm : '.NET TP Worker', ms}, lanes};
    })).filter(({thread}) => thread.ms > 0 && (given.thread === undefined || given.thread === String(thread.tid))).sort((a, b) => b.thread.ms - a.thread.ms);
    const most = Math.min(Number(given.threads ?? 12), this.options.mostLanes ?? 100), own = all.slice(0, most), rest = all.slice(most);
    if (rest.length > 0) own.push({thread: {pid: null, comm: '', container: '', tid: 0, name: '', ms: rest.reduce((sum, {thread}) => sum + thread.ms, 0)}, lanes: rest[0].lanes});
    return {
      begin, step_ms: step, steps, covered: Array.from({length: steps}, (_, i) => this.isCovered(begin + i * step)), states, others: rest.length,
      threads: own.map(({thread}) => thread), lanes: own.flatMap(({lanes}, thread) => lanes.map((lane) => ({thread, ...lane}))),
    };
  }

  isRecorded({from, to}) {
    for (let time = from; time < to; time += WINDOW) if (this.isCovered(time)) return true;
    return false;
  }

  profile(given) {
    this.checkView(given);
    const range = this.range(given);
    if (this.options.profile) return this.options.profile(given, range);
    return this.profileBuilder(given, range).data();
  }

  profileBuilder(given, range) {
    const seconds = (range.to - range.from) / 1000;
    const builder = new DataBuilder({title: 'shop-host-3', view: given.view ?? 'cpu', period_ns: 52_631_579, start_unix_ns: range.from * 1e6, duration_ns: seconds * 1e9, host: 'shop-host-3'});
    if (!this.isRecorded(range)) return builder;
    // As a server's, frames have other numbers in the answer for another range.
    const processes = seconds < 120 ? this.wanted(given).reverse() : this.wanted(given);
    for (const one of processes) {
      const weight = Math.ceil(this.cores(one, range.from) * seconds * 19);
      const thread = builder.thread({pid: one.pid, tid: one.pid + 1, comm: one.comm, name: 'main', container: one.container});
      const main = `${one.comm}.Program.Main`;
      builder.stack([main, 'Shop.Data.Load', {name: 'Shop.Text.Parser.Parse', module: 'Shop.Text', tier: 'OptimizedTier1', source: 'jitdump'}], Math.ceil(weight * 0.5), thread);
      builder.stack([main, 'Shop.Data.Save', {name: 'do_syscall_64', kind: 'kernel'}], Math.ceil(weight * 0.3), thread);
      builder.stack([main, {name: HOSTILE, kind: 'native'}], Math.ceil(weight * 0.2), thread);
    }
    return builder;
  }

  diff(given) {
    this.checkView(given);
    if (!given.base_from || !given.base_to) throw refusal(400, 'A comparison needs base_from and base_to.', '');
    const before = this.profile({...given, from: given.base_from, to: given.base_to}), after = this.profile(given);
    const sum = ({cells}) => cells.weight.reduce((all, weight) => all + weight, 0);
    return compared(before, after, {scale: sum(after) / Math.max(1, sum(before)), all: sum(after) + sum(before), self: null, total: null, stack: null, tested: false});
  }

  checkView({view = 'cpu', format}) {
    if (!['cpu', 'jit', 'pause', 'suspend-delay', 'alloc', 'off-cpu'].includes(view)) throw refusal(400, `There is no view ${view}.`, 'Views are cpu, jit, pause, suspend-delay, alloc, off-cpu.');
    if (format !== 'page') throw refusal(400, `There is no format ${format}.`, '');
  }

  pausesAnswer(given) {
    const pauses = this.pauses(this.range(given), this.wanted(given)).sort((a, b) => b.pause_ms - a.pause_ms);
    const kinds = {};
    for (const {kind} of pauses) kinds[kind] = (kinds[kind] ?? 0) + 1;
    const sum = (field) => pauses.reduce((all, one) => all + one[field], 0);
    return {count: pauses.length, pause_ms: sum('pause_ms'), suspend_ms: sum('suspend_ms'), by_kind: kinds, pauses: pauses.slice(0, Number(given.limit ?? 200))};
  }

  jit(given) {
    this.range(given);
    const random = seeded(7);
    const methods = this.wanted(given).filter(({dotnet}) => dotnet).flatMap((one) => Array.from({length: 30}, (_, i) => {
      const total = 120 / (i + 1) + random();
      return {method: i === 3 ? HOSTILE : `Shop.Inventory.Type${i}.Method${Math.floor(random() * 9)}(System.Int32)`, tier: i % 3 === 0 ? 'QuickJitted' : 'OptimizedTier1', pid: one.pid, comm: one.comm, container: one.container,
        count: 1 + Math.floor(random() * 40), total_ms: total, longest_ms: total * random(), bytes: Math.floor(100 + random() * 9000)};
    })).sort((a, b) => b.total_ms - a.total_ms);
    return {count: methods.reduce((all, {count}) => all + count, 0), total_ms: methods.reduce((all, one) => all + one.total_ms, 0), methods: methods.slice(0, Number(given.limit ?? 200))};
  }

  health(given) {
    const range = this.range(given);
    let covered = 0;
    for (let time = range.from; time < range.to; time += 1000) if (this.isCovered(time)) covered += 1000;
    const samples = Math.round((covered / 1000) * 4 * 19 * 0.65);
    return {
      covered_ms: covered, samples: {expected: Math.round(samples * 1.002), taken: samples, written: samples}, lost: {ring_full: this.options.lost ?? 0},
      frames: {managed: {named: 991, unnamed: 4}, native: {named: 830, unnamed: 22}, kernel: {named: 640, unnamed: 0}}, stacks: {complete: 9870, truncated: 4, broken: 60},
      own: {cpu_seconds: 0.008 * (covered / 1000), peak_rss_bytes: 78_200_000, bpf_map_bytes: 16_800_000},
      rates: [{t: range.from, hz: 19}, {t: range.from + WINDOW, hz: 19}], notice_counts: {'no-perf-map': 2}, notices: ['mailer (6021): names of methods come from memory; start it with DOTNET_PerfMapEnabled=3 for more.'],
    };
  }

  recordings() {
    const at = Math.floor((this.now - 90_000) / WINDOW) * WINDOW;
    return this.options.recordings ?? [
      {id: 'pause-2', trigger: 'pause>100ms', t: at + 4000, from: at - 30_000, to: at + 30_000, pid: 4711, comm: 'shop', value: 'a pause of 163 ms', bytes: 1_830_211, files: ['pause-2.json']},
      {id: 'cpu 1/<x>', trigger: 'cpu>80% for 10s', t: at - 3_600_000, from: at - 3_630_000, to: at - 3_570_000, pid: null, comm: '', value: `87 % ${HOSTILE}`, bytes: 2_100_000, files: ['cpu-1.json']},
    ];
  }

  recording(id) {
    const found = this.recordings().find((one) => one.id === id);
    if (!found) throw refusal(404, `There is no flight recording ${id}.`, 'It may have been removed to make room for newer ones.');
    return this.options.profile?.({view: 'cpu'}, found) ?? this.profileBuilder({pid: found.pid ?? undefined}, found).stack(['Shop.Recorded.OnlyHere'], 50, 0).data();
  }
}

function refusal(status, message, hint) {
  return Object.assign(new Error(message), {status, hint});
}

/** Real stacks, for pictures: two programs, one of which goes another way from `change` on. */
export function realProfiles(change) {
  const [web, small] = [recorded('web'), recorded('web_small_heap')];
  return ({pid}, {from, to}) => {
    const builder = new DataBuilder({title: 'shop-host-3', period_ns: 52_631_579, start_unix_ns: from * 1e6, duration_ns: (to - from) * 1e6, host: 'shop-host-3'});
    for (const [own, data] of [[PROCESSES[0], from < change ? web : small], [PROCESSES[1], web]]) {
      if (pid !== undefined && Number(pid) !== own.pid) continue;
      const text = (column, thread) => data.strings[data.threads[column][thread]];
      const threads = data.threads.tid.map((tid, i) => builder.thread({pid: own.pid, tid, comm: own.comm, container: own.container, name: text('name', i) === text('comm', i) ? own.comm : text('name', i)}));
      addStacks(builder, data, (thread) => threads[thread]);
    }
    return builder.data();
  };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const now = Date.now();
  const fake = new FakeServe({gaps: [{from: now - 1000_000, to: now - 900_000}]});
  console.log(await fake.listen(Number(process.argv[2] ?? 8404)));
}
