// The view of the timeline, as a value that stands in the address behind the #, so that a view can be sent to somebody.
//
//   range   the part of the time that every view shows, or null: all of it
//   base    the part that it is compared with, or null
//   zoom    what the map shows instead of everything, or null
//   colour  what the map's cells mean, COLOURS
// Times are nanoseconds since the start of the recording; in the address they are seconds.
import {COLOURS} from './heat_map.js';

export const START = Object.freeze({range: null, base: null, zoom: null, colour: 'samples'});

const KEYS = ['range', 'base', 'zoom'];

function readRange(word) {
  const match = /^(\d{1,10}(?:\.\d{1,9})?)-(\d{1,10}(?:\.\d{1,9})?)$/.exec(word ?? '');
  const range = match && {from: Math.round(Number(match[1]) * 1e9), to: Math.round(Number(match[2]) * 1e9)};
  return range && range.from < range.to ? range : null;
}

const seconds = (ns) => String(Number((ns / 1e9).toFixed(6)));

/** @param {string} hash  anything; what makes no sense counts as not said  @param {number} endNs  of the recording */
export function readTimeState(hash, endNs) {
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  const within = (range) => (range && range.from < endNs ? {from: range.from, to: Math.min(range.to, Math.max(endNs, range.from + 1))} : null);
  const ranges = Object.fromEntries(KEYS.map((key) => [key, within(readRange(words.get(key)))]));
  return {...ranges, colour: Object.hasOwn(COLOURS, words.get('colour') ?? '') ? words.get('colour') : START.colour};
}

export function writeTimeState(state) {
  const words = new URLSearchParams();
  for (const key of KEYS) if (state[key]) words.set(key, `${seconds(state[key].from)}-${seconds(state[key].to)}`);
  if (state.colour !== START.colour) words.set('colour', state.colour);
  return words.size > 0 ? `#${words}` : '';
}

export const sameRange = (a, b) => a === b || (a !== null && b !== null && a.from === b.from && a.to === b.to);

/** One step back: from the comparison, the range, the zoom. null: there is nothing to take back. */
export function stepBack(state) {
  if (state.base) return {...state, base: null};
  if (state.range) return {...state, range: null};
  return state.zoom ? {...state, zoom: null} : null;
}

/** Whether two ranges are compared: not while the range is still the one that became the base. */
export const isComparing = ({range, base}) => base !== null && range !== null && !sameRange(range, base);

/** "1:02:03.5", "62.52 s" */
export function clockText(ns, longest) {
  if (longest < 120e9) return `${(ns / 1e9).toFixed(2)} s`;
  const whole = Math.round(ns / 1e7) / 100;
  const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60), rest = whole % 60;
  const two = (number) => String(number).padStart(2, '0');
  const fraction = Math.abs(rest - Math.round(rest)) > 5e-3 ? rest.toFixed(2).padStart(5, '0') : two(Math.round(rest));
  return longest >= 3600e9 ? `${hours}:${two(minutes)}:${fraction}` : `${minutes}:${fraction}`;
}
