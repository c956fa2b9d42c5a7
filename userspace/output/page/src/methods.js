// The table of methods: what each costs alone and with all that it calls.

/**
 * @param {TreeLayout} layout
 * @param {number} frameCount
 * @returns {{frame: number, self: number, total: number, selfBefore: number, totalBefore: number}[]} of each frame that
 *     is in the tree. A method that calls itself counts once in its total: by its outermost frame.
 */
export function methodCosts(layout, frameCount) {
  const {tree, firstChild, child} = layout;
  const self = new Float64Array(frameCount), total = new Float64Array(frameCount);
  const selfBefore = new Float64Array(frameCount), totalBefore = new Float64Array(frameCount);
  const onPath = new Int32Array(frameCount), seen = new Uint8Array(frameCount);

  // A walk in depth: next[d] is the next child to visit at depth d.
  const path = [0], next = [firstChild[0]];
  while (path.length > 0) {
    const at = path.length - 1, node = path[at];
    if (next[at] < firstChild[node + 1]) {
      const down = child[next[at]++];
      const frame = tree.frame[down];
      seen[frame] = 1;
      self[frame] += tree.self[down];
      if (tree.selfBefore) selfBefore[frame] += tree.selfBefore[down];
      if (onPath[frame]++ === 0) {
        total[frame] += tree.total[down];
        if (tree.totalBefore) totalBefore[frame] += tree.totalBefore[down];
      }
      path.push(down);
      next.push(firstChild[down]);
    } else {
      if (node > 0) --onPath[tree.frame[node]];
      path.pop();
      next.pop();
    }
  }

  const rows = [];
  for (let frame = 0; frame < frameCount; ++frame) {
    if (!seen[frame]) continue;
    rows.push({frame, self: self[frame], total: total[frame], selfBefore: selfBefore[frame], totalBefore: totalBefore[frame]});
  }
  return rows;
}
