// The parts of the page of `clrsampler serve` that need no browser. Run by serve_page_test.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {errorOf, urlOf, waitOf} from '../../userspace/export/page/src/api.js';
import {bytesText, msText, processText, roughText} from '../../userspace/export/page/src/format.js';
import {accountOf, rateChanges} from '../../userspace/export/page/src/health.js';
import {COLOURS, rangeOfLanes, rangeOfPage, readLanes, withPauses} from '../../userspace/export/page/src/lanes_model.js';
import {lanesUrl, profileUrl, recordingUrl, timelineUrl} from '../../userspace/export/page/src/questions.js';
import {assignColors} from '../../userspace/export/page/src/series_colors.js';
import {clockText, lengthText, moveWithin, parseTime, rangeText, snap, timeText, timeTicks, zoom} from '../../userspace/export/page/src/time_range.js';
import {timelineKey} from '../../userspace/export/page/src/timeline_keys.js';
import {coverageOf, gapsOf, kindText, meanIn, MEASURES, niceScale, pauseColumns, pauseHeight, pauseNear, readTimeline, seriesAt, stack, STATES_MEASURE, valuesOf} from '../../userspace/export/page/src/timeline_model.js';
import {choose, chooseToCompare, clearRange, follow, hold, isComparing, isLive, narrow, readState, setBase, showSpan, START, writeState} from '../../userspace/export/page/src/view_state.js';
import {mapValues} from '../../userspace/output/page/src/heat_map.js';
import {accountInWords} from '../../userspace/output/page/src/account.js';
import {applyTransforms} from '../../userspace/output/page/src/transforms.js';
import {Profile} from '../../userspace/output/page/src/profile_data.js';
import {DataBuilder, seeded} from './page_data.mjs';

process.env.TZ = 'Asia/Kolkata';  // half an hour off the hours of UTC
const NOON = Date.parse('2026-11-22T12:00:00+05:30');

// --- times -------------------------------------------------------------------------------------------------------------

test('times are read as people write them', () => {
  const read = (text) => parseTime(text, NOON);
  assert.equal(read('now'), NOON);
  assert.equal(read(' -5m '), NOON - 300_000);
  assert.equal(read('\u22121.5h'), NOON - 5_400_000);
  assert.equal(read('-7m30s'), NOON - 450_000);
  assert.equal(read('-1d 2h'), NOON - 93_600_000);
  assert.equal(read('11:58'), NOON - 120_000);
  assert.equal(read('11:58:30.5'), NOON - 89_500);
  assert.equal(read('13:00'), NOON + 3_600_000 - 86_400_000);  // of yesterday: today it has not been
  assert.equal(read('2026-11-22 11:00'), NOON - 3_600_000);
  assert.equal(read('2026-11-22T06:30:00Z'), NOON);
  assert.equal(read('2026-11-22'), NOON - 12 * 3_600_000);
  assert.equal(read(String(NOON / 1000)), NOON);
  for (const none of ['', 'soon', '-5', '5m', '-5m3', '24:00', '11:60', '12', '2026-13-01', '1e9', '-5m; drop', '2026-11-22 1:00']) assert.equal(read(none), null, none);
});

test('times and lengths are written as people read them', () => {
  assert.equal(clockText(NOON), '12:00:00');
  assert.equal(clockText(NOON + 7, true), '12:00:00.007');
  assert.equal(timeText(NOON - 86_400_000, NOON), '2026-11-21 12:00:00');
  assert.equal(rangeText({from: NOON - 60_000, to: NOON}, NOON), '11:59:00 – 12:00:00');
  assert.equal(rangeText({from: NOON - 86_400_000, to: NOON}, NOON), '2026-11-21 12:00:00 – 2026-11-22 12:00:00');
  assert.deepEqual([250, 1500, 40_000, 60_000, 90_000, 3_600_000, 5_400_000, 86_400_000, 604_800_000 + 7_200_000].map((ms) => lengthText(ms)),
    ['250 ms', '1.5 s', '40 s', '1 min', '1 min 30 s', '1 h', '1 h 30 min', '1 d', '7 d 2 h']);
  assert.equal(lengthText(86_400_000 + 7_200_000 + 180_000, 4), '1 d 2 h 3 min');
});

