// Weights of cells in steps of time, as output/html_times.h packs them: cell by cell, or step by step.

/** Fills an array with the next varints. */
function readVarints(reader, numbers) {
  const {bytes} = reader;
  let {at} = reader;
  for (let i = 0; i < numbers.length; ++i) {
    let value = bytes[at++];
    if (value >= 0x80) {
      value -= 0x80;
      for (let scale = 128, byte = 0x80; byte >= 0x80; scale *= 128) {
        byte = bytes[at++];
        value += (byte & 0x7f) * scale;
      }
    }
    numbers[i] = value;
  }
  if (at > bytes.length) throw new Error('the times of the samples are cut off');
  reader.at = at;
  return numbers;
}

/** Cells, those with the largest counts first. */
function mostFirst(counts, entries) {
  const most = counts.reduce((largest, count) => Math.max(largest, count), 0);
  if (most > entries) throw new Error('the times of the samples do not fit the profile');
  const place = new Uint32Array(most + 2);  // of a count: the first one of its cells
  for (const count of counts) ++place[most - count + 1];
  for (let i = 0; i <= most; ++i) place[i + 1] += place[i];
  const order = new Uint32Array(counts.length);
  for (let cell = 0; cell < counts.length; ++cell) order[place[most - counts[cell]]++] = cell;
  return order;
}

/** The head that stands before the columns of steps and weights. */
function readHead(reader, cells) {
  const [milliseconds, steps, entries] = readVarints(reader, new Float64Array(3));
  const counts = readVarints(reader, new Uint32Array(cells));
  // Each takes two bytes at least, so what a file claims can't be more than it has.
  if (counts.reduce((sum, count) => sum + count, 0) !== entries || 2 * entries > reader.bytes.length) throw new Error('the times of the samples do not fit the profile');
  return {stepNs: milliseconds * 1e6, steps, entries, counts, order: mostFirst(counts, entries)};
}

/** Sorted steps of time with weights, of each of a few cells. */
export class CellSteps {
  /** @param {{stepNs: number, steps: number, first: Uint32Array, step: Uint32Array, sums: Float64Array}} columns */
  constructor({stepNs, steps, first, step, sums}) {
    this.stepNs = stepNs;
    this.steps = steps;
    /** entries of cell c: first[c] up to first[c + 1] - 1 */
    this.first = first;
    this.step = step;
    /** weight of all entries before each */
    this.sums = sums;
  }

  /** @param {Uint8Array} bytes  @param {number} cells */
  static unpack(bytes, cells) {
    const reader = {bytes, at: 0}, {counts, order, entries, ...head} = readHead(reader, cells);
    const first = new Uint32Array(cells + 1), step = new Uint32Array(entries), sums = new Float64Array(entries + 1);
    for (let cell = 0; cell < cells; ++cell) first[cell + 1] = first[cell] + counts[cell];
    const behind = readVarints(reader, new Uint32Array(entries)), weights = readVarints(reader, new Float64Array(entries));
    let at = 0;
    for (const cell of order) {
      for (let i = first[cell], last = 0; i < first[cell + 1]; ++i, ++at) {
        step[i] = last += behind[at];
        sums[i + 1] = weights[at];
      }
    }
    for (let i = 0; i < entries; ++i) sums[i + 1] += sums[i];
    return new CellSteps({...head, first, step, sums});
  }
}

const MOST_MARKS = 32, MARK_CELLS = 4e6;  // 32 MB of sums

/** The same step by step, so that what a range of time costs depends on its length, and that not much. */
export class StepEntries {
  /** @param {Uint8Array} bytes  @param {number} cells */
  constructor(bytes, cells) {
    const reader = {bytes, at: 0}, {counts, order, entries, stepNs, steps} = readHead(reader, cells);
    this.stepNs = stepNs;
    this.steps = steps;
    this.cells = cells;
    /** entries of step s: first[s] up to first[s + 1] - 1 */
    this.first = new Uint32Array(steps + 1);
    this.cell = new Uint32Array(entries);
    this.weight = new Float64Array(entries);
    const place = readVarints(reader, new Uint32Array(entries));
    let at = 0;
    for (const cell of order) {
      let step = 0;
      for (let left = counts[cell]; left > 0; --left, ++at) {
        place[at] = step += place[at];
        if (step >= steps) throw new Error('the times of the samples do not fit the profile');
        ++this.first[step + 1];
      }
    }
    for (let step = 0; step < steps; ++step) this.first[step + 1] += this.first[step];
    this.fill(reader, counts, order, place);
    this.makeMarks();
  }

