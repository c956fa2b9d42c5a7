// The view of the page as a value: it stands in the address behind the #, so that a view can be sent to somebody and the browser's
// back and forward work.
//
//   last     milliseconds before now that the timeline shows while it follows the time
//   span     what the timeline shows instead, or null. With `last` as well it stands still only as long as a range is chosen.
//   range    the part that was chosen, or null: all that the timeline shows
//   base     the range that is compared with, or null
//   by       what the timeline tells apart, BY
//   view     what is counted, VIEWS
//   pid, container, thread  whose samples; null: all
//   tab      the panel below the timeline, TABS
//   lanes    'open': the map and the lanes are shown; null: not
//   colour   what the map's cells mean, COLOURS of lanes_model.js
//   recording  id of the flight recording that is open in that tab, or null
import {COLOURS} from './lanes_model.js';
import {DAY, HOUR, lengthOf, MIN_SPAN, MINUTE, sameRange} from './time_range.js';

export const VIEWS = {cpu: 'CPU', jit: 'JIT', pause: 'Pauses', 'suspend-delay': 'Suspend delay', alloc: 'Allocations', 'off-cpu': 'Waits'};
export const BY = {process: 'Process', container: 'Container', state: 'Thread states'};
export const TABS = {profile: 'Flame graph', pauses: 'Pauses', jit: 'JIT', health: 'Health', recordings: 'Flight recordings'};
export const SPANS = [5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY];

export const START = Object.freeze({
  last: SPANS[0], span: null, range: null, base: null, by: 'process', view: 'cpu', pid: null, container: null, thread: null, tab: 'profile', recording: null,
  lanes: null, colour: 'cpu',
});

// --- the address ----------------------------------------------------------------------------------------------------------

const rangeWord = ({from, to}) => `${from}-${to}`;

function readRange(word) {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(word ?? '');
  const range = match && {from: Number(match[1]), to: Number(match[2])};
  return range && range.from < range.to ? range : null;
}

/** @param {string} hash  anything; what makes no sense counts as not said */
export function readState(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  const oneOf = (key, texts) => (Object.hasOwn(texts, words.get(key) ?? '') ? words.get(key) : START[key]);
  const number = (key) => (/^\d{1,10}$/.test(words.get(key) ?? '') ? Number(words.get(key)) : null);
  const span = readRange(words.get('span')), last = number('last');
  return {
    last: last !== null && last * 1000 >= MIN_SPAN ? last * 1000 : span ? null : START.last,
    span, range: span && readRange(words.get('range')), base: readRange(words.get('base')),
    by: oneOf('by', BY), view: oneOf('view', VIEWS), tab: oneOf('tab', TABS),
    pid: number('pid'), container: words.get('container') || null, thread: words.get('thread') || null, recording: words.get('recording') || null,
    lanes: words.get('lanes') === 'open' ? 'open' : null, colour: oneOf('colour', COLOURS),
  };
}

export function writeState(state) {
  const words = new URLSearchParams();
  const {last, span, range, base} = state;
  if (last !== null && (last !== START.last || span)) words.set('last', last / 1000);
  for (const [key, value] of Object.entries({span, range, base})) if (value) words.set(key, rangeWord(value));
  for (const key of ['by', 'view', 'pid', 'container', 'thread', 'tab', 'recording', 'lanes', 'colour']) if (state[key] !== START[key]) words.set(key, state[key]);
  return `#${words}`;
}

// --- what the user does. `shown`: the range that the timeline shows just now ---------------------------------------------------------

export const isLive = (state) => state.span === null;

// The server's times have fractions of a millisecond; an address need not.
const whole = ({from, to}) => ({from: Math.floor(from), to: Math.ceil(to)});

/** A range is chosen: what is shown then stands still. */
export function choose(state, wanted, shown) {
  const reach = whole(state.span ?? shown), range = whole(wanted);
  const span = {from: Math.min(reach.from, range.from), to: Math.max(reach.to, range.to)};
  return {...state, range, span};
}

/** The same, and what was chosen before is the base of a comparison. */
export function chooseToCompare(state, wanted, shown) {
  return choose(state.range ? {...state, base: state.base ?? state.range} : state, wanted, shown);
}

export function clearRange(state) {
  return {...state, range: null, span: state.last === null ? state.span : null};
}

export function follow(state, last = state.last ?? lengthOf(state.span)) {
  return {...state, last: Math.max(MIN_SPAN, Math.round(last / 1000) * 1000), span: null, range: null};
}

export function hold(state, shown) {
  return {...state, last: null, span: whole(state.span ?? shown)};
}

/** The timeline shows another span. */
export function showSpan(state, span) {
  return {...state, last: null, span: whole(span)};
}

/** The chosen range, or else all that is shown, becomes what other ranges are compared with. */
export function setBase(state, shown) {
  const chosen = choose(state, state.range ?? state.span ?? shown, shown);
  return {...chosen, base: chosen.range};
}

/** who: {pid} or {container}. A container's processes are what one wants to see next. */
export function narrow(state, who) {
  return {...state, ...who, by: who.container === undefined ? state.by : 'process'};
}

export function openRecording(state, id) {
  return {...state, tab: 'recordings', recording: id};
}

/** Whether two ranges are compared: not while the range is still the one that became the base. */
export const isComparing = (state) => state.base !== null && !sameRange(state.base, state.range);

// --- parameters of the API --------------------------------------------------------------------------------------------------

const seconds = (ms) => Number((ms / 1000).toFixed(3));
const ends = ({from, to}) => ({from: seconds(from), to: seconds(to)});

export function spanParameters({span, last}) {
  return span ? ends(span) : {from: `-${last / 1000}s`, to: 'now'};
}

export function rangeParameters(state) {
  return state.range ? ends(state.range) : spanParameters(state);
}

export function baseParameters({base}) {
  return {base_from: seconds(base.from), base_to: seconds(base.to)};
}

export function whoParameters({pid, container, thread}) {
  return {pid, container, thread};
}