test('marks on the axis of time are at round times of the clock here, and not too many', () => {
  const ticks = timeTicks({from: NOON - 3_590_000, to: NOON}, 8);
  assert.deepEqual(ticks.map(({text}) => text), ['11:10', '11:20', '11:30', '11:40', '11:50', '12:00']);
  assert.deepEqual(timeTicks({from: NOON - 60_000, to: NOON}, 5).map(({text}) => text), ['11:59:00', '11:59:15', '11:59:30', '11:59:45', '12:00:00']);
  const days = timeTicks({from: NOON - 3 * 86_400_000, to: NOON}, 6);
  assert.ok(days.length <= 7 && days.every(({text}) => /^(\d\d:\d\d|\d\d-\d\d)$/.test(text)) && days.some(({strong}) => strong));
  for (const span of [1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11]) assert.ok(timeTicks({from: NOON - span, to: NOON}, 10).length <= 11, String(span));
});

test('ranges snap to steps, stay within what is shown and are zoomed about a point', () => {
  const grid = {begin: 1000, step: 10, steps: 6};
  assert.deepEqual(snap(1012, 1027, grid), {from: 1010, to: 1030});
  assert.deepEqual(snap(1027, 1012, grid), {from: 1010, to: 1030});
  assert.deepEqual(snap(1013, 1013, grid), {from: 1010, to: 1020});
  assert.deepEqual(snap(1060, 1060, grid), {from: 1050, to: 1060});
  assert.deepEqual(snap(-5, 5000, grid), {from: 1000, to: 1060});
  assert.deepEqual(moveWithin({from: 90, to: 110}, {from: 0, to: 100}), {from: 80, to: 100});
  assert.deepEqual(moveWithin({from: -50, to: 250}, {from: 0, to: 100}), {from: 0, to: 100});
  assert.deepEqual(zoom({from: 0, to: 100_000}, 0.5, 25_000), {from: 12_500, to: 62_500});
  assert.deepEqual(zoom({from: 0, to: 12_000}, 0.1), {from: 1000, to: 11_000});  // not below 10 s
});

// --- the address --------------------------------------------------------------------------------------------------------

test('any state survives the address', () => {
  const states = [
    START,
    {...START, last: 3_600_000, by: 'container', view: 'pause', tab: 'jit'},
    {...START, span: {from: 1000, to: 90_000}, range: {from: 2000, to: 3000}, base: {from: 1, to: 2}},
    {...START, last: null, span: {from: 1000, to: 90_000}, pid: 4711, container: 'a b&c=d#"<>', thread: '.NET TP', recording: 'x/y?z', tab: 'recordings'},
  ];
  for (const state of states) assert.deepEqual(readState(writeState(state)), {...state}, writeState(state));
  assert.equal(writeState(START), '#');
});

test('what makes no sense in an address counts as not said', () => {
  for (const hash of ['', '#', '#last=-5', '#last=0', '#span=9-1', '#span=a-b', '#range=1-2', '#by=constructor', '#view=__proto__', '#tab=%', '#pid=-1', '#pid=4711x', '#a=b&=', '#span=1-99999999999999999999']) {
    assert.deepEqual(readState(hash), {...START}, hash);
  }
});

test('choosing a range stops the time, and taking it back lets it go on', () => {
  const shown = {from: 0, to: 300_000};
  const chosen = choose(START, {from: 10_000, to: 20_000}, shown);
  assert.deepEqual([isLive(chosen), chosen.span, chosen.range], [false, shown, {from: 10_000, to: 20_000}]);
  assert.deepEqual(clearRange(chosen), {...START});
  const held = hold(START, shown);
  assert.deepEqual(clearRange(choose(held, {from: 1, to: 2}, null)), held);
  assert.deepEqual(follow(held), {...START});
  assert.deepEqual(choose(held, {from: -50_000, to: -10_000}, null).span, {from: -50_000, to: 300_000});
  assert.equal(isLive(showSpan(START, {from: 5, to: 6})), false);
  const fractions = choose(START, {from: 10_000.25, to: 20_000.5}, {from: 0.75, to: 300_000.25});
  assert.deepEqual(readState(writeState(fractions)), {...fractions});
  assert.deepEqual([fractions.range, isComparing(setBase(fractions, null))], [{from: 10_000, to: 20_001}, false]);
});

