// The page's pure parts: trees, what is done to them, tables, search, texts, colours, the account. Run by html_page_test.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {accountInShort, accountInWords} from '../../userspace/output/page/src/account.js';
import {layOut, ORDERS} from '../../userspace/output/page/src/frame_tree.js';
import {isNameless, methodCosts, roleCosts, withRoles} from '../../userspace/output/page/src/methods.js';
import {contrast, kindFills, diffRamp, textColorOn, THEMES} from '../../userspace/output/page/src/palette.js';
import {Profile, unpack} from '../../userspace/output/page/src/profile_data.js';
import {matchedWeight, matcherOf, matchingFrames} from '../../userspace/output/page/src/search.js';
import {changePoints, comparedWhole, isSignificant, standardErrors} from '../../userspace/output/page/src/significance.js';
import {fileName, lineCosts, linkTo, rowsNearSamples, sourceRows} from '../../userspace/output/page/src/source_lines.js';
import {inert, shareText, shorterNames, weightText} from '../../userspace/output/page/src/text.js';
import {applyTransforms} from '../../userspace/output/page/src/transforms.js';
import {rowOfKey, rowsInSight} from '../../userspace/output/page/src/use_rows.js';
import {DataBuilder, pageOf, seeded} from './page_data.mjs';

/** A profile of stacks written "main a b 3": frames, outermost first, and the weight. */
function profileOf(...lines) {
  const builder = new DataBuilder();
  for (const line of lines) {
    const words = line.split(' ');
    builder.stack(words.slice(0, -1), Number(words.at(-1)));
  }
  return new Profile(builder.data());
}

/** The stacks of a tree in the same form, sorted. */
function stacksOf(profile, tree) {
  const lines = [];
  for (let node = 0; node < tree.size; ++node) {
    if (tree.self[node] !== 0) lines.push([...tree.pathTo(node).map((at) => profile.names[tree.frame[at]]), tree.self[node]].join(' '));
  }
  return lines.sort();
}

function transformed(profile, ...steps) {
  return stacksOf(profile, applyTransforms(profile.tree(), steps.map(([kind, name]) => ({kind, frame: profile.names.indexOf(name)}))));
}

test('a tree has the stacks of the profile, and totals that add up', () => {
  const profile = profileOf('main a b 3', 'main a 2', 'main c 5');
  const tree = profile.tree();
  assert.deepEqual(stacksOf(profile, tree), ['main a 2', 'main a b 3', 'main c 5']);
  assert.equal(tree.total[0], 10);
  assert.deepEqual(tree.pathTo(tree.size - 1).map((node) => tree.total[node]), [10, 5]);
});

test('a tree grows beyond the expected size', () => {
  const random = seeded(7);
  const builder = new DataBuilder();
  for (let i = 0; i < 5000; ++i) builder.stack(Array.from({length: 12}, () => `f${Math.floor(random() * 3)}`));
  const profile = new Profile(builder.data());
  const tree = applyTransforms(profile.tree(), [{kind: 'callers', frame: 0}]);
  for (let node = 1; node < tree.size; ++node) assert.ok(tree.parent[node] < node);
  const children = new Set();
  for (let node = 1; node < tree.size; ++node) children.add(`${tree.parent[node]} ${tree.frame[node]}`);
  assert.equal(children.size, tree.size - 1);
});

