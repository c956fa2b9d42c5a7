// The timeline's pure parts: packed times, ranges, the map, lanes, keys, the address, and how two ranges are judged. Run by
// html_page_test.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {cellAt, endOf, gridOf, mapKey, mapValues, rectanglesOf, strongest, timeOf} from '../../userspace/output/page/src/heat_map.js';
import {laneColumns, rankedThreads, sharesAt} from '../../userspace/output/page/src/lanes.js';
import {Profile} from '../../userspace/output/page/src/profile_data.js';
import {chanceBeyond, criticalErrors, rangeRule} from '../../userspace/output/page/src/range_diff.js';
import {isSignificant} from '../../userspace/output/page/src/significance.js';
import {StepEntries} from '../../userspace/output/page/src/step_weights.js';
import {clockText, isComparing, readTimeState, START, stepBack, writeTimeState} from '../../userspace/output/page/src/time_state.js';
import {DataBuilder, packSteps, seeded} from './page_data.mjs';

const MS = 1e6, SECOND = 1e9;
const everybody = () => true;

function profileOf(builder, more = {}) {
  const {packedTimes, ...data} = builder.data(more);
  const [first, lanes = null] = packedTimes;
  const profile = new Profile(data, lanes ? {lanes, later: async () => first} : {stacks: first});
  return profile;
}