test('a base is compared with once another range is chosen', () => {
  const shown = {from: 0, to: 300_000};
  const based = setBase(choose(START, {from: 10_000, to: 20_000}, shown), shown);
  assert.equal(isComparing(based), false);
  assert.equal(isComparing(choose(based, {from: 20_000, to: 30_000}, shown)), true);
  assert.deepEqual(setBase(START, shown).base, shown);
  assert.equal(isComparing(setBase(START, shown)), false);
  const url = profileUrl({...choose(based, {from: 20_000, to: 30_500}, shown), pid: 7});
  assert.equal(url, 'api/diff?base_from=10&base_to=20&from=20&to=30.5&pid=7&view=cpu&format=page');
});

test('questions say what is chosen and nothing else', () => {
  assert.equal(timelineUrl(START, 1300), 'api/timeline?from=-300s&to=now&by=process&points=300&series=12');
  assert.equal(timelineUrl({...START, by: 'state'}, 1300), timelineUrl(START, 1300));
  assert.equal(timelineUrl(narrow({...START, by: 'container'}, {container: 'a&b c'}), 360), 'api/timeline?from=-300s&to=now&container=a%26b+c&by=process&points=120&series=8');
  assert.equal(profileUrl(narrow(START, {pid: 1}), 'pprof'), 'api/profile?from=-300s&to=now&pid=1&view=cpu&format=pprof');
  assert.equal(recordingUrl('../x?y', 'page'), 'api/recordings/..%2Fx%3Fy?format=page');
  assert.equal(urlOf('api/status'), 'api/status');
});

test('errors of the server are its sentences, and others are told as what they are', () => {
  const error = errorOf(400, JSON.stringify({error: 'no such \u202epid', hint: 'see /api/processes'}));
  assert.deepEqual([error.message, error.hint], ['no such \ufffdpid', 'see /api/processes']);
  for (const text of ['', '<html>', '[]', 'null', '{"error":5}']) assert.match(errorOf(502, text).message, /status 502/, text);
});

test('a question beyond the budget is asked again when the server says so', () => {
  assert.deepEqual([waitOf(429, '7'), waitOf(503, '2')], [7, 2]);
  assert.deepEqual([waitOf(503, null), waitOf(503, 'Wed, 21 Oct 2026'), waitOf(503, '0'), waitOf(429, '3600'), waitOf(500, '2'), waitOf(200, '2')], [0, 0, 0, 0, 0, 0]);
});

// --- the timeline --------------------------------------------------------------------------------------------------------

const ANSWER = {
  begin: 1000, step_ms: 500, steps: 4, covered_ms: [500, 500, 0, 500],
  series: [
    {label: 'a\u202e', pid: 1, container: 'x', dotnet: true, cores: [1, 2, 0, 3], pause_ms: [0, 50, 0, 0], suspend_ms: [0, 5, 0, 0], jit_ms: [10, 0, 0, 0], alloc_bytes: [2e6, 0, 0, 0]},
    {label: 'b', pid: 2, container: '', dotnet: false, cores: [0.5, 0.5, 0, 0.5]},
    {label: '[others]', pid: null, container: '', dotnet: false, cores: [1, 'x', null, -4, 5, 6]},
  ],
  pauses: [{t: 1600, pause_ms: 50, pid: 1, kind: 'blocking', comm: 'a\u202e'}, {t: 1100, pause_ms: 5, pid: 1, kind: 'no-gc'}, {t: null}],
};

test('a timeline is read, and what is missing or senseless in it is nothing', () => {
  const timeline = readTimeline(ANSWER, 'process');
  assert.deepEqual(timeline.series.map(({narrowTo}) => narrowTo), [{pid: 1}, {pid: 2}, null]);
  assert.deepEqual([...timeline.series[2].cores], [1, 0, 0, 0]);
  assert.deepEqual([...timeline.series[1].pause_ms], [0, 0, 0, 0]);
  assert.deepEqual(timeline.pauses.map(({t}) => t), [1100, 1600]);
  assert.deepEqual(timeline.series.map(({label}) => label), ['a\ufffd (1)', 'b (2)', 'others']);
  assert.equal(timeline.pauses[1].comm, 'a\ufffd');
  const [twin] = ANSWER.series;
  assert.equal(new Set(readTimeline({...ANSWER, series: [twin, twin, twin]}, 'process').series.map(({key}) => key)).size, 3);
  const containers = readTimeline({...ANSWER, series: [{label: 'x\u202e', pid: null, container: ''}, {label: ''}, {label: '[others]'}]}, 'container');
  assert.deepEqual(containers.series.map(({narrowTo}) => narrowTo), [{container: 'x\u202e'}, null, null]);  // sent back as it is
  assert.deepEqual(containers.series.map(({label}) => label), ['x\ufffd', 'no container', 'others']);
  const empty = readTimeline({}, 'process');
  assert.deepEqual([empty.grid.steps, empty.series, empty.pauses], [0, [], []]);
  assert.ok(readTimeline({begin: 0, step_ms: 1, steps: 1e9}, 'process').grid.steps <= 100_000);
});