test('threads and processes are told apart, and each has its own stacks', () => {
  const builder = new DataBuilder();
  const first = builder.thread({pid: 1, tid: 1, comm: 'one', name: 'a'}), second = builder.thread({pid: 1, tid: 2, comm: 'one', name: 'b'});
  const other = builder.thread({pid: 2, tid: 3, comm: 'two', name: 'a'});
  builder.stack(['main', 'x'], 1, first).stack(['main', 'y'], 2, second).stack(['main', 'x'], 4, other).stack([], 8, other);
  const profile = new Profile(builder.data());
  assert.deepEqual(profile.processes.map(({label, weight}) => [label, weight]), [['two (2)', 12], ['one (1)', 3]]);
  assert.deepEqual(stacksOf(profile, profile.tree()), ['one (1) main x 1', 'one (1) main y 2', 'two (2) 8', 'two (2) main x 4']);
  assert.deepEqual(stacksOf(profile, profile.tree((thread) => thread.tid === 2)), ['main y 2']);
  assert.deepEqual(stacksOf(profile, profile.tree((thread) => thread.name === 'a')), ['one (1) main x 1', 'two (2) 8', 'two (2) main x 4']);
});

test('focus and its opposite part the stacks', () => {
  const profile = profileOf('main a b 3', 'main c b 2', 'main c 5');
  assert.deepEqual(transformed(profile, ['focus', 'b']), ['main a b 3', 'main c b 2']);
  assert.deepEqual(transformed(profile, ['without', 'b']), ['main c 5']);
  assert.deepEqual(transformed(profile, ['focus', 'b'], ['without', 'c']), ['main a b 3']);
  assert.deepEqual(transformed(profile, ['without', 'main']), []);
});

test('a hidden frame gives its weight and its callees to its caller', () => {
  const profile = profileOf('main a b 3', 'main b 2', 'main a 5', 'a 1');
  assert.deepEqual(transformed(profile, ['hide', 'a']), ['1', 'main 5', 'main b 5']);
});

test('callees begin at the outermost frame of the method, from all places', () => {
  const profile = profileOf('main a b 3', 'x a b 2', 'x a c a b 1', 'main b 9');
  assert.deepEqual(transformed(profile, ['callees', 'a']), ['a b 5', 'a c a b 1']);
});

test('callers count each stack once, by the outermost frame of the method', () => {
  const profile = profileOf('main a b 3', 'x a b 2', 'x a c a b 1', 'main b 9');
  assert.deepEqual(transformed(profile, ['callers', 'a']), ['a main 3', 'a x 3']);
  assert.deepEqual(transformed(profile, ['callers', 'b']), ['b a c a x 1', 'b a main 3', 'b a x 2', 'b main 9']);
});

test('recursion folds', () => {
  const profile = profileOf('main a a b 3', 'main a b a c 2', 'main a 1');
  assert.deepEqual(transformed(profile, ['foldAll', '']), ['main a 1', 'main a b 3', 'main a b a c 2']);
  assert.deepEqual(transformed(profile, ['fold', 'a']), ['main a 1', 'main a b 3', 'main a c 2']);
});

test('no transform loses or invents weight but those that say so', () => {
  const random = seeded(3);
  const builder = new DataBuilder();
  for (let i = 0; i < 400; ++i) builder.stack(Array.from({length: 1 + Math.floor(random() * 9)}, () => `f${Math.floor(random() * 5)}`), 1 + Math.floor(random() * 9));
  const profile = new Profile(builder.data());
  const tree = profile.tree();
  for (let frame = 0; frame < 5; ++frame) {
    const total = (kind) => applyTransforms(tree, [{kind, frame}]).total[0];
    for (const kind of ['hide', 'fold', 'foldAll']) assert.equal(total(kind), tree.total[0], kind);
    const through = total('focus');
    assert.equal(through + total('without'), tree.total[0]);
    assert.equal(total('callers'), through);
    assert.equal(total('callees'), through);
  }
});

