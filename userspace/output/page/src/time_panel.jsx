// The timeline of a recording: a map of its time, and a lane for each thread. Every other view shows the time that is chosen here.
import {useMemo, useState} from 'preact/hooks';
import {COLOURS, cpuNs, endOf, gridOf, mapValues, timeOf, valueText} from './heat_map.js';
import {LanesView} from './lanes_view.jsx';
import {MapView} from './map_view.jsx';
import {shareText, weightText} from './text.js';
import {clockText, isComparing, sameRange} from './time_state.js';
import {Choice} from './toolbar.jsx';

/**
 * @param {Profile} profile  of the whole time
 * @param {Profile} part     of what is chosen
 * @param {object} state     of time_state.js
 */
export function TimePanel({profile, part, state, onState, wanted, picked, onPick, flags, themeName, ready}) {
  const {times} = profile;
  const [isOpen, setIsOpen] = useState(true);
  const [pending, setPending] = useState(null);  // while it is drawn with the pointer or the keyboard
  const span = state.zoom ?? {from: 0, to: times.durationNs};
  const known = times.groupSteps;
  const stepNs = state.colour === 'search' ? times.stacks?.stepNs : known?.stepNs;
  const grid = useMemo(() => known && gridOf(span, stepNs ?? known.stepNs), [times, stepNs, span.from, span.to]);
  const {colour} = state, searches = colour === 'search';
  const values = useMemo(() => grid && mapValues(profile, times, grid, {colour, wanted, flags}), [profile, grid, colour, wanted, searches ? flags : null, searches && times.stacks]);
  if (!times.hasStacks) return <p class="note">The times of the samples are not in this page: they are too far apart, or too many.</p>;

  const snap = (range) => times.snap({from: Math.max(0, range.from), to: Math.min(times.durationNs, range.to)});
  const choose = (range, compares) => {
    const base = compares && state.range ? (state.base ?? state.range) : state.base;
    onState({...state, range: snap(range), base});
  };
  const acts = {
    choose,
    pending: setPending,
    compare: () => state.range && onState({...state, base: sameRange(state.base, state.range) ? null : state.range}),
    all: () => choose(span, false),
    zoomIn: () => state.range && onState({...state, zoom: state.range}),
    zoomOut: () => onState({...state, zoom: null}),
  };
  const colours = Object.entries(COLOURS).filter(([key]) => (key !== 'cpu' || cpuNs(profile) > 0) && (key !== 'pauses' || times.events.some(({kind}) => kind === 'pause')))
    .map(([key, text]) => [key, text]);
  const clock = (ns) => clockText(ns, times.durationNs);
  const describe = (cell) => `${clock(timeOf(grid, cell))}: ${valueText(profile, colour, values[cell])}`;
  const shown = {state, pending, acts, clock, themeName};
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="timeline-bar">
        <button class="quiet timeline-open" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}><span aria-hidden="true">{isOpen ? '\u25be' : '\u25b8'}</span> Timeline</button>
        {isOpen && <Choice label="Colour of the map" value={state.colour} onChange={(colour) => onState({...state, colour})} options={colours} />}
        <Chosen {...{profile, part, state, acts, onState, ready}} />
      </div>
      {isOpen && <MapView {...shown} {...{grid, values, describe}} />}
      {isOpen && <LanesView {...shown} {...{profile, times, picked, onPick}} span={{from: grid.from, to: endOf(grid)}} />}
      {isOpen && <p class="timeline-note">{resolutionText(profile, grid, ready)}</p>}
    </section>
  );
}

/** The chosen time in words, and what can be done with it. */
function Chosen({profile, part, state, acts, onState, ready}) {
  const {range, base, zoom} = state, {durationNs} = profile.times;
  const clock = ({from, to}) => `${clockText(from, durationNs)} \u2013 ${clockText(to, durationNs)}`;
  const weightOf = (one) => one.threads.reduce((sum, {weight}) => sum + weight, 0);
  return (
    <div class="timeline-chosen">
      <output aria-live="polite">
        {range && !ready ? `${clock(range)}: a moment, the times of the stacks are read` : range ? `${clock(range)}: ${weightText(weightOf(part), profile.about.unit)}, ${shareText(weightOf(part), weightOf(profile))}` : 'All of the time. Drag over the map, or use its keys, to choose a part.'}
        {base && ready && (isComparing(state) ? `; compared with ${clock(base)}` : '; choose the range to compare it with')}
      </output>
      {range && <button aria-pressed={base !== null} title="Then choose another range (c)" onClick={() => onState({...state, base: base ? null : range})}>Compare</button>}
      {range && !sameRange(range, zoom) && <button onClick={acts.zoomIn}>Zoom</button>}
      {zoom && <button onClick={acts.zoomOut}>Show all</button>}
      {range && <button onClick={() => onState({...state, range: null, base: null})}>Clear</button>}
    </div>
  );
}

const lengthText = (ns) => (ns < 1e9 ? `${ns / 1e6} ms` : ns < 60e9 ? `${ns / 1e9} s` : `${ns / 60e9} min`);

function resolutionText(profile, grid, ready) {
  const {times} = profile;
  const words = [`A column is ${lengthText(grid.columnNs)}, a cell ${lengthText(grid.cellNs)}.`];
  if (ready && times.stacks.stepNs > 2e7) words.push(`This page knows the times of stacks in steps of ${lengthText(times.stacks.stepNs)}: finer ones would make it too large.`);
  if (times.untimed > 0) words.push(`${weightText(times.untimed, profile.about.unit)} have no time and are in no range.`);
  return words.join(' ');
}