test('areas lie on each other, and a point finds its area', () => {
  const stacked = stack(readTimeline(ANSWER, 'process'), MEASURES.cpu);
  assert.deepEqual(stacked.tops.map((top) => [...top]), [[1, 2, 0, 3], [1.5, 2.5, 0, 3.5], [2.5, 2.5, 0, 3.5]]);
  assert.equal(stacked.highest, 3.5);
  assert.deepEqual([0.9, 1, 1.7, 2.5].map((value) => seriesAt(stacked, 0, value)), [0, 1, 2, -1]);
  assert.equal(seriesAt(stacked, 2, 0), -1);
});

test('means are of what was recorded, in the measure\u2019s unit', () => {
  const timeline = readTimeline(ANSWER, 'process');
  assert.equal(meanIn(timeline, timeline.series[0], MEASURES.cpu, {from: 1000, to: 3000}), 2);  // of three steps
  assert.equal(meanIn(timeline, timeline.series[0], MEASURES.cpu, {from: 2000, to: 2500}), 0);
  assert.equal(meanIn(timeline, timeline.series[0], MEASURES.jit, {from: 1000, to: 1500}), 20);  // 10 ms in half a second
  assert.deepEqual([...valuesOf(timeline.series[0], MEASURES.pause, timeline)], [0, 100, 0, 0]);
  assert.deepEqual([...valuesOf(timeline.series[0], MEASURES.alloc, timeline)], [4, 0, 0, 0]);  // 2 MB in half a second
  // A step of which a fifth was recorded has the rate of that part, and a fifth of the weight.
  const partly = readTimeline({...ANSWER, covered_ms: [500, 100, 0, 500]}, 'process');
  assert.deepEqual([...valuesOf(partly.series[0], MEASURES.pause, partly)], [0, 500, 0, 0]);
  assert.equal(meanIn(partly, partly.series[0], MEASURES.pause, {from: 1000, to: 2000}), 50_000 / 600);
  assert.equal(meanIn(partly, {cores: [1, 7, 0, 1]}, MEASURES.cpu, {from: 1000, to: 2000}), 2);
  assert.equal(coverageOf(timeline, {from: 1500, to: 2500}), 0.5);
  assert.equal(coverageOf(timeline, {from: 2000, to: 2500}), 0);
});

test('what threads do is series of their own, from the bottom up', () => {
  const answer = {begin: 0, step_ms: 500, steps: 2, covered_ms: [500, 500], series: [{label: 'a', pid: 1, wait_ms: [5500, 'x']}],
    states: [{state: 'idle', ms: [4000, 0]}, {state: 'something new', ms: [1, 1]}, {state: 'monitor', ms: [1500, 250]}, {state: 'running', ms: [500, 0]}]};
  const read = readTimeline(answer, 'process');
  const timeline = {...read, series: read.states};
  assert.deepEqual(timeline.series.map(({label}) => label), ['running', 'monitor', 'idle', 'something new']);
  assert.ok(timeline.series.every(({narrowTo, isState}) => narrowTo === null && isState));
  assert.deepEqual([...valuesOf(timeline.series[1], STATES_MEASURE, timeline)], [3, 0.5]);  // threads
  assert.deepEqual([...valuesOf(read.series[0], MEASURES['off-cpu'], timeline)], [11, 0]);
  assert.deepEqual(readTimeline({begin: 0, step_ms: 500, steps: 2}, 'process').states, []);
});

