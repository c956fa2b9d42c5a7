// The table of methods: what each costs alone and with all that it calls.

import {KINDS} from './profile_data.js';

const ALL_COMPILATIONS = '[jit]';
const MANAGED = new Set(['jit', 'r2r', 'aot']);
const RUNTIME_LIBRARIES = new Set(['libcoreclr.so', 'libclrjit.so', 'libclrgc.so', 'libclrgcexp.so']);

/** Whether a frame is native code that is known by an address only: "libcoreclr.so!0x3d0b60". */
export function isNameless(profile, frame) {
  return KINDS[profile.kinds[frame]] === 'native' && /!0x[0-9a-f]+$|^\[native: /.test(profile.names[frame]);
}

/** Whether a frame is a function of the .NET runtime that has a name. */
function isRuntimeFunction(profile, frame) {
  return KINDS[profile.kinds[frame]] === 'native' && !isNameless(profile, frame) && (profile.sources[frame] === 'runtime-table' || RUNTIME_LIBRARIES.has(profile.modules[frame]));
}

/**
 * Where the self weight of such functions goes that the runtime called for something: to the role that they are below,
 * without managed code between. Compilations are one role then, "[jit]", whatever they compile. Without a role it is
 * what the nearest function of the runtime with a name does: "[in ThreadNative_SpinWait]".
 *
 * @returns {{frame: number, name: string, self: number, total: number, below: {frame: number, self: number}[]}[]} of
 *     each role that has any; `frame` is one of the role's. The weights of `below` add up to `self`, most first.
 */
export function roleCosts(layout, profile) {
  const {tree, firstChild, child} = layout;
  const roleOf = (frame) => {
    if (KINDS[profile.kinds[frame]] !== 'role') return null;
    return profile.names[frame].startsWith('[jit ') ? ALL_COMPILATIONS : profile.names[frame];
  };
  const nameless = Uint8Array.from({length: profile.frameCount}, (_, frame) => (isNameless(profile, frame) ? 1 : 0));
  const roles = Array.from({length: profile.frameCount}, (_, frame) => roleOf(frame));
  const managed = Uint8Array.from({length: profile.frameCount}, (_, frame) => (MANAGED.has(KINDS[profile.kinds[frame]]) ? 1 : 0));
  const callers = Array.from({length: profile.frameCount}, (_, frame) => (isRuntimeFunction(profile, frame) ? `[in ${profile.names[frame]}]` : null));
  const rows = new Map();
  // A walk in depth. `inside`: what a nameless leaf would be of, the name of a row; `outside`: the rows further out.
  const walk = [{node: 0, inside: null, outside: new Set()}];
  while (walk.length > 0) {
    const {node, inside, outside} = walk.pop();
    for (let at = firstChild[node]; at < firstChild[node + 1]; ++at) {
      const down = child[at], frame = tree.frame[down], role = roles[frame] ?? callers[frame];
      let within = outside;
      if (role !== null) {
        if (!rows.has(role)) rows.set(role, {frame, name: role, self: 0, total: 0, below: new Map()});
        if (!outside.has(role)) {
          rows.get(role).total += tree.total[down];
          within = new Set([...outside, role]);
        }
      }
      const keepsRole = callers[frame] !== null && inside !== null && !inside.startsWith('[in ');
      const now = keepsRole ? inside : (role ?? (managed[frame] ? null : inside));
      if (now !== null && nameless[frame] && tree.self[down] > 0) {
        const row = rows.get(now);
        row.self += tree.self[down];
        row.below.set(frame, (row.below.get(frame) ?? 0) + tree.self[down]);
      }
      walk.push({node: down, inside: now, outside: within});
    }
  }
  const byWeight = (below) => [...below].map(([frame, self]) => ({frame, self})).sort((a, b) => b.self - a.self);
  return [...rows.values()].filter(({self}) => self > 0).map((row) => ({...row, below: byWeight(row.below)}));
}

/** The rows of methodCosts with those of roleCosts: what a role has, its functions have no more. */
export function withRoles(costs, roles, profile) {
  const taken = new Map();
  for (const {below} of roles) {
    for (const {frame, self} of below) taken.set(frame, (taken.get(frame) ?? 0) + self);
  }
  const replaced = new Set(roles.map(({name}) => name));
  return [
    ...costs.filter(({frame}) => KINDS[profile.kinds[frame]] !== 'role' || !replaced.has(profile.names[frame])).map((row) => (taken.has(row.frame) ? {...row, self: row.self - taken.get(row.frame)} : row)),
    ...roles.map((role) => ({...role, selfBefore: 0, totalBefore: 0})),
  ];
}

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
