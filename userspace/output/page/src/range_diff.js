// Two ranges of one recording side by side: which changes are more than noise. The same judgement as profile/model_diff.h makes of
// two recordings, for shares, but for one thing: methods that were inlined meanwhile are not looked for.
import {standardErrors} from './significance.js';

const FALSE_DISCOVERY_RATE = 0.01;
const STRETCHES = [20, 10, 5];  // equal parts of a range, by which the scatter of the counts is measured

/** Chance of a value of the normal distribution that is further from the mean than so many standard errors. */
export function chanceBeyond(errors) {
  const x = errors / Math.SQRT2;
  if (x < 2) {
    let term = x, sum = x;
    for (let n = 1; n < 60; ++n) sum += (term *= (-x * x) / n) / (2 * n + 1);
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; --n) fraction = n / 2 / (x + fraction);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
}

/** The smallest of these that counts by the procedure of Benjamini and Hochberg; null: none does. */
export function criticalErrors(errors) {
  const tested = errors.filter((value) => value > 0).sort().reverse();
  for (let i = tested.length - 1; i >= 0; --i) {
    if (chanceBeyond(tested[i]) <= (FALSE_DISCOVERY_RATE * (i + 1)) / tested.length) return tested[i] * 0.9999;
  }
  return null;
}

/** Own and total weights of frames, and of nodes, from those of cells. */
class Counter {
  constructor(profile) {
    const {nodeFrame, nodeParent} = profile;
    this.profile = profile;
    // Whether no caller of the node is of its method.
    this.outermost = new Uint8Array(nodeFrame.length);
    for (let node = 0; node < nodeFrame.length; ++node) {
      let above = nodeParent[node];
      while (above >= 0 && nodeFrame[above] !== nodeFrame[node]) above = nodeParent[above];
      this.outermost[node] = above < 0 ? 1 : 0;
    }
  }

  /** @param {(add: (cell: number, weight: number) => void) => void} fill */
  count(fill) {
    const {nodeFrame, nodeParent, cellNode, frameCount} = this.profile;
    const self = new Float64Array(frameCount), total = new Float64Array(frameCount), nodes = new Float64Array(nodeFrame.length);
    let all = 0;
    fill((cell, weight) => {
      all += weight;
      const node = cellNode[cell];
      if (node < 0) return;
      self[nodeFrame[node]] += weight;
      nodes[node] += weight;
    });
    for (let node = nodes.length - 1; node >= 0; --node) {
      if (nodes[node] === 0) continue;
      if (nodeParent[node] >= 0) nodes[nodeParent[node]] += nodes[node];
      if (this.outermost[node]) total[nodeFrame[node]] += nodes[node];
    }
    return {self, total, nodes, all};
  }
}

/** Chi square of the counts of equal parts, by the number of parts, with its degrees of freedom. */
function scatter(counter, steps, from, to, whole) {
  const parts = Math.min(STRETCHES[0], to - from), lists = Array.from({length: parts}, () => ({cells: [], weights: []}));
  steps.forEach(from, to, (cell, weight, step) => {
    const list = lists[Math.floor(((step - from) * parts) / (to - from))];
    list.cells.push(cell);
    list.weights.push(weight);
  });
  const counts = lists.map(({cells, weights}) => counter.count((add) => { for (let i = 0; i < cells.length; ++i) add(cells[i], weights[i]); }));
  return STRETCHES.filter((length) => parts % length === 0).map((length) => chiSquare(counts, parts / length, whole));
}

function chiSquare(counts, together, whole) {
  const sums = {self: new Float64Array(whole.self.length), total: new Float64Array(whole.total.length)};
  let used = 0;
  for (let begin = 0; begin < counts.length; begin += together) {
    const group = counts.slice(begin, begin + together), part = group.reduce((sum, {all}) => sum + all, 0) / whole.all;
    if (part === 0) continue;
    ++used;
    for (const key of ['self', 'total']) {
      for (let frame = 0; frame < sums[key].length; ++frame) {
        const all = whole[key][frame];
        if (all === 0) continue;
        const expected = all * part, difference = group.reduce((sum, one) => sum + one[key][frame], 0) - expected;
        sums[key][frame] += (difference * difference) / (expected * Math.max(1 - all / whole.all, 1e-9));
      }
    }
  }
  const enough = used >= counts.length / together / 2;
  return {...sums, degrees: enough ? used - 1 : 0};
}

/** How much more than chance the counts of each frame scatter, at least 1. */
function dispersions(both, frames, key) {
  const noise = new Float64Array(frames).fill(1);
  for (let length = 0; length < STRETCHES.length; ++length) {
    const ofLength = both.map((parts) => parts[length]).filter((part) => part && part.degrees > 0);
    const degrees = ofLength.reduce((sum, part) => sum + part.degrees, 0);
    if (degrees === 0) continue;
    for (let frame = 0; frame < frames; ++frame) noise[frame] = Math.max(noise[frame], ofLength.reduce((sum, part) => sum + part[key][frame], 0) / degrees);
  }
  return noise;
}

/**
 * @param {Profile} profile  of the whole time
 * @param {{from, to}} range
 * @param {{from, to}} base  what it is compared with
 * @returns {{diff: DiffRule, noiseSelf: Float64Array, noiseTotal: Float64Array}}  for Profile.within
 */
export function rangeRule(profile, range, base) {
  const {times} = profile, {stacks} = times;
  const counter = new Counter(profile);
  const [after, before] = [range, base].map((one) => {
    const weights = times.weightsIn(one);
    return counter.count((add) => weights.forEach((weight, cell) => { if (weight > 0) add(cell, weight); }));
  });
  const diff = {scale: before.all > 0 ? after.all / before.all : 1, all: after.all + before.all, self: null, total: null, stack: null, tested: profile.about.unit === 'samples', scatter_unknown: false};
  const ones = new Float64Array(profile.frameCount).fill(1);
  // Weights that are times of unknown parts have no such test.
  if (!diff.tested || before.all === 0 || after.all === 0) return {diff, noiseSelf: ones, noiseTotal: ones};
  const both = [[range, after], [base, before]].map(([one, whole]) => {
    const {from, to} = times.snap(one);
    return scatter(counter, stacks, Math.round(from / stacks.stepNs), Math.round(to / stacks.stepNs), whole);
  });
  diff.scatter_unknown = both.every((parts) => parts.every(({degrees}) => degrees <= 0));
  const noiseSelf = dispersions(both, profile.frameCount, 'self'), noiseTotal = dispersions(both, profile.frameCount, 'total');
  diff.self = criticalErrors(after.self.map((weight, frame) => standardErrors(diff, before.self[frame], weight, noiseSelf[frame])));
  diff.total = criticalErrors(after.total.map((weight, frame) => standardErrors(diff, before.total[frame], weight, noiseTotal[frame])));
  diff.stack = criticalErrors(after.nodes.map((weight, node) => standardErrors(diff, before.nodes[node], weight, noiseTotal[profile.nodeFrame[node]])));
  return {diff, noiseSelf, noiseTotal};
}