test('gaps are told from what is not there yet', () => {
  const grid = {begin: 0, step: 10_000, steps: 8};
  const gaps = gapsOf({grid, covered: Uint8Array.of(0, 1, 0, 0, 1, 0, 0, 0)}, 80_000);
  assert.deepEqual(gaps, [{first: 0, end: 1, pending: false}, {first: 2, end: 4, pending: false}, {first: 5, end: 8, pending: true}]);
  assert.deepEqual(gapsOf({grid, covered: new Uint8Array(8)}, 80_000), [{first: 0, end: 5, pending: false}, {first: 5, end: 8, pending: true}]);
  assert.deepEqual(gapsOf({grid, covered: new Uint8Array(8)}, 9e9).map(({pending}) => pending), [false]);  // nothing came for long
  assert.deepEqual(gapsOf({grid, covered: new Uint8Array(8).fill(1)}, 80_000), []);
});

test('scales end at round numbers', () => {
  assert.deepEqual(niceScale(3.5), {top: 4, ticks: [0, 1, 2, 3, 4]});
  assert.deepEqual(niceScale(0.013).ticks, [0, 0.005, 0.01, 0.015]);
  assert.deepEqual(niceScale(0), {top: 1, ticks: [0, 1]});
  for (let highest = 0.001; highest < 1e5; highest *= 1.37) {
    const {top, ticks} = niceScale(highest);
    assert.ok(top >= highest * (1 - 1e-9) && top <= 2.6 * highest && ticks.length >= 2 && ticks.length <= 6, `${highest}: ${ticks}`);
  }
});

test('of pauses in one pixel the longest is drawn, and 10,000 take no time', () => {
  const random = seeded(3);
  const pauses = Array.from({length: 10_000}, (_, i) => ({t: i, pause_ms: random() * 100}));
  const columns = pauseColumns(pauses, (time) => time / 10);
  // The shortest of many times: the others are those of a compiler that begins, or of a machine that does something else.
  const times = Array.from({length: 20}, () => {
    const begin = performance.now();
    pauseColumns(pauses, (time) => time / 10);
    return performance.now() - begin;
  });
  assert.ok(Math.min(...times) < 100, `${times} ms`);
  assert.equal(columns.length, 1000);
  assert.equal(columns[3].pause.pause_ms, Math.max(...pauses.slice(30, 40).map(({pause_ms: ms}) => ms)));
  assert.equal(pauseNear(columns, 3.2, 0, () => 1), columns[3].pause);
  assert.equal(pauseNear([{x: 10, pause: pauses[0]}], 30, 5, () => 2), null);
  assert.equal(pauseNear([{x: 10, pause: pauses[0]}], 16, 5, () => 2), pauses[0]);
});

test('a longer pause is never lower', () => {
  let before = 0;
  for (let ms = 0.01; ms < 20_000; ms *= 1.5) {
    const height = pauseHeight(ms, 10_000);
    assert.ok(height >= before && height <= 1);
    before = height;
  }
  assert.ok(pauseHeight(1, 100) > 2 * pauseHeight(0.1, 100));
});

test('keys choose, move, extend, zoom and clear', () => {
  const grid = {begin: 0, step: 10, steps: 10};
  const press = (key, range = null, shiftKey = false) => timelineKey({key, shiftKey}, grid, range);
  assert.deepEqual(press('ArrowLeft'), {range: {from: 90, to: 100}});
  assert.deepEqual(press('Home'), {range: {from: 0, to: 10}});
  const range = {from: 40, to: 60};
  assert.deepEqual(press('ArrowLeft', range), {range: {from: 30, to: 50}});
  assert.deepEqual(press('ArrowRight', {from: 80, to: 100}), {range: {from: 80, to: 100}});
  assert.deepEqual(press('ArrowRight', range, true), {range: {from: 40, to: 70}});
  assert.deepEqual(press('ArrowLeft', {from: 40, to: 50}, true), {range: {from: 40, to: 50}});
  assert.deepEqual(press('Home', range), {range: {from: 0, to: 20}});
  assert.deepEqual(press('End', range), {range: {from: 80, to: 100}});
  assert.deepEqual(press('Home', range, true), {range: {from: 0, to: 60}});
  assert.deepEqual(press('End', range, true), {range: {from: 40, to: 100}});
  assert.deepEqual(press('PageDown', range), {range: {from: 60, to: 80}});
  assert.deepEqual(press('PageUp'), {span: {from: -50, to: 50}});
  assert.deepEqual(press('+', range), {span: range});
  assert.deepEqual(press('Enter', range), {span: range});
  assert.deepEqual([press('Escape', range), press('Escape')], [{clear: true}, null]);
  assert.deepEqual(press('a', range), {range: {from: 0, to: 100}});
  for (const key of ['x', 'constructor', '__proto__', 'Tab', '/']) assert.equal(press(key, range), null);
});

