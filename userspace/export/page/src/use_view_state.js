// The state of view_state.js, held in the address.
import {useCallback, useEffect, useRef, useState} from 'preact/hooks';
import {readState, writeState} from './view_state.js';

const SAME_MOVE_MS = 1000;
const WRITE_MS = 100;  // browsers refuse an address that changes too often

/**
 * @returns {[object, (change: (state: object) => object, isStep?: boolean) => void]} isStep: one of many small changes, such as by an
 *     arrow key: those that follow each other are one for "back"
 */
export function useViewState() {
  const [state, setState] = useState(() => readState(location.hash));
  const current = useRef(state), lastStep = useRef(-Infinity), timer = useRef(null);
  const writeLate = useCallback(() => {
    if (timer.current === null) return;
    clearTimeout(timer.current);
    timer.current = null;
    history.replaceState(null, '', writeState(current.current));
  }, []);
  const update = useCallback((change, isStep = false) => {
    const now = performance.now();
    const isSameMove = isStep && now - lastStep.current < SAME_MOVE_MS;
    lastStep.current = isStep ? now : -Infinity;
    if (!isSameMove) writeLate();
    const before = writeState(current.current);
    const next = (current.current = change(current.current));
    setState(next);
    const hash = writeState(next);
    if (isSameMove) timer.current ??= setTimeout(writeLate, WRITE_MS);
    else if (hash !== before) history.pushState(null, '', hash);
  }, []);
  useEffect(() => {
    const moved = () => {
      clearTimeout(timer.current);
      timer.current = null;
      setState((current.current = readState(location.hash)));
    };
    addEventListener('popstate', moved);
    return () => removeEventListener('popstate', moved);
  }, []);
  return [state, update];
}
