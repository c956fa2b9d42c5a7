// The page's model of a profile of waits: kinds, sites and who ended them, and stacks of these. Run by html_page_test.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Profile} from '../../userspace/output/page/src/profile_data.js';
import {applyTransforms} from '../../userspace/output/page/src/transforms.js';
import {isOfWaits, summarizeWaits, wakerMarks} from '../../userspace/output/page/src/waits.js';
import {waitingShop} from './page_data.mjs';

const profile = new Profile(waitingShop().data());
const named = ({frame, ...rest}) => ({...rest, name: frame >= 0 ? profile.names[frame] : ''});

/** The stacks of a tree, "a b 3", sorted. */
function stacksOf(tree) {
  const lines = [];
  for (let node = 1; node < tree.size; ++node) {
    if (tree.self[node] !== 0) lines.push([...tree.pathTo(node).map((at) => profile.names[tree.frame[at]]), tree.self[node]].join(' | '));
  }
  return lines.sort();
}

test('running and waiting by kind, most first', () => {
  assert.ok(isOfWaits(profile));
  const {running, waited, kinds} = summarizeWaits(profile);
  assert.deepEqual(kinds.map(({kind, weight}) => [kind, weight]),
    [['task wait', 9_000_000], ['idle', 6_000_000], ['monitor', 5_000_000], ['sleep', 2_000_000], ['running', 1_000_000], ['runnable', 300_000], ['waits shorter than 1ms', 40_000]]);
  assert.equal(running, 1_000_000);
  assert.equal(running + waited, kinds.reduce((sum, {weight}) => sum + weight, 0));
});

test('a site is the program\u2019s own method that waits, with those who ended it', () => {
  const sites = summarizeWaits(profile).sites.map((site) => ({...named(site), wakers: site.wakers.map(named)}));
  assert.deepEqual(sites, [
    {kind: 'task wait', name: 'Shop.Answer', betweenThreads: true, weight: 9_000_000, wakers: [{thread: 'thread .NET TP Worker', name: 'Shop.Look', weight: 9_000_000}]},
    {kind: 'monitor', name: 'Shop.Cart.Add', betweenThreads: true, weight: 5_000_000,
      wakers: [{thread: 'thread slow one', name: 'Shop.Report.Write', weight: 4_000_000}, {thread: 'an interrupt', name: '', weight: 500_000}]},
    {kind: 'sleep', name: 'Shop.Report.Write', betweenThreads: false, weight: 2_000_000, wakers: []},
  ]);
});

test('of chosen threads alone', () => {
  const {running, waited, sites} = summarizeWaits(profile, ({name}) => name === 'slow one');
  assert.deepEqual([running, waited, sites.length], [1_000_000, 2_000_000, 1]);
});

test('who ended waits in a method is a tree of their stacks, as they ran', () => {
  const wakersOf = (name) => stacksOf(applyTransforms(profile.tree(), [{kind: 'wakers', frame: profile.names.indexOf(name)}], undefined, wakerMarks(profile)));
  assert.deepEqual(wakersOf('Shop.Cart.Add'), [
    '[woken by an interrupt] | 500000',
    '[woken by thread slow one] | Shop.Report.Loop | Shop.Report.Write | System.Threading.Monitor.Exit | 4000000',
  ]);
  assert.equal(wakersOf('[task wait]').length, 1, 'of all waits of a kind');
  assert.deepEqual(wakersOf('Shop.Report.Loop'), [], 'who ended a wait is not the one that waits');
});

test('names that only look like marks are none, and a profile without wakers has none', () => {
  assert.equal(wakerMarks(new Profile(waitingShop({wakers: false}).data())), null);
  const {kinds} = summarizeWaits(new Profile(waitingShop({wakers: false}).stack(['[monitor]', 'Shop.Main'], 7).data()));
  assert.equal(kinds.find(({kind}) => kind === 'running').weight, 1_000_007);
});