test('series keep their colours while others come and go', () => {
  const first = assignColors(['a', 'b', 'c']);
  assert.deepEqual([...first], [['a', 0], ['b', 1], ['c', 2]]);
  const second = assignColors(['c', 'd', 'a'], first);
  assert.deepEqual(['a', 'c', 'd'].map((key) => second.get(key)), [0, 2, 1]);
  const third = assignColors(['a', 'b', 'd'], second);  // b and d had the same
  assert.equal(new Set(['a', 'b', 'd'].map((key) => third.get(key))).size, 3);
  const many = assignColors(Array.from({length: 50}, (_, i) => `s${i}`));
  assert.equal(new Set([...many.values()].slice(0, 12)).size, 12);
});

test('kinds, numbers and names in words', () => {
  assert.equal(kindText({kind: 'blocking', generation: 2}), 'blocking GC, generation 2');
  assert.equal(kindText({kind: 'new-kind', generation: null}), 'new-kind');
  assert.deepEqual([0, 0.05, 1.5, 12.34, 1234].map(roughText), ['0', '0.05', '1.50', '12.3', '1,234']);
  assert.deepEqual([0, 0.25, 12.5, 2500].map(msText), ['0', '250 µs', '12.5 ms', '2.50 s']);
  assert.deepEqual([512, 1536, 2 ** 30].map(bytesText), ['512 B', '1.5 KiB', '1.0 GiB']);
  assert.deepEqual([processText({comm: 'a', pid: 1}), processText({comm: '', pid: 1}), processText({comm: '', pid: null})], ['a (1)', 'process 1', 'unknown process']);
});

test('the server\u2019s health is an account', () => {
  const account = accountOf({
    covered_ms: 60_000, samples: {expected: 100, taken: 90, written: 90}, lost: {ring_full: 10}, frames: {managed: {named: 9, unnamed: 1}}, stacks: {complete: 1, truncated: 0, broken: 0},
    own: {cpu_seconds: 0.6, peak_rss_bytes: 2 ** 20, bpf_map_bytes: 0}, notices: ['one', {text: 'two', hint: 'do it'}],
  });
  const text = accountInWords(account).flatMap(({lines}) => lines).join('\n');
  for (const part of ['90 samples in 60.0 s', 'Lost: 10, the agent read too slowly', '1.0 % of one CPU', 'one', 'two', 'Hint: do it']) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.deepEqual(accountInWords(accountOf({})), []);
  assert.deepEqual(rateChanges([{t: 1, hz: 19}, {t: 2, hz: 19}, {t: 3, hz: 9}, {t: 4, hz: 19}]).map(({t}) => t), [1, 3, 4]);
});

// --- one profile after the other -------------------------------------------------------------------------------------------

test('a frame is found in the next profile by what it is, and is there without stacks otherwise', () => {
  const one = new Profile(new DataBuilder().stack(['main', 'a', {name: 'a', kind: 'native'}], 3).data());
  const other = new Profile(new DataBuilder().stack([{name: 'a', kind: 'native'}, 'main', 'b'], 5).data());
  assert.equal(other.frameLike(one, one.names.indexOf('main')), other.names.indexOf('main'));
  assert.equal(other.frameLike(one, 2), 0);  // the native one
  const made = other.frameLike(one, 1);
  assert.deepEqual([other.names[made], other.kinds[made], other.frameCount], ['a', one.kinds[1], made + 1]);
  assert.equal(other.frameLike(one, 1), made);
  assert.equal(applyTransforms(other.tree(), [{kind: 'focus', frame: made}]).total[0], 0);
  assert.equal(applyTransforms(other.tree(), [{kind: 'without', frame: made}]).total[0], 5);
});

// --- lanes -----------------------------------------------------------------------------------------------------------------

