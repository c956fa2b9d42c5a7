// A tree of frames with their weights, as columns: 300,000 nodes are a few arrays and no objects, so that a picture of
// them is laid out again within a frame of animation.
//
// Node 0 is the root and has no frame (-1). Parents come before their children. Weights are in the profile's unit.

/** Order of the children of a node, from left to right. */
export const ORDERS = {
  /** widest first: what matters is at the left */
  weight: 'weight',
  /** by name: a method keeps its place when weights change */
  name: 'name',
};

export class FrameTree {
  /**
   * @param {Int32Array} frame   frame of each node
   * @param {Int32Array} parent  parent of each node, lower than the node; -1 for the root
   * @param {Float64Array} self  weight of the stacks that end at the node
   * @param {?Float64Array} selfBefore  the same in the profile that is compared with, or null without one
   */
  constructor(frame, parent, self, selfBefore = null) {
    this.frame = frame;
    this.parent = parent;
    this.self = self;
    this.selfBefore = selfBefore;
    this.total = sumUp(parent, self);
    this.totalBefore = selfBefore && sumUp(parent, selfBefore);
  }

  get size() {
    return this.frame.length;
  }

  /** @param {number} node  @param {number} ancestor  whether node is ancestor or below it */
  isWithin(node, ancestor) {
    while (node > ancestor) node = this.parent[node];
    return node === ancestor;
  }

  /** From the root's child down to the node itself. */
  pathTo(node) {
    const path = [];
    for (; node > 0; node = this.parent[node]) path.push(node);
    return path.reverse();
  }
}

function sumUp(parent, self) {
  const total = Float64Array.from(self);
  for (let node = total.length - 1; node > 0; --node) total[parent[node]] += total[node];
  return total;
}

/** The columns of a FrameTree while it grows. */
export class TreeColumns {
  /** @param {boolean} compared  whether nodes have a second weight  @param {number} expected  nodes, if known */
  constructor(compared, expected = 1024) {
    this.frame = new Int32Array(expected);
    this.parent = new Int32Array(expected);
    this.self = new Float64Array(expected);
    this.before = compared ? new Float64Array(expected) : null;
    this.frame[0] = -1;
    this.parent[0] = -1;
    this.size = 1;
  }

  /** A new child of `parent`. */
  append(parent, frame) {
    if (this.size === this.frame.length) this.grow();
    const node = this.size++;
    this.frame[node] = frame;
    this.parent[node] = parent;
    return node;
  }

  add(node, self, before) {
    this.self[node] += self;
    if (this.before) this.before[node] += before;
  }

  build() {
    const cut = (column) => column && column.slice(0, this.size);
    return new FrameTree(cut(this.frame), cut(this.parent), cut(this.self), cut(this.before));
  }

  grow() {
    const longer = (column) => {
      if (!column) return null;
      const grown = new column.constructor(2 * column.length);
      grown.set(column);
      return grown;
    };
    this.frame = longer(this.frame);
    this.parent = longer(this.parent);
    this.self = longer(this.self);
    this.before = longer(this.before);
  }
}

/** Builds a FrameTree in which the children of a node have different frames. */
export class TreeBuilder extends TreeColumns {
  constructor(compared, expected = 1024) {
    super(compared, expected);
    // (parent, frame) -> node, open addressing, never more than half full. 0 is free: the root is nobody's child.
    this.slots = new Int32Array(2 << Math.ceil(Math.log2(expected)));
  }

  /** The child of `parent` with `frame`; made when it is not there. */
  child(parent, frame) {
    let slot = this.slotOf(parent, frame);
    if (this.slots[slot] !== 0) return this.slots[slot];
    if (2 * this.size > this.slots.length) {
      this.spread();
      slot = this.slotOf(parent, frame);
    }
    return (this.slots[slot] = this.append(parent, frame));
  }

  slotOf(parent, frame) {
    const mask = this.slots.length - 1;
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const node = this.slots[slot];
      if (node === 0 || (this.parent[node] === parent && this.frame[node] === frame)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  /** Twice as many slots. */
  spread() {
    this.slots = new Int32Array(2 * this.slots.length);
    for (let node = 1; node < this.size; ++node) this.slots[this.slotOf(this.parent[node], this.frame[node])] = node;
  }
}

const FEW = 12;  // a sort of the library takes longer to begin

function insertSorted(numbers, begin, end, compare) {
  for (let i = begin + 1; i < end; ++i) {
    const number = numbers[i];
    let at = i;
    for (; at > begin && compare(numbers[at - 1], number) > 0; --at) numbers[at] = numbers[at - 1];
    numbers[at] = number;
  }
}

/** Where each node of a tree lies: children side by side below their parent, each as wide as its weight. */
export class TreeLayout {
  /**
   * @param {FrameTree} tree
   * @param {Float64Array} width  of each node; a node is at least as wide as its children together
   * @param {(a: number, b: number) => number} compare  order of two nodes with one parent
   */
  constructor(tree, width, compare) {
    const size = tree.size;
    this.tree = tree;
    this.width = width;
    /** children of node n: child[firstChild[n]] up to child[firstChild[n + 1] - 1], from left to right */
    this.firstChild = new Int32Array(size + 1);
    this.child = new Int32Array(size);
    /** left edge, in the unit of width; the root begins at 0 */
    this.left = new Float64Array(size);
    this.depth = new Uint16Array(size);
    this.place(compare);
    this.maxDepth = this.depth.reduce((most, depth) => (depth > most ? depth : most), 0);
  }

  place(compare) {
    const {tree, width, firstChild, child, left, depth} = this;
    const {parent, size} = tree;
    for (let node = 1; node < size; ++node) ++firstChild[parent[node] + 1];
    for (let node = 0; node < size; ++node) firstChild[node + 1] += firstChild[node];
    const next = firstChild.slice();
    for (let node = 1; node < size; ++node) child[next[parent[node]]++] = node;
    for (let node = 0; node < size; ++node) {
      const begin = firstChild[node], end = firstChild[node + 1];
      if (end - begin > FEW) child.subarray(begin, end).sort(compare);
      else if (end - begin > 1) insertSorted(child, begin, end, compare);
      let x = left[node];
      for (let i = begin; i < end; ++i) {
        left[child[i]] = x;
        depth[child[i]] = depth[node] + 1;
        x += width[child[i]];
      }
    }
  }

  /** The child of node under x, or -1. */
  childAt(node, x) {
    let low = this.firstChild[node], high = this.firstChild[node + 1];
    const end = high;
    while (low < high) {  // the first child that ends behind x
      const middle = (low + high) >> 1;
      const at = this.child[middle];
      if (this.left[at] + this.width[at] > x) high = middle;
      else low = middle + 1;
    }
    return low < end && this.left[this.child[low]] <= x ? this.child[low] : -1;
  }

  /** The node at that depth below `from` under x, or -1. */
  nodeAt(from, depth, x) {
    let node = from;
    while (node >= 0 && this.depth[node] < depth) node = this.childAt(node, x);
    return node;
  }
}

/** The layout of a tree in one of the ORDERS. names: text of each frame. before: widths of the profile compared with. */
export function layOut(tree, order, names, before = false) {
  const width = before ? tree.totalBefore : tree.total;
  const {frame} = tree;
  const byName = (a, b) => (names(frame[a]) < names(frame[b]) ? -1 : names(frame[a]) > names(frame[b]) ? 1 : a - b);
  const byWeight = (a, b) => width[b] - width[a] || a - b;
  return new TreeLayout(tree, width, order === ORDERS.name ? byName : byWeight);
}
