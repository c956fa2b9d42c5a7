// Search in the names of frames. Names come from strangers and so may patterns, and either can make a backtracking matcher
// run for years. Patterns are RE2's, which match in linear time, and read as those of --focus do.
import {RE2JS} from 're2js';
import {nodesThrough} from './transforms.js';

/**
 * @returns {{test: ?(text: string) => boolean, error: ?string}} test is null for an empty query; without a distinction of
 *     case
 */
export function matcherOf(query, isPattern) {
  if (query === '') return {test: null, error: null};
  if (!isPattern) {
    const lower = query.toLowerCase();
    return {test: (text) => text.toLowerCase().includes(lower), error: null};
  }
  try {
    const pattern = RE2JS.compile(query, RE2JS.CASE_INSENSITIVE);
    return {test: (text) => pattern.matcher(text).find(), error: null};
  } catch (error) {
    return {test: null, error: String(error.message ?? error)};
  }
}

/** Flags of the frames whose names match. */
export function matchingFrames(names, test) {
  return Uint8Array.from(names, (name) => (test(name) ? 1 : 0));
}

/** Weight of the stacks that have a flagged frame: each stack counts once. */
export function matchedWeight(tree, flags) {
  const through = nodesThrough(tree, (frame) => flags[frame] === 1);
  let weight = 0;
  for (let node = 1; node < tree.size; ++node) if (through[node]) weight += tree.self[node];
  return weight;
}
