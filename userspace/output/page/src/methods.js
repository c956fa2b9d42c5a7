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
export function roleCosts({tree}, profile) {
  const {nameless, managed, role, names, firstCaller} = rolesOf(profile);
  const {frame, parent, self, total, size} = tree;
  const rows = new Map();  // by number of a role
  const inside = new Int32Array(size).fill(NONE);  // what a nameless leaf below would be of
  const around = new Int32Array(size);             // the nearest node at or above that has a role; 0: none
  for (let node = 1; node < size; ++node) {
    const above = parent[node], own = role[frame[node]];
    around[node] = own === NONE ? around[above] : node;
    if (own !== NONE) {
      if (!rows.has(own)) rows.set(own, {frame: frame[node], name: names[own], self: 0, total: 0, below: new Map()});
      let outer = around[above];
      while (outer > 0 && role[frame[outer]] !== own) outer = around[parent[outer]];
      if (outer === 0) rows.get(own).total += total[node];
    }
    // A function of the runtime says less than what the runtime was called for.
    const keeps = own >= firstCaller && inside[above] !== NONE && inside[above] < firstCaller;
    inside[node] = keeps ? inside[above] : own !== NONE ? own : managed[frame[node]] ? NONE : inside[above];
    if (inside[node] !== NONE && nameless[frame[node]] && self[node] > 0) {
      const row = rows.get(inside[node]);
      row.self += self[node];
      row.below.set(frame[node], (row.below.get(frame[node]) ?? 0) + self[node]);
    }
  }
  const byWeight = (below) => [...below].map(([at, weight]) => ({frame: at, self: weight})).sort((a, b) => b.self - a.self);
  return [...rows.values()].filter((row) => row.self > 0).map((row) => ({...row, below: byWeight(row.below)}));
}

const NONE = -1;
const known = new WeakMap();  // by the names of a profile, which parts of its time share

/**
 * Says of each frame whether it is nameless or managed, and the number of its role or of itself as a caller, or NONE.
 * names: of these numbers; those from firstCaller on are of callers.
 */
function rolesOf(profile) {
  const found = known.get(profile.names);
  if (found?.role.length === profile.frameCount) return found;
  const {frameCount, kinds, names: texts} = profile;
  const flags = (test) => Uint8Array.from({length: frameCount}, (_, frame) => (test(frame) ? 1 : 0));
  const ids = new Map(), role = new Int32Array(frameCount).fill(NONE);
  const number = (frame, name) => {
    if (!ids.has(name)) ids.set(name, ids.size);
    role[frame] = ids.get(name);
  };
  for (let frame = 0; frame < frameCount; ++frame) {
    if (KINDS[kinds[frame]] === 'role') number(frame, texts[frame].startsWith('[jit ') ? ALL_COMPILATIONS : texts[frame]);
  }
  const firstCaller = ids.size;
  for (let frame = 0; frame < frameCount; ++frame) {
    if (role[frame] === NONE && isRuntimeFunction(profile, frame)) number(frame, `[in ${texts[frame]}]`);
  }
  const roles = {role, names: [...ids.keys()], firstCaller, nameless: flags((frame) => isNameless(profile, frame)), managed: flags((frame) => MANAGED.has(KINDS[kinds[frame]]))};
  known.set(profile.names, roles);
  return roles;
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