/** 3,000 samples over 100 seconds on four threads. */
function busy(seed = 3) {
  const random = seeded(seed), builder = new DataBuilder({duration_ns: 100 * SECOND, period_ns: 10 * MS}), samples = [];
  for (let i = 0; i < 4; ++i) builder.thread({pid: 7, tid: 7 + i, name: `worker ${i}`});
  for (let i = 0; i < 3000; ++i) {
    const frames = ['Main', `A${Math.floor(random() * 5)}`, {name: `B${Math.floor(random() * 20)}`, kind: random() < 0.5 ? 'native' : 'kernel'}];
    const sample = {timeMs: Math.floor(random() * 100_000), frames, weight: 1 + Math.floor(random() * 3), thread: Math.floor(random() * 4)};
    samples.push(sample);
    builder.at(sample.timeMs, frames, sample.weight, sample.thread);
  }
  return {builder, samples};
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const within = (samples, from, to) => samples.filter(({timeMs}) => timeMs >= from && timeMs < to);

test('packed steps are read back, whatever the size of the numbers', () => {
  const samples = [{cell: 2, timeMs: 0, weight: 1}, {cell: 2, timeMs: 5_000_000, weight: 2 ** 40}, {cell: 0, timeMs: 40, weight: 300}];
  const steps = new StepEntries(packSteps(samples, 3, 20), 3);
  assert.deepEqual([...steps.weights(0, 3)], [300, 0, 1]);
  assert.deepEqual([...steps.weights(3, 250_001)], [0, 0, 2 ** 40]);
  assert.equal(steps.stepNs, 20 * MS);
});

test('damaged times are an error, and never a wrong profile', () => {
  const bytes = packSteps([{cell: 0, timeMs: 0, weight: 1}, {cell: 1, timeMs: 40, weight: 3}], 2, 20);
  assert.throws(() => new StepEntries(bytes.subarray(0, bytes.length - 1), 2));
  assert.throws(() => new StepEntries(bytes, 3));
  const much = Uint8Array.from(bytes);
  much[2] = 120;  // claims that it has more entries
  assert.throws(() => new StepEntries(much, 2));
});

test('the stacks of a range are those of its samples', () => {
  const {builder, samples} = busy();
  const profile = profileOf(builder);
  for (const [from, to] of [[0, 100_000], [20, 40], [12_340, 50_000], [99_980, 100_000]]) {
    const part = profile.within({range: {from: from * MS, to: to * MS}, base: null}, profile.times.weightsIn({from: from * MS, to: to * MS}));
    const expected = within(samples, from, to);
    assert.equal(part.tree().total[0], sum(expected.map(({weight}) => weight)));
    const byThread = part.threads.map(({weight}) => weight);
    assert.deepEqual(byThread, [0, 1, 2, 3].map((thread) => sum(expected.filter((one) => one.thread === thread).map(({weight}) => weight))));
    const tree = part.tree((thread) => thread.index === 2), leaf = tree.frame.findIndex((frame) => profile.names[frame] === 'A3');
    if (leaf > 0) assert.equal(tree.total[leaf], sum(expected.filter((one) => one.thread === 2 && one.frames[1] === 'A3').map(({weight}) => weight)));
  }
  assert.equal(profile.tree().total[0], sum(samples.map(({weight}) => weight)), 'the profile itself stays whole');
});

test('a range grows to the steps that are known', () => {
  const {builder} = busy();
  const {times} = profileOf(builder, {stepMs: 1000});
  assert.deepEqual(times.snap({from: 1.5 * SECOND, to: 2.1 * SECOND}), {from: SECOND, to: 3 * SECOND});
  assert.deepEqual(times.snap({from: 2 * SECOND, to: 3 * SECOND}), {from: 2 * SECOND, to: 3 * SECOND});
  const behind = {from: 200 * SECOND, to: 210 * SECOND};  // the last sample is at 100 s
  assert.deepEqual(times.snap(behind), behind);
  assert.equal(sum([...times.weightsIn(behind)]), 0);
});

test('lanes that stand apart are as fine as they are, and stacks come later', async () => {
  const {builder, samples} = busy();
  const profile = profileOf(builder, {stepMs: 10_000, lanesMs: 1000});
  const {times} = profile;
  assert.equal(times.stacks, null);
  assert.ok(times.hasStacks);
  const grid = gridOf({from: 0, to: 100 * SECOND}, times.groupSteps.stepNs);
  const values = mapValues(profile, times, grid, {colour: 'samples', wanted: everybody, flags: null});
  assert.equal(values[Math.round(cellAt(grid, 42 * SECOND))], sum(within(samples, 42_000, 43_000).map(({weight}) => weight)));
  await times.load();
  assert.equal(sum([...times.weightsIn({from: 10 * SECOND, to: 20 * SECOND})]), sum(within(samples, 10_000, 20_000).map(({weight}) => weight)));
});

test('a map of seconds has cells of 20 ms, one of a day cells of a second', () => {
  const short = gridOf({from: 0, to: 30 * SECOND}, 20 * MS);
  assert.deepEqual([short.columnNs, short.cellNs, short.columns, short.rows], [SECOND, 20 * MS, 30, 50]);
  const day = gridOf({from: 0, to: 86_400 * SECOND}, SECOND);
  assert.deepEqual([day.columnNs, day.cellNs, day.columns, day.rows], [60 * SECOND, SECOND, 1440, 60]);
  const week = gridOf({from: 0, to: 7 * 86_400 * SECOND}, SECOND);
  assert.deepEqual([week.columnNs, week.cellNs, week.columns], [3600 * SECOND, 60 * SECOND, 168]);
  const window = gridOf({from: 0, to: 70 * SECOND}, 10.000012 * SECOND);
  assert.deepEqual([window.columns, window.rows], [2, 6], 'windows of a corrected clock are a little longer');
  const coarse = gridOf({from: 0, to: 30 * SECOND}, SECOND);
  assert.deepEqual([coarse.columnNs, coarse.cellNs], [60 * SECOND, SECOND]);
  const zoomed = gridOf({from: 61.5 * SECOND, to: 63 * SECOND}, 20 * MS);
  assert.deepEqual([zoomed.from, endOf(zoomed)], [61 * SECOND, 63 * SECOND]);
});

test('cells have the weights of their time, of whom is wanted', () => {
  const {builder, samples} = busy();
  const profile = profileOf(builder), grid = gridOf({from: 10 * SECOND, to: 70 * SECOND}, 20 * MS);
  const wanted = (thread) => thread.index === 1;
  const values = mapValues(profile, profile.times, grid, {colour: 'samples', wanted, flags: null});
  for (let cell = 0; cell < values.length; ++cell) {
    const from = timeOf(grid, cell) / MS;
    assert.equal(values[cell], sum(within(samples, from, from + 20).filter(({thread}) => thread === 1).map(({weight}) => weight)));
  }
  const cpu = mapValues(profile, profile.times, grid, {colour: 'cpu', wanted, flags: null});
  assert.ok(cpu.every((value, cell) => Math.abs(value - values[cell] / 2) < 1e-9), '10 ms of 20');
  const flags = Uint8Array.from(profile.names, (name) => (name === 'A2' ? 1 : 0));
  const found = mapValues(profile, profile.times, grid, {colour: 'search', wanted: everybody, flags});
  assert.equal(sum([...found]), sum(within(samples, 10_000, 70_000).filter(({frames}) => frames[1] === 'A2').map(({weight}) => weight)));
});

test('pauses colour the cells that they go over', () => {
  const {builder} = busy();
  builder.event({timeMs: 1010, durationMs: 20}).event({kind: 'collection', timeMs: 1030, durationMs: 0});
  const profile = profileOf(builder), grid = gridOf({from: 0, to: 100 * SECOND}, 20 * MS);
  const values = mapValues(profile, profile.times, grid, {colour: 'pauses', wanted: everybody, flags: null});
  assert.deepEqual([...values.subarray(49, 53)].map((value) => Number(value.toFixed(6))), [0, 0.5, 0.5, 0]);
  assert.equal(strongest(values), 0.5);
  builder.event({timeMs: 1000, durationMs: 20, thread: 0}).event({timeMs: 1000, durationMs: 20, thread: 1});
  const both = profileOf(builder), pausesOf = (wanted) => mapValues(both, both.times, grid, {colour: 'pauses', wanted, flags: null});
  assert.equal(Number(pausesOf(everybody)[50].toFixed(6)), 1, 'two pauses at once are no more than one');
  assert.equal(strongest(pausesOf(({pid}) => pid === -1)), 0, 'pauses of other processes do not count');
  assert.equal(strongest(new Float64Array(10)), 0);
});

test('a range is at most three rectangles of the map', () => {
  const grid = gridOf({from: 0, to: 10 * SECOND}, 20 * MS);
  const cells = (from, to) => rectanglesOf(grid, {from: from * SECOND, to: to * SECOND});
  assert.deepEqual(cells(1, 3), [{column: 1, row: 0, columns: 2, rows: 50}]);
  assert.deepEqual(cells(1.5, 1.7), [{column: 1, row: 25, columns: 1, rows: 10}]);
  assert.deepEqual(cells(1.5, 4.2), [{column: 1, row: 25, columns: 1, rows: 25}, {column: 2, row: 0, columns: 2, rows: 50}, {column: 4, row: 0, columns: 1, rows: 10}]);
  assert.deepEqual(cells(20, 30), []);
  const random = seeded(5);
  for (let i = 0; i < 200; ++i) {
    const [from, to] = [Math.floor(random() * 500), Math.floor(random() * 500)].sort((a, b) => a - b);
    assert.equal(sum(cells(from / 50, to / 50).map(({columns, rows}) => columns * rows)), to - from);
  }
});

test('lanes say what each thread was at', () => {
  const builder = new DataBuilder({duration_ns: 10 * SECOND, period_ns: 10 * MS});
  const one = builder.thread({tid: 1, name: 'one'}), two = builder.thread({tid: 2, name: 'two'});
  for (let ms = 0; ms < 1000; ms += 10) builder.at(ms, ['Main', {name: 'write', kind: 'kernel'}], 1, one);
  for (let ms = 5000; ms < 5500; ms += 10) builder.at(ms, ['Main', {name: '[gc gen0]', kind: 'role'}], 1, two);
  for (let ms = 5500; ms < 6000; ms += 10) builder.at(ms, ['Main', {name: '[a mark]', kind: 'mark'}], 1, two);
  const profile = profileOf(builder);
  assert.deepEqual(rankedThreads(profile), [0, 1]);
  const lanes = laneColumns(profile.times, [one, two], {from: 0, to: 10 * SECOND}, 10, 10 * MS);
  const texts = (thread, column) => sharesAt(profile.times, lanes.get(thread), column).map(({text, weight}) => `${text} ${Math.round(weight)}`);
  assert.deepEqual(texts(one, 0), ['kernel 100']);
  assert.deepEqual(texts(one, 5), []);
  assert.deepEqual(texts(two, 5).sort(), ['.NET 50', 'garbage collection 50'], 'a mark is what its caller is');
});

test('what ended a wait is in the lane of the wait', () => {
  const builder = new DataBuilder({view: 'wall', duration_ns: 10 * SECOND, period_ns: 10 * MS});
  const sleep = {name: '[sleep]', kind: 'mark'}, waker = {name: '[woken by thread b]', kind: 'mark'};
  builder.at(0, ['Main', sleep, waker, 'Set', {name: 'write', kind: 'native'}], 3);
  builder.at(20, ['Main', 'Set'], 2);
  const profile = profileOf(builder);
  const lane = laneColumns(profile.times, [0], {from: 0, to: 10 * SECOND}, 1).get(0);
  assert.deepEqual(sharesAt(profile.times, lane, 0).map(({text, weight}) => `${text} ${weight}`), ['waiting 3', '.NET 2']);
});

test('what lasts is spread over the lane', () => {
  const builder = new DataBuilder({view: 'wall', unit: 'microseconds', period_ns: 0, duration_ns: 10 * SECOND});
  builder.at(2000, ['Main', 'Wait'], 3_000_000);
  const profile = profileOf(builder);
  const lane = laneColumns(profile.times, [0], {from: 0, to: 10 * SECOND}, 10, 1e3).get(0), kinds = profile.times.laneTexts.length + 1;
  assert.deepEqual(Array.from({length: 10}, (_, column) => Math.round(sum([...lane.subarray(column * kinds, (column + 1) * kinds)]) / 1e4)), [0, 0, 100, 100, 100, 0, 0, 0, 0, 0]);
});

test('keys move in the map and act', () => {
  const grid = gridOf({from: 0, to: 10 * SECOND}, 20 * MS);
  const key = (name, cursor, shiftKey = false) => mapKey({key: name, shiftKey}, grid, cursor);
  assert.deepEqual(key('ArrowDown', 10), {cursor: 11, extend: false});
  assert.deepEqual(key('ArrowRight', 10, true), {cursor: 60, extend: true});
  assert.deepEqual(key('ArrowLeft', 10), {cursor: 0, extend: false});
  assert.deepEqual(key('End', 10), {cursor: 499, extend: false});
  assert.deepEqual([key('Enter', 0), key('Escape', 0), key('c', 0), key('+', 0), key('-', 0)], [{choose: true}, {clear: true}, {compare: true}, {zoomIn: true}, {zoomOut: true}]);
  assert.equal(key('x', 0), null);
  assert.equal(key('toString', 0), null);
});

test('the state stands in the address, and nonsense there is nothing', () => {
  const state = {range: {from: 1.5 * SECOND, to: 2.02 * SECOND}, base: {from: 0, to: SECOND}, zoom: {from: 0, to: 5 * SECOND}, colour: 'pauses'};
  assert.deepEqual(readTimeState(writeTimeState(state), 10 * SECOND), state);
  assert.equal(writeTimeState(START), '');
  for (const hash of ['', '#range=2-1', '#range=a-b&colour=toString', '#range=99-100', '#%%%&range=1', '#range=-5-3']) assert.deepEqual(readTimeState(hash, 10 * SECOND), {...START}, hash);
  assert.deepEqual(readTimeState('#range=5-99', 10 * SECOND).range, {from: 5 * SECOND, to: 10 * SECOND});
});

test('a step back undoes the comparison, then the range, then the zoom', () => {
  const range = {from: 0, to: 1}, base = {from: 1, to: 2};
  let state = {...START, range, base, zoom: range};
  assert.ok(isComparing(state));
  assert.ok(!isComparing({...state, base: {from: 0, to: 1}}));
  for (const key of ['base', 'range', 'zoom']) {
    state = stepBack(state);
    assert.equal(state[key], null);
  }
  assert.equal(stepBack(state), null);
});

test('times as people write them', () => {
  assert.equal(clockText(62.5 * SECOND, 100 * SECOND), '62.50 s');
  assert.equal(clockText(62.5 * SECOND, 1000 * SECOND), '1:02.50');
  assert.equal(clockText(3723 * SECOND, 86_400 * SECOND), '1:02:03');
  assert.equal(clockText(119.997 * SECOND, 1000 * SECOND), '2:00');
  assert.equal(clockText(3599.999 * SECOND, 86_400 * SECOND), '1:00:00');
});

test('chances of the normal distribution', () => {
  // Two-sided, from tables.
  for (const [errors, chance] of [[0, 1], [1, 0.3173105], [1.96, 0.0499958], [3, 0.0026998], [5, 5.733e-7], [7, 2.5596e-12]]) {
    assert.ok(Math.abs(chanceBeyond(errors) / chance - 1) < 1e-3, `${errors}: ${chanceBeyond(errors)}`);
  }
  assert.equal(criticalErrors(Float64Array.of(0.1, 1, 1.5)), null);
  const critical = criticalErrors(Float64Array.of(0.1, 6, 1, 5, 1.5));
  assert.ok(critical < 5 && critical > 4.9);
});

/** A program whose method Slow takes a share of its samples that may change in the middle of 200 seconds. */
function changing(shareBefore, shareAfter, seed) {
  const random = seeded(seed), builder = new DataBuilder({duration_ns: 200 * SECOND});
  for (let ms = 0; ms < 200_000; ms += 10) {
    const share = ms < 100_000 ? shareBefore : shareAfter;
    builder.at(ms, ['Main', random() < share ? 'Slow' : `Other${Math.floor(random() * 10)}`]);
  }
  return profileOf(builder);
}
const HALVES = [{from: 100 * SECOND, to: 200 * SECOND}, {from: 0, to: 100 * SECOND}];

test('a change between two ranges is told from noise', () => {
  const profile = changing(0.2, 0.25, 11);
  const rule = rangeRule(profile, ...HALVES), slow = profile.names.indexOf('Slow');
  const part = profile.within({range: HALVES[0], base: HALVES[1]}, profile.times.weightsIn(HALVES[0]), profile.times.weightsIn(HALVES[1]), rule);
  const tree = part.tree(), node = tree.frame.indexOf(slow);
  assert.ok(isSignificant(rule.diff, rule.diff.stack, tree.totalBefore[node], tree.total[node], rule.noiseTotal[slow]));
  assert.ok(Math.abs(tree.total[node] / 10_000 - 0.25) < 0.02);
  assert.equal(tree.total[0] + tree.totalBefore[0], 20_000);
  assert.ok(rule.diff.self !== null);
});

test('where nothing changes nothing is marked, one time in a hundred aside', () => {
  // Each table of each pair is marked with a chance of 1 %: more than 4 of 40 pairs by chance of about 1e-2 in 100 runs; seeds are fixed.
  let marked = 0;
  for (let seed = 0; seed < 40; ++seed) if (rangeRule(changing(0.2, 0.2, 100 + seed), ...HALVES).diff.self !== null) ++marked;
  assert.ok(marked <= 4, `${marked} of 40`);
});

test('what scatters is not taken for a change', () => {
  // Bursts of a few seconds: the counts scatter far more than chance has it.
  const random = seeded(17), builder = new DataBuilder({duration_ns: 200 * SECOND});
  let bursts = false;
  for (let ms = 0; ms < 200_000; ms += 10) {
    if (ms % 4000 === 0) bursts = random() < 0.5;
    builder.at(ms, ['Main', bursts && random() < 0.6 ? 'Burst' : 'Other']);
  }
  const profile = profileOf(builder), rule = rangeRule(profile, ...HALVES);
  assert.ok(rule.noiseSelf[profile.names.indexOf('Burst')] > 5);
});

test('weights that are times are not tested', () => {
  const builder = new DataBuilder({view: 'wall', unit: 'microseconds', period_ns: 0, duration_ns: 2 * SECOND});
  builder.at(0, ['A'], 1000).at(1500, ['B'], 9000);
  const {diff} = rangeRule(profileOf(builder), {from: SECOND, to: 2 * SECOND}, {from: 0, to: SECOND});
  assert.deepEqual([diff.self, diff.total, diff.stack], [null, null, null]);
  assert.equal(diff.scale, 9);
});
