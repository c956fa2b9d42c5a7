// Changes to what a picture shows, as functions from tree to tree. A view is the profile's tree after a list of these,
// so that each can be taken back alone.
import {TreeBuilder} from './frame_tree.js';

/**
 * kind: what is done; `frame`: to which method.
 *   focus    only stacks with the method
 *   without  only stacks without it
 *   hide     its frames leave the stacks; what it called is shown as called by its callers
 *   callees  stacks begin at its outermost frame: what it calls, from all places together
 *   callers  the same, the other way round: who calls it
 *   wakers   of waits in it: who ended them, as their stacks ran, below the thread that did it
 *   fold     its calls to itself, direct or not, become one frame
 *   foldAll  any method's direct calls to itself become one frame
 */
const TRANSFORMS = {focus, without, hide, callees, callers, wakers, fold, foldAll};

/**
 * @param {FrameTree} tree
 * @param {{kind: string, frame: number}[]} transforms  in the order of their application
 * @param {(frame: number) => number} methodOf  where the tree's frames are parts of methods: the method of each
 * @param {?Uint8Array} marksWaker  of each method whether it is a mark of the thread that ended a wait
 */
export function applyTransforms(tree, transforms, methodOf = (frame) => frame, marksWaker = null) {
  return transforms.reduce((current, {kind, frame}) => TRANSFORMS[kind](current, frame, methodOf, marksWaker), tree);
}

/** For each node, whether it or a node above it has one of the frames that `has` selects. */
export function nodesThrough(tree, has) {
  const through = new Uint8Array(tree.size);
  for (let node = 1; node < tree.size; ++node) {
    through[node] = through[tree.parent[node]] | (has(tree.frame[node]) ? 1 : 0);
  }
  return through;
}

const DROPPED = -1;

/**
 * Sends each node to a node of a new tree. `place` gets the node, the place of its parent and the builder, and says the
 * place of the node. Weights of nodes that are placed nowhere are left out.
 */
function mapNodes(tree, place) {
  const builder = new TreeBuilder(tree.selfBefore !== null, tree.size);
  const places = new Int32Array(tree.size);
  builder.add(0, tree.self[0], tree.selfBefore?.[0]);
  for (let node = 1; node < tree.size; ++node) {
    places[node] = place(node, places[tree.parent[node]], builder);
    if (places[node] !== DROPPED) builder.add(places[node], tree.self[node], tree.selfBefore?.[node]);
  }
  return builder.build();
}

function focus(tree, frame, methodOf) {
  return keepStacks(tree, nodesThrough(tree, (f) => methodOf(f) === frame), 1);
}

function without(tree, frame, methodOf) {
  return keepStacks(tree, nodesThrough(tree, (f) => methodOf(f) === frame), 0);
}

/** Only the stacks that end at nodes where `through` is `wanted`, and no nodes that are on none of them. */
function keepStacks(tree, through, wanted) {
  const needed = new Uint8Array(tree.size);
  for (let node = tree.size - 1; node > 0; --node) {
    const ends = tree.self[node] !== 0 || (tree.selfBefore !== null && tree.selfBefore[node] !== 0);
    if (ends && through[node] === wanted) needed[node] = 1;
    if (needed[node]) needed[tree.parent[node]] = 1;
  }
  const builder = new TreeBuilder(tree.selfBefore !== null, tree.size);
  const places = new Int32Array(tree.size);
  if (through[0] === wanted) builder.add(0, tree.self[0], tree.selfBefore?.[0]);
  for (let node = 1; node < tree.size; ++node) {
    if (!needed[node]) continue;
    places[node] = builder.child(places[tree.parent[node]], tree.frame[node]);
    if (through[node] === wanted) builder.add(places[node], tree.self[node], tree.selfBefore?.[node]);
  }
  return builder.build();
}

function hide(tree, frame, methodOf) {
  return mapNodes(tree, (node, above, builder) => (methodOf(tree.frame[node]) === frame ? above : builder.child(above, tree.frame[node])));
}

function callees(tree, frame, methodOf) {
  // The root's own weight is that of stacks without any frame: they don't go through the method.
  const builder = new TreeBuilder(tree.selfBefore !== null, tree.size);
  const places = new Int32Array(tree.size);  // 0: not in the method
  for (let node = 1; node < tree.size; ++node) {
    const above = places[tree.parent[node]];
    if (above === 0 && methodOf(tree.frame[node]) !== frame) continue;
    places[node] = builder.child(above, tree.frame[node]);
    builder.add(places[node], tree.self[node], tree.selfBefore?.[node]);
  }
  return builder.build();
}

function callers(tree, frame, methodOf) {
  const builder = new TreeBuilder(tree.selfBefore !== null, tree.size);
  const through = nodesThrough(tree, (f) => methodOf(f) === frame);
  for (let node = 1; node < tree.size; ++node) {
    // Where the frame calls itself only the outermost one counts: its total has the inner ones in it.
    if (methodOf(tree.frame[node]) !== frame || through[tree.parent[node]]) continue;
    let place = 0;
    for (let caller = node; caller > 0; caller = tree.parent[caller]) place = builder.child(place, tree.frame[caller]);
    builder.add(place, tree.total[node], tree.totalBefore?.[node]);
  }
  return builder.build();
}

function wakers(tree, frame, methodOf, marksWaker) {
  const builder = new TreeBuilder(tree.selfBefore !== null, tree.size);
  const through = nodesThrough(tree, (f) => methodOf(f) === frame);
  const markAt = new Int32Array(tree.size);  // the waker's mark at or above; 0: none
  for (let node = 1; node < tree.size; ++node) {
    const mark = (markAt[node] = markAt[tree.parent[node]] || (marksWaker?.[methodOf(tree.frame[node])] ? node : 0));
    // Waits that the waker itself went through are no wait in it.
    if (mark === 0 || !through[mark] || (tree.self[node] === 0 && !tree.selfBefore?.[node])) continue;
    let place = builder.child(0, tree.frame[mark]);
    for (let at = node; at !== mark; at = tree.parent[at]) place = builder.child(place, tree.frame[at]);
    builder.add(place, tree.self[node], tree.selfBefore?.[node]);
  }
  return builder.build();
}

function fold(tree, frame, methodOf) {
  const folded = new Int32Array(tree.size);  // place of the outermost frame of the method above the node; 0: none
  return mapNodes(tree, (node, above, builder) => {
    const outermost = folded[tree.parent[node]];
    if (methodOf(tree.frame[node]) !== frame) {
      folded[node] = outermost;
      return builder.child(above, tree.frame[node]);
    }
    return (folded[node] = outermost || builder.child(above, tree.frame[node]));
  });
}

function foldAll(tree, _, methodOf) {
  return mapNodes(tree, (node, above, builder) =>
    above > 0 && methodOf(builder.frame[above]) === methodOf(tree.frame[node]) ? above : builder.child(above, tree.frame[node]));
}
