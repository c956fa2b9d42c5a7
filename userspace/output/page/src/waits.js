// Waits in a profile: how long threads ran and waited for what, where, and which thread ended it. In its stacks a mark says
// behind the functions what was waited for; the waker follows behind that, with its functions from the innermost one on.
import {KINDS} from './profile_data.js';

/** The meaning of each mark, in the order in which people should read them. */
export const WAIT_TEXTS = {
  runnable: 'could run, and had no CPU', monitor: 'lock of an object', lock: 'Lock, ReaderWriterLockSlim', 'task wait': 'Task.Wait, Result: a thread waits for a task',
  semaphore: 'SemaphoreSlim', event: 'events, wait handles, Join', futex: 'a lock of native code', suspended: 'the runtime had stopped its threads',
  socket: 'the network', file: 'a disk', pipe: 'another program', poll: 'one of several descriptors', 'page fault': 'memory that was on a disk', 'child process': 'the end of a process',
  sleep: 'Thread.Sleep', idle: 'for work to come', other: 'another system call',
};
export const RUNNING = 'running';
const BETWEEN_THREADS = new Set(['monitor', 'lock', 'task wait', 'semaphore', 'event', 'futex']);
const MARKS = new Set([KINDS.indexOf('mark'), KINDS.indexOf('unknown')]);  // some formats have no kinds
const MANAGED = new Set(['jit', 'r2r', 'aot', 'inlined']);
const OF_LIBRARIES = /^(System|Microsoft|Interop|Internal)\.|^\[/;

export const isOfWaits = ({about}) => about.view === 'off-cpu' || about.view === 'wall';

/** "monitor" of the frame "[monitor]"; null: it is no such mark. */
function waitKindOf(profile, frame) {
  const name = profile.names[frame];
  if (!MARKS.has(profile.kinds[frame]) || !/^\[.*\]$/.test(name)) return null;
  const text = name.slice(1, -1);
  return Object.hasOwn(WAIT_TEXTS, text) || text.startsWith('waits ') ? text : null;
}

/** "thread owner" of the frame "[woken by thread owner]"; null: it is no such mark. */
function wakerOf(profile, frame) {
  const match = MARKS.has(profile.kinds[frame]) && /^\[woken by (.*)\]$/.exec(profile.names[frame]);
  return match ? match[1] : null;
}

/** For each frame whether it is a mark of the thread that ended a wait; null: the profile has none. */
export function wakerMarks(profile) {
  const marks = Uint8Array.from(profile.names, (_, frame) => (wakerOf(profile, frame) !== null ? 1 : 0));
  return marks.includes(1) ? marks : null;
}

/** For each node the one at or above it that is the first mark with a text, or -1. */
function nodesOfMarks(profile, textOf) {
  const {nodeFrame, nodeParent} = profile;
  const texts = profile.names.map((_, frame) => textOf(profile, frame));
  const marks = new Int32Array(nodeFrame.length).fill(-1);
  for (let node = 0; node < marks.length; ++node) {
    const above = nodeParent[node] >= 0 ? marks[nodeParent[node]] : -1;
    marks[node] = above >= 0 ? above : texts[nodeFrame[node]] !== null ? node : -1;
  }
  return {marks, textAt: (node) => texts[nodeFrame[node]]};
}

/** The program's own frame that is nearest to the first one of a path, else the nearest managed one, else the first; or -1. */
function ownFrame(profile, path) {
  const managed = path.filter((frame) => MANAGED.has(KINDS[profile.kinds[frame]]));
  return managed.find((frame) => !OF_LIBRARIES.test(profile.names[frame])) ?? managed[0] ?? path[0] ?? -1;
}

function framesAbove(profile, node, end = -1) {
  const frames = [];
  for (; node !== end; node = profile.nodeParent[node]) frames.push(profile.nodeFrame[node]);
  return frames;
}

const mostFirst = (map) => [...map.values()].sort((a, b) => b.weight - a.weight);

function addTo(map, key, make, weight) {
  if (!map.has(key)) map.set(key, {...make(), weight: 0});
  const row = map.get(key);
  row.weight += weight;
  return row;
}

/**
 * @param {Profile} profile  with isOfWaits, and no difference
 * @param {(thread: object) => boolean} wanted
 * @returns {{running: number, waited: number, kinds: object[], sites: object[]}} kinds: {kind, frame, weight}, `frame` is that of its mark, or -1;
 *     sites: {kind, frame, weight, betweenThreads, wakers: {thread, frame, weight}[]}, `frame` the method that waits or whose call ended it. Most first.
 */
export function summarizeWaits(profile, wanted = () => true) {
  const waits = nodesOfMarks(profile, waitKindOf), wakes = nodesOfMarks(profile, wakerOf);
  const placeOf = new Map();  // node of a kind's mark -> frame of the method
  const kinds = new Map(), sites = new Map();
  let running = 0, waited = 0;
  for (let cell = 0; cell < profile.cellNode.length; ++cell) {
    if (!wanted(profile.threads[profile.cellThread[cell]])) continue;
    const node = profile.cellNode[cell], weight = profile.cellWeight[cell];
    const mark = node >= 0 ? waits.marks[node] : -1;
    if (mark < 0) {
      running += weight;
      addTo(kinds, RUNNING, () => ({kind: RUNNING, frame: -1}), weight);
      continue;
    }
    waited += weight;
    const kind = waits.textAt(mark);
    addTo(kinds, kind, () => ({kind, frame: profile.nodeFrame[mark]}), weight);
    if (kind === 'idle' || kind === 'runnable' || kind.startsWith('waits ')) continue;
    if (!placeOf.has(mark)) placeOf.set(mark, ownFrame(profile, framesAbove(profile, profile.nodeParent[mark])));
    const frame = placeOf.get(mark);
    const site = addTo(sites, `${kind}/${frame}`, () => ({kind, frame, betweenThreads: BETWEEN_THREADS.has(kind), wakers: new Map()}), weight);
    const waker = wakes.marks[node];
    if (waker < 0) continue;
    const thread = wakes.textAt(waker);
    const by = ownFrame(profile, framesAbove(profile, node, waker).reverse());
    addTo(site.wakers, `${thread}/${by}`, () => ({thread, frame: by}), weight);
  }
  return {running, waited, kinds: mostFirst(kinds), sites: mostFirst(sites).map((site) => ({...site, wakers: mostFirst(site.wakers)}))};
}
