// Hooks: what the server says, kept up to date.
import {useCallback, useEffect, useRef, useState} from 'preact/hooks';
import {getJson} from './api.js';

const EMPTY = {data: null, error: null, loading: false, url: null, done: null};  // done: the question that was answered or failed last
const CALM_MS = 250;  // a held key changes the question thirty times a second

/**
 * The answer to a question. Until that to a new question is here, the one before goes on being shown.
 * @param {?string} url  null: nothing is asked
 * @param {number} tick  asked again when it changes, unless an answer is still on its way
 * @param {(url: string, signal: AbortSignal) => Promise} read  must be the same function each time
 * @returns {{data: any, error: ?ApiError, loading: boolean, url: ?string, retry: () => void}} url: the question that data answers
 */
export function useResource(url, tick, read = getJson) {
  const [state, setState] = useState(EMPTY);
  const running = useRef(null);
  const ask = useCallback(async (wanted) => {
    running.current?.abort();
    const control = (running.current = new AbortController());
    setState((before) => ({...before, loading: true}));
    try {
      const data = await read(wanted, control.signal);
      if (!control.signal.aborted) setState({data, error: null, loading: false, url: wanted, done: wanted});
    } catch (error) {
      // Data that answers another question must not stand below this error.
      if (!control.signal.aborted) setState((before) => ({data: before.url === wanted ? before.data : null, url: before.url, error, loading: false, done: wanted}));
    }
    if (running.current === control) running.current = null;
  }, [read]);
  const asked = useRef({url: null, at: -Infinity});
  useEffect(() => {
    const isAgain = asked.current.url === url;
    asked.current.url = url;
    if (url === null) {
      running.current?.abort();
      running.current = null;
      setState(EMPTY);
      return undefined;
    }
    if (isAgain && running.current !== null) return undefined;
    const now = () => {
      asked.current.at = performance.now();
      ask(url);
    };
    const wait = isAgain ? 0 : CALM_MS - (performance.now() - asked.current.at);
    if (wait <= 0) {
      now();
      return undefined;
    }
    const timer = setTimeout(now, wait);
    return () => clearTimeout(timer);
  }, [url, tick]);
  useEffect(() => () => running.current?.abort(), []);
  return {...state, loading: state.loading || state.done !== url, retry: () => ask(url)};
}

/** A number that grows every `period` milliseconds while `on` and the page is in sight; at once when it comes into sight again. */
export function useTick(on, period) {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (!on) return undefined;
    const next = () => { if (!document.hidden) setTick((now) => now + 1); };
    const timer = setInterval(next, period);
    document.addEventListener('visibilitychange', next);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', next);
    };
  }, [on, period]);
  return tick;
}