/** A program whose Total has lines 57 and 58, calls itself from 58, and once has no line. */
function withLines() {
  const builder = new DataBuilder();
  const one = builder.thread({tid: 1, name: 'one'}), two = builder.thread({tid: 2, name: 'two'});
  const total = (line, lineKind = 'exact') => ({name: 'Total', file: '/src/Cart.cs', line, lineKind});
  const main = {name: 'Main', file: '/src/Main.cs', line: 3, lineKind: 'exact'};
  builder.stack([main, total(57)], 5, one).stack([main, total(58), total(58)], 3, one).stack([main, total(58), total(57)], 2, two);
  builder.stack([main, total(57, 'optimised')], 4, two).stack([main, 'Total'], 1, one).stack([main, total(58), 'Leaf'], 7, one);
  return new Profile(builder.data());
}
const linesOf = (profile, method, wanted = () => true, ...steps) =>
  lineCosts(profile, profile.names.indexOf(method), wanted, steps.map(([kind, name]) => ({kind, frame: profile.names.indexOf(name)})))
    .map(({file, line, self, total, exact, optimised}) => `${file}:${line} ${self} ${total}${exact ? ' exact' : ''}${optimised ? ' optimised' : ''}`);

test('lines of a method are one frame in the picture and the table', () => {
  const profile = withLines();
  const tree = profile.tree();
  assert.deepEqual(stacksOf(profile, tree), ['Main Total 10', 'Main Total Leaf 7', 'Main Total Total 5']);
  const costs = methodCosts(layOut(tree, ORDERS.weight), profile.frameCount);
  assert.deepEqual(costs.map(({frame, self, total}) => [profile.names[frame], self, total]), [['Main', 0, 22], ['Total', 15, 22], ['Leaf', 7, 7]]);
  assert.deepEqual([matchedWeight(tree, matchingFrames(profile.names, (name) => name.includes('57')))], [0]);
});

test('a line has its own weight and that of what it calls, once for each stack', () => {
  const profile = withLines();
  assert.deepEqual(linesOf(profile, 'Total'), ['/src/Cart.cs:57 11 11 exact optimised', '/src/Cart.cs:58 3 12 exact', ':0 1 1']);
  assert.deepEqual(linesOf(profile, 'Main'), ['/src/Main.cs:3 0 22 exact']);
  assert.deepEqual(linesOf(profile, 'Leaf'), [':0 7 7']);
  assert.deepEqual(linesOf(profile, 'Missing'), []);
});

test('lines are of the threads and stacks that are shown', () => {
  const profile = withLines();
  assert.deepEqual(linesOf(profile, 'Total', (thread) => thread.tid === 2), ['/src/Cart.cs:57 6 6 exact optimised', '/src/Cart.cs:58 0 2 exact']);
  assert.deepEqual(linesOf(profile, 'Total', () => true, ['focus', 'Leaf']), ['/src/Cart.cs:58 0 7 exact']);
  assert.deepEqual(linesOf(profile, 'Total', () => true, ['without', 'Leaf'], ['foldAll', '']), linesOf(profile, 'Total', () => true, ['without', 'Leaf']), 'a sample counts in its own line');
  for (const kind of ['focus', 'without', 'hide', 'callees', 'fold', 'foldAll']) {
    const frame = profile.names.indexOf('Total'), steps = [{kind, frame}];
    const self = lineCosts(profile, frame, () => true, steps).reduce((sum, cost) => sum + cost.self, 0);
    const tree = applyTransforms(profile.tree(), steps);
    const shown = methodCosts(layOut(tree, ORDERS.weight), profile.frameCount).find((row) => row.frame === frame);
    assert.equal(self, shown?.self ?? 0, kind);
  }
});

test('a profile without lines has none', () => {
  assert.equal(profileOf('main a 1').lines, null);
});

