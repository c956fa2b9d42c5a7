// The costs that the table of methods shows. They take longer to make than the picture, which is shown first.
import {useEffect, useRef, useState} from 'preact/hooks';
import {layOut, ORDERS} from './frame_tree.js';
import {methodCosts, roleCosts, withRoles} from './methods.js';
import {KINDS} from './profile_data.js';

const PROCESS = KINDS.indexOf('process');

function costsOf(profile, tree, layout) {
  const shape = layout ?? layOut(tree, ORDERS.weight);
  const all = methodCosts(shape, profile.frameCount).filter(({frame}) => profile.kinds[frame] !== PROCESS);
  return profile.diff ? all : withRoles(all, roleCosts(shape, profile), profile);
}

/**
 * @param {Profile} profile
 * @param {FrameTree} tree
 * @param {?TreeLayout} layout  of the tree, if there is one already
 * @returns {{profile: Profile, tree: FrameTree, costs: object[]}} those of another part of the profile, until the next drawing
 */
export function useMethodCosts(profile, tree, layout) {
  const told = useRef(null), [, setDrawn] = useState(0);
  const make = () => { told.current = {profile, tree, costs: costsOf(profile, tree, layout)}; };
  // Numbers of frames mean the same in all parts of a profile, and something else in another one.
  if (told.current?.profile.names !== profile.names) make();
  useEffect(() => {
    if (told.current.profile === profile && told.current.tree === tree) return;
    make();
    setDrawn((count) => count + 1);
  }, [profile, tree]);
  return told.current;
}