  /** steps: of each entry in the order in which they are packed */
  fill(reader, counts, order, steps) {
    const next = this.first.slice(), weights = readVarints(reader, new Float64Array(steps.length));
    let at = 0;
    for (const cell of order) {
      for (let left = counts[cell]; left > 0; --left, ++at) {
        const place = next[steps[at]]++;
        this.cell[place] = cell;
        this.weight[place] = weights[at];
      }
    }
  }

  /** marks[m]: of each cell the weight before step m * markSteps. */
  makeMarks() {
    const count = Math.max(1, Math.min(MOST_MARKS, Math.floor(MARK_CELLS / Math.max(1, this.cells))));
    this.markSteps = Math.max(1, Math.ceil(this.steps / count));
    this.marks = [new Float64Array(this.cells)];
    for (let step = 0; step < this.steps; step += this.markSteps) {
      const weights = this.marks.at(-1).slice();
      this.addSteps(weights, step, Math.min(this.steps, step + this.markSteps), 1);
      this.marks.push(weights);
    }
  }

  /** The number of the mark next to a step, and that mark's step. */
  markNear(step) {
    const mark = Math.max(0, Math.min(this.marks.length - 1, Math.round(step / this.markSteps)));
    return {mark, at: Math.min(this.steps, mark * this.markSteps)};
  }

  addSteps(weights, from, to, sign) {
    const {cell, weight} = this, end = this.first[to];
    for (let i = this.first[from]; i < end; ++i) weights[cell[i]] += sign * weight[i];
  }

  /** Adds the weights from one step to another one, which may be before it: they are taken off then. */
  addBetween(weights, from, to, sign) {
    if (from <= to) this.addSteps(weights, from, to, sign);
    else this.addSteps(weights, to, from, -sign);
  }

  /** Weight of each cell in steps from (that one included) to (that one not). Sums of whole numbers are exact. */
  weights(from, to) {
    const begin = Math.min(Math.max(0, from), this.steps), end = Math.min(Math.max(begin, to), this.steps);
    const low = this.markNear(begin), high = this.markNear(end);
    if (low.mark === high.mark) {
      const weights = new Float64Array(this.cells);
      this.addSteps(weights, begin, end, 1);
      return weights;
    }
    const weights = this.marks[high.mark].slice(), before = this.marks[low.mark];
    for (let cell = 0; cell < weights.length; ++cell) weights[cell] -= before[cell];
    this.addBetween(weights, high.at, end, 1);
    this.addBetween(weights, low.at, begin, -1);
    return weights;
  }

  /** act(cell, weight, step) for each entry in a range, in the order of the time. */
  forEach(from, to, act) {
    const {first, cell, weight} = this;
    for (let step = Math.max(0, from); step < Math.min(to, this.steps); ++step) {
      for (let i = first[step]; i < first[step + 1]; ++i) act(cell[i], weight[i], step);
    }
  }

  /** The entries of groups of cells, put together. @returns {CellSteps} by group */
  sumUp(groupOf, groups) {
    const first = new Uint32Array(groups + 1), last = new Int32Array(groups).fill(-1);
    this.forEach(0, this.steps, (cell, _, at) => {
      const group = groupOf[cell];
      if (last[group] !== at) ++first[group + 1];
      last[group] = at;
    });
    for (let group = 0; group < groups; ++group) first[group + 1] += first[group];
    const step = new Uint32Array(first[groups]), sums = new Float64Array(first[groups] + 1), next = first.slice();
    last.fill(-1);
    this.forEach(0, this.steps, (cell, weight, at) => {
      const group = groupOf[cell];
      if (last[group] !== at) step[next[group]++] = at;
      last[group] = at;
      sums[next[group]] += weight;
    });
    for (let i = 0; i < step.length; ++i) sums[i + 1] += sums[i];
    return new CellSteps({stepNs: this.stepNs, steps: this.steps, first, step, sums});
  }
}