test('lines around those with samples are shown, and what lies between is left out', () => {
  const cost = (line) => ({file: 'a.cs', line, self: 1, total: 1});
  const shape = (rows) => rows.map(({line, text, cost: own, gap}) => (gap ? '...' : `${line}${own ? '*' : ''} ${text}`));
  const text = Array.from({length: 20}, (_, i) => `l${i + 1}`).join('\n');
  assert.deepEqual(shape(sourceRows([cost(2), cost(4), cost(12)], text)), ['1 l1', '2* l2', '3 l3', '4* l4', '5 l5', '6 l6', '...', '10 l10', '11 l11', '12* l12', '13 l13', '14 l14']);
  assert.deepEqual(shape(sourceRows([cost(20), cost(21)], text)), ['18 l18', '19 l19', '20* l20', '21* null']);  // the file is another one
  assert.deepEqual(shape(sourceRows([cost(7)], '')), ['7* null']);
  assert.deepEqual(shape(sourceRows([cost(2)], '{\n\t\ta\n\n\t  b')), ['1 {', '2*         a', '3 ', '4       b']);
  assert.deepEqual(shape(sourceRows([cost(2)], '\t{\n\t\ta\n\n\t  b')), ['1 {', '2*     a', '3 ', '4   b']);
  assert.deepEqual(shape(sourceRows([cost(4)], 'a\r\nb\rc\u2028\td\u202e')), ['2 b', '3 c', '4*     d\ufffd']);
});