const LANES = {
  begin: 3_600_000 * 7 + 20_000, step_ms: 10_000, steps: 3, covered: [true, true, false], states: ['Other', '.NET', 'idle'], others: 4,
  threads: [{pid: 7, comm: 'shop', container: '', tid: 8, name: 'worker', ms: 30}, {pid: null, comm: '', container: '', tid: 0, name: '', ms: 4}],
  lanes: [{thread: 0, state: 1, step: [0, 2], us: [5_000_000, 1_000_000]}, {thread: 0, state: 2, step: [1], us: [3_000_000]}, {thread: 1, state: 0, step: [0, 9], us: [2_000_000, 7]}, {thread: 5, state: 0, step: [0], us: [1]}],
};

test('lanes of the server are those of a recording, since the begin of an hour', () => {
  const lanes = readLanes(LANES), grid = {from: 0, columnNs: 60e9, cellNs: 10e9, columns: 1, rows: 6};
  assert.equal(lanes.origin, 3_600_000 * 7);
  assert.deepEqual(lanes.span, {from: 20e9, to: 50e9});
  assert.deepEqual(lanes.profile.threads.map(({label, isOthers}) => [label, isOthers]), [['shop: worker (8)', false], ['4 other threads', true]]);
  const values = (colour, wanted = () => true) => [...mapValues(lanes.profile, lanes.times, grid, {colour, wanted, flags: null})];
  assert.deepEqual(values('cpu').map((cpus) => Math.round(1e6 * cpus) / 1e6), [0, 0, 0.7, 0, 0.1, 0]);
  assert.deepEqual(values('samples', ({index}) => index === 0), [0, 0, 5e9, 3e9, 1e9, 0]);
  assert.ok(lanes.hasWaits && !readLanes({...LANES, lanes: LANES.lanes.slice(0, 1)}).hasWaits);
  const paused = withPauses(lanes, [{t: lanes.origin + 20_000, pause_ms: 5000, pid: 7}, {t: lanes.origin + 45_000, pause_ms: 1, pid: 99}]);
  assert.deepEqual(paused.times.events.map(({from, to, thread}) => [from, to, thread]), [[20e9, 25e9, 0], [45e9, 45.001e9, -1]]);
  assert.equal([...mapValues(paused.profile, paused.times, grid, {colour: 'pauses', wanted: () => true, flags: null})][2], 0.5);
});

test('ranges of lanes are whole windows of the page', () => {
  const lanes = readLanes(LANES);
  assert.deepEqual(rangeOfPage(lanes, {from: 21e9, to: 40e9}), {from: lanes.origin + 20_000, to: lanes.origin + 40_000});
  assert.deepEqual(rangeOfPage(lanes, {from: 25e9, to: 25e9}), {from: lanes.origin + 20_000, to: lanes.origin + 30_000});
  assert.deepEqual(rangeOfLanes(lanes, {from: lanes.origin + 20_000, to: lanes.origin + 40_000}), {from: 20e9, to: 40e9});
  assert.equal(rangeOfLanes(lanes, null), null);
});

test('lanes of an answer that makes no sense are none', () => {
  const {profile, span, times} = readLanes({});
  assert.deepEqual([profile.threads, times.groups.length, span.to > span.from], [[], 0, true]);
});

test('the map of the page stands in its address', () => {
  const state = {...START, lanes: 'open', colour: 'search'};
  assert.deepEqual(readState(writeState(state)), state);
  assert.deepEqual([readState('#lanes=x&colour=y').lanes, readState('#lanes=x&colour=toString').colour], [null, 'cpu']);
  assert.ok(Object.hasOwn(COLOURS, START.colour));
  assert.equal(lanesUrl({...state, pid: 7, thread: '8'}, 'a b'), 'api/lanes?from=-300s&to=now&pid=7&points=10000&threads=12&method=a+b');
});

test('a range that is chosen to compare makes the one before it the base', () => {
  const shown = {from: 0, to: 100}, first = chooseToCompare(START, {from: 10, to: 20}, shown);
  assert.equal(first.base, null);
  const second = chooseToCompare(first, {from: 30, to: 40}, shown);
  assert.deepEqual([second.base, second.range], [{from: 10, to: 20}, {from: 30, to: 40}]);
  assert.deepEqual(chooseToCompare(second, {from: 50, to: 60}, shown).base, {from: 10, to: 20});
});
