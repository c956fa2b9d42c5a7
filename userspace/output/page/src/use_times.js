// The chosen part of the time of a recording, kept in the address; and the part of the profile that it means.
import {useCallback, useEffect, useMemo, useState} from 'preact/hooks';
import {rangeRule} from './range_diff.js';
import {isComparing, readTimeState, START, writeTimeState} from './time_state.js';

function snapped(times, state) {
  const snap = (range) => range && times.snap(range);
  return {...state, range: snap(state.range), base: snap(state.base)};
}

/** @returns {[object, (state: object) => void, boolean]}  of a profile without times always START; whether stacks have their times yet */
export function useTimeState(profile) {
  const {times} = profile, known = times?.hasStacks ?? false;
  const read = () => (known ? snapped(times, readTimeState(location.hash, times.durationNs)) : START);
  const [state, setState] = useState(read);
  const [ready, setReady] = useState(known && times.stacks !== null);
  useEffect(() => {
    if (!known) return undefined;
    const changed = () => setState(read());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, [times]);
  useEffect(() => {
    if (!times?.load) return;
    const load = () => times.load?.().then(() => {
      setState((now) => snapped(times, now));
      setReady(true);
      performance.mark('times-ready');
    });
    setTimeout(load, 50);  // what is there already is drawn first
  }, [times]);
  const change = useCallback((next) => {
    setState(next);
    const words = writeTimeState(next);
    history.replaceState(null, '', words === '' ? location.pathname + location.search : words);
  }, []);
  return [state, change, ready];
}

/** The profile with the weights of the chosen range, or itself. */
export function usePartOf(profile, state, ready) {
  const {range, base} = state;
  return useMemo(() => {
    if (!range || !ready) return profile;
    const begin = performance.now();
    const weights = profile.times.weightsIn(range);
    const compares = isComparing(state);
    const part = profile.within({range, base: compares ? base : null}, weights, compares ? profile.times.weightsIn(base) : null, compares ? rangeRule(profile, range, base) : null);
    performance.measure('time-range', {start: begin, end: performance.now()});
    return part;
  }, [profile, range, base, ready]);
}