test('instructions that are shown are those around the samples', () => {
  const rows = Array.from({length: 9}, (_, offset) => ({offset, self: offset === 2 ? 1 : offset === 7 ? 5 : 0}));
  const shown = (most) => rowsNearSamples(rows, most).map(({offset}) => offset);
  assert.deepEqual(shown(9), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(shown(6), [1, 2, 3, 6, 7, 8]);
  assert.deepEqual(shown(1), [7]);
});

test('a link is one of the web', () => {
  assert.equal(linkTo('https://example.org/a b/Cart.cs?x=1#L1', 57), 'https://example.org/a%20b/Cart.cs?x=1#L57');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a stranger may write
  for (const url of ['', 'Cart.cs', 'javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', '//example.org/', '${x}']) assert.equal(linkTo(url, 1), null, url);
  assert.equal(fileName('C:\\src\\Cart.cs'), 'Cart.cs');
  assert.equal(fileName('/_/src/Cart.cs'), 'Cart.cs');
});

test('children lie side by side in their parent, in the order asked for', () => {
  const profile = profileOf('main b 3', 'main a 2', 'main c 5', 'main c d 1', 'z 1');
  const names = (frame) => profile.names[frame];
  const tree = profile.tree();
  for (const [order, expected] of [[ORDERS.weight, ['c', 'b', 'a']], [ORDERS.name, ['a', 'b', 'c']]]) {
    const layout = layOut(tree, order, names);
    const main = layout.nodeAt(0, 1, 0);
    assert.equal(names(tree.frame[main]), 'main');
    const children = [...layout.child.subarray(layout.firstChild[main], layout.firstChild[main + 1])];
    assert.deepEqual(children.map((node) => names(tree.frame[node])), expected);
    let x = layout.left[main];
    for (const node of children) {
      assert.equal(layout.left[node], x);
      assert.equal(layout.childAt(main, x), node);
      assert.equal(layout.childAt(main, x + layout.width[node] - 0.01), node);
      x += layout.width[node];
    }
    assert.equal(layout.childAt(main, x), -1);
    assert.equal(layout.childAt(0, 11.5), tree.size - 1);
  }
  assert.equal(layOut(tree, ORDERS.weight, names).maxDepth, 3);
});

test('a method that calls itself counts once in its total', () => {
  const profile = profileOf('main a b a 3', 'main a 2', 'main b 1');
  const rows = methodCosts(layOut(profile.tree(), ORDERS.weight, String), profile.frameCount);
  const costs = Object.fromEntries(rows.map(({frame, self, total}) => [profile.names[frame], [self, total]]));
  assert.deepEqual(costs, {main: [0, 6], a: [5, 5], b: [1, 4]});
});

/** A profile of a runtime at work: [frames, weight]; frames in brackets are roles, those with "!0x" native. */
function runtimeProfile(...stacks) {
  const builder = new DataBuilder();
  const kindOf = (name) => (name.startsWith('[') ? 'role' : /!|^wks/.test(name) ? 'native' : 'jit');
  for (const [frames, weight] of stacks) builder.stack(frames.map((name) => ({name, kind: kindOf(name)})), weight);
  return new Profile(builder.data());
}

function tableOf(profile) {
  const layout = layOut(profile.tree(), ORDERS.weight, String);
  const roles = roleCosts(layout, profile);
  return {roles, rows: withRoles(methodCosts(layout, profile.frameCount), roles, profile)};
}

test('functions without a name are summed up under the role that they are below', () => {
  const profile = runtimeProfile(
    [['Main', '[gc gen1 blocking]', 'libcoreclr.so!0x10', 'libcoreclr.so!0x20'], 3], [['Main', '[gc gen1 blocking]', 'libcoreclr.so!0x10'], 4],
    [['Main', '[gc gen1 blocking]', 'libcoreclr.so!0x10', 'wks::mark'], 1], [['Main', '[gc gen1 blocking]', 'Callback', 'libcoreclr.so!0x30'], 2],
    [['Main', 'libcoreclr.so!0x10'], 8]);
  const {roles, rows} = tableOf(profile);
  assert.equal(roles.length, 1);
  assert.equal(roles[0].self, 7);
  assert.equal(roles[0].total, 10);
  assert.deepEqual(roles[0].below.map(({frame, self}) => [profile.names[frame], self]), [['libcoreclr.so!0x10', 4], ['libcoreclr.so!0x20', 3]]);
  const self = Object.fromEntries(rows.map((row) => [row.name ?? profile.names[row.frame], row.self]));
  assert.deepEqual(self, {'Main': 0, 'Callback': 0, '[gc gen1 blocking]': 7, 'libcoreclr.so!0x10': 8, 'libcoreclr.so!0x20': 0, 'libcoreclr.so!0x30': 2, 'wks::mark': 1});
});

test('without a role they are what the nearest function of the runtime with a name does', () => {
  const builder = new DataBuilder();
  const kinds = {Main: 'jit', '[gc gen1]': 'role'};
  const sources = {ThreadNative_SpinWait: 'runtime-table', JIT_New: 'runtime-table'};
  for (const [frames, weight] of [
    [['Main', 'JIT_New', 'ThreadNative_SpinWait', 'a!0x1'], 3], [['Main', 'ThreadNative_SpinWait'], 5], [['Main', 'JIT_New', 'a!0x2'], 6],
    [['Main', '[gc gen1]', 'JIT_New', 'a!0x1'], 7], [['Main', 'JIT_New', 'Main', 'a!0x1'], 9]]) {
    builder.stack(frames.map((name) => ({name, kind: kinds[name] ?? 'native', source: sources[name] ?? ''})), weight);
  }
  const profile = new Profile(builder.data());
  const {roles, rows} = tableOf(profile);
  assert.deepEqual(Object.fromEntries(roles.map(({name, self, total}) => [name, [self, total]])), {'[in ThreadNative_SpinWait]': [3, 8], '[in JIT_New]': [6, 25], '[gc gen1]': [7, 7]});
  const self = Object.fromEntries(rows.map((row) => [row.name ?? profile.names[row.frame], row.self]));
  assert.deepEqual(self, {Main: 0, ThreadNative_SpinWait: 5, JIT_New: 0, '[in ThreadNative_SpinWait]': 3, '[in JIT_New]': 6, '[gc gen1]': 7, 'a!0x1': 9, 'a!0x2': 0});
});

test('compilations are one role, and each of their methods stays in the table', () => {
  const profile = runtimeProfile(
    [['Main', '[jit A Tier0]', 'libclrjit.so!0x1'], 2], [['Main', '[jit B Tier1]', 'libclrjit.so!0x1'], 5], [['Main', '[jit B Tier1]', 'X', '[jit A Tier0]', 'libclrjit.so!0x1'], 1]);
  const {roles, rows} = tableOf(profile);
  assert.deepEqual(roles.map(({name, self, total}) => [name, self, total]), [['[jit]', 8, 8]]);
  assert.deepEqual(rows.map((row) => row.name ?? profile.names[row.frame]).sort(), ['Main', 'X', '[jit A Tier0]', '[jit B Tier1]', '[jit]', 'libclrjit.so!0x1']);
  assert.equal(rows.reduce((sum, {self}) => sum + self, 0), 8, 'every sample counts once');
});

test('a name that only looks like an address is a name', () => {
  const profile = runtimeProfile([['libcoreclr.so!0x1f', 'libcoreclr.so!0x1f_cold', 'libcoreclr.so!Main'], 1]);
  assert.deepEqual([0, 1, 2].map((frame) => isNameless(profile, frame)), [true, false, false]);
});

test('search finds plain text without a distinction of case, and patterns of RE2', () => {
  const found = (query, isPattern) => ['Ns.List<int>.Add', '[jit: no map]', 'memset'].filter(matcherOf(query, isPattern).test);
  assert.deepEqual(found('list<INT>', false), ['Ns.List<int>.Add']);
  assert.deepEqual(found('[jit', false), ['[jit: no map]']);
  assert.deepEqual(found('^M.*t$', true), ['memset']);
  assert.match(matcherOf('(', true).error, /./);
  assert.equal(matcherOf('', true).test, null);
});

test('a pattern that backtracks elsewhere takes no time', () => {
  const begin = performance.now();
  assert.equal(matcherOf('(a+)+$', true).test(`${'a'.repeat(5000)}b`), false);
  assert.ok(performance.now() - begin < 30_000);  // by backtracking it would be years
});

test('the matched share counts each stack once', () => {
  const profile = profileOf('main ab ab 3', 'main c 2', 'ab 1');
  const {test: matches} = matcherOf('ab', false);
  assert.equal(matchedWeight(profile.tree(), matchingFrames(profile.names, matches)), 4);
});

test('differences count only beyond the noise of sampling', () => {
  const rule = {scale: 1, all: 0, tested: true};
  const counts = (before, after, more = {}, noise = 1) => isSignificant({...rule, ...more}, 3, before, after, noise);
  assert.equal(counts(100, 120), false);
  assert.equal(counts(1000, 1200), true);
  assert.equal(counts(500, 1000, {scale: 2}), false);
  assert.equal(counts(1000, 1200, {}, 9), false);
  assert.equal(counts(0, 8), false);  // too few to tell
  assert.equal(counts(0, 0), false);
  assert.equal(counts(1000, 1120), false);
  assert.equal(counts(1000, 1120, {all: 4000}), true);  // of all of which it is half, its share scatters less
  assert.equal(isSignificant(rule, null, 0, 1000), false);
  assert.equal(isSignificant({...rule, tested: false}, null, 0, 1000), true, 'weights are times: nothing says that it is noise');
  assert.equal(standardErrors(rule, 200, 200, 1), 0);
});

test('weights before follow the stacks through transforms', () => {
  const builder = new DataBuilder();
  builder.stack(['main', 'a', 'b'], 3, 0, 30).stack(['main', 'c', 'b'], 2, 0, 20).stack(['main', 'gone'], 0, 0, 7);
  const profile = new Profile(builder.data({diff: {scale: 0.1, all: 0, self: 3, total: 3, stack: 3, tested: true}}));
  const callers = applyTransforms(profile.tree(), [{kind: 'callers', frame: profile.names.indexOf('b')}]);
  assert.deepEqual([callers.total[0], callers.totalBefore[0]], [5, 50]);
  const focus = applyTransforms(profile.tree(), [{kind: 'focus', frame: profile.names.indexOf('gone')}]);
  assert.deepEqual([focus.total[0], focus.totalBefore[0]], [0, 7]);
  assert.ok(Math.abs(comparedWhole(profile.diff, focus) - 0.7) < 1e-9);
  assert.ok(Math.abs(changePoints(profile.diff, 7, 0, comparedWhole(profile.diff, focus)) + 100) < 1e-9);
});

test('names lose what can disguise them, and nothing else', () => {
  assert.equal(inert('a\u202eb\u0000c\u0085d\u200be\ufefff\n'), 'a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd');
  assert.equal(inert('<b>Größe</b> 日本 & "x" ёж'), '<b>Größe</b> 日本 & "x" ёж');
});

test('names become shorter at the namespace', () => {
  assert.deepEqual(shorterNames('Shop.Order.Add', true), ['Shop.Order.Add', 'Order.Add', 'Add']);
  assert.deepEqual(shorterNames('System.List<System.Int32>.Add', true), ['System.List<System.Int32>.Add', 'System.List<…>.Add', 'List<…>.Add', 'Add']);
  assert.deepEqual(shorterNames('Shop.List<int>.Run.<lambda_1_0>', true), ['Shop.List<int>.Run.<lambda_1_0>', 'List<int>.Run.<lambda_1_0>', 'Run.<lambda_1_0>', '<lambda_1_0>']);
  assert.deepEqual(shorterNames('operator<', false), ['operator<']);
  assert.deepEqual(shorterNames('Shop.Order..ctor', true), ['Shop.Order..ctor', 'Order..ctor', '.ctor']);
  assert.deepEqual(shorterNames('[jit: no map. really]', true), ['[jit: no map. really]']);
  assert.deepEqual(shorterNames('Lib!A.B.C(System.Int32)', true), ['Lib!A.B.C(System.Int32)', 'A.B.C(System.Int32)', 'B.C(System.Int32)', 'C(System.Int32)']);
  assert.deepEqual(shorterNames('libcoreclr.so!0x10', false), ['libcoreclr.so!0x10', '0x10']);
  assert.deepEqual(shorterNames('WKS::gc_heap::mark(int)', false), ['WKS::gc_heap::mark(int)', 'gc_heap::mark(int)', 'mark(int)']);
  assert.deepEqual(shorterNames('finish_task_switch.isra.0', false), ['finish_task_switch.isra.0']);
});

test('weights and shares read well', () => {
  assert.equal(weightText(1, 'samples'), '1 sample');
  assert.equal(weightText(12345, 'samples'), '12,345 samples');
  assert.equal(weightText(1500, 'microseconds'), '1.50 ms');
  assert.equal(weightText(1.31e9, 'nanoseconds'), '1.31 s');
  assert.deepEqual([[1, 8], [1, 200], [0, 5], [1, 1e6], [3, 0], [99999, 100000], [5, 5], [0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]].map(([a, b]) => shareText(a, b)), ['12.5 %', '0.50 %', '0 %', '< 0.01 %', '0 %', '> 99.9 %', '100.0 %', '100.0 %', '100.0 %']);
});

test('texts on frames are readable in every colour of both themes', () => {
  const builder = new DataBuilder();
  for (const kind of ['unknown', 'kernel', 'native', 'jit', 'r2r', 'aot', 'role', 'mark', 'inlined']) for (let i = 0; i < 30; ++i) builder.stack([{name: `${kind}${i}`, kind}]);
  const profile = new Profile(builder.data());
  for (const [name, theme] of Object.entries(THEMES)) {
    const ramps = ['orange', 'red'].flatMap((more) => { const ramp = diffRamp(name, more); return [ramp.none, ...[-1, -0.5, -0.01, 0.01, 0.5, 1].map(ramp.of)]; });
    for (const fill of [...kindFills(profile, theme), ...ramps]) assert.ok(contrast(textColorOn(fill), fill) >= 4.5, `${name} ${fill}`);
    assert.ok(contrast(theme.mutedInk, theme.paper) >= 4.5);
  }
});

test('the account says what is missing', () => {
  const account = {
    samples: {expected: 1000, taken: 900, written: 890, set_aside: 0, lost: {ring_full: 100, no_scratch: 0}},
    frames: {managed: {named: 90, unnamed: 10}, native: {named: 5, unnamed: 0}, kernel: {named: 0, unnamed: 0}, unnamed_reasons: {'[jit: no map]': 10}},
    stacks: {complete: 80, truncated: 0, broken: 20}, notices: [{kind: 'x', message: 'no names', hint: 'do it'}],
    duration_seconds: 10, self: {cpu_seconds: 0.25, peak_rss_bytes: 2 ** 25, bpf_map_bytes: 2 ** 23},
  };
  const parts = accountInWords(account);
  assert.deepEqual(parts.map(({heading, good}) => [heading, good]), [['Samples', false], ['Names', false], ['Stacks', false], ['Cost of the recording', true], ['Notices', false]]);
  const text = parts.flatMap(({lines}) => lines).join('\n');
  for (const part of ['90.0 % of these came', 'Lost: 100, the agent read too slowly', '90.0 % of 100 frames have a name', '10 × [jit: no map]', '20.0 % end early', '2.5 % of one CPU', 'Hint: do it']) assert.ok(text.includes(part), part);
  assert.deepEqual(accountInShort(account), {text: '10.0 % lost, 90.0 % named', good: false});
  assert.deepEqual(accountInWords({}), []);
});

test('an account that makes no sense is none, and the rest is shown', () => {
  for (const account of ['{', '[]', '5', '{"samples":5}', '{"frames":{"managed":3},"notices":7}', '{"samples":{"lost":null}}']) {
    const profile = new Profile({...new DataBuilder().stack(['a']).data(), account});
    assert.equal(profile.tree().total[0], 1);
  }
});

test('what was packed into a page comes out', async () => {
  const data = new DataBuilder().stack(['</script><script>alert(1)</script>', 'ü'], 3).data();
  const page = pageOf(data);
  assert.ok(!page.includes('alert(1)'));
  const packed = /id="profile">([^<]*)</.exec(page)[1];
  assert.deepEqual(await unpack(packed), data);
  assert.throws(() => new Profile({...data, version: 2}), /version 2/);
});

test('of a long table the rows in sight are drawn, and a few more', () => {
  assert.deepEqual(rowsInSight(0, 260, 26, 5), {first: 0, end: 5});
  for (const scrollTop of [0, 26, 777, 26 * 50, 26 * 90]) {
    const {first, end} = rowsInSight(scrollTop, 260, 26, 100);
    assert.ok(first >= 0 && first <= scrollTop / 26 && end >= Math.min(100, scrollTop / 26 + 10) && end <= 100 && end - first <= 40, `${scrollTop}: ${first}, ${end}`);
  }
  assert.equal(rowsInSight(1e6, 260, 26, 100).end, 100);  // after a search there are fewer rows than were scrolled over
  assert.deepEqual(rowsInSight(0, 260, 26, 0), {first: 0, end: 0});
});

test('keys lead from row to row', () => {
  assert.deepEqual(['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End'].map((key) => rowOfKey(key, 50, 10, 100)), [51, 49, 60, 40, 0, 99]);
  assert.deepEqual([rowOfKey('ArrowUp', 0, 10, 100), rowOfKey('PageDown', 95, 10, 100)], [0, 99]);
  assert.deepEqual([rowOfKey('x', 0, 10, 100), rowOfKey('End', 0, 10, 0)], [null, null]);
});

test('a tree of nodes that differ in their lines only has each frame once', () => {
  const builder = new DataBuilder();
  for (const line of [1, 2, 3]) builder.stack([{name: 'Main', file: 'a.cs', line}, 'Leaf'], line);
  const profile = new Profile(builder.data());
  assert.deepEqual(stacksOf(profile, profile.tree()), ['Main Leaf 6']);
});
