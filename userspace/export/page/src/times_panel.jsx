// The work of threads over time: the map and the lanes of a recording's page, fed by the server. A range that is chosen on them is the page's own.
import {useEffect, useMemo, useState} from 'preact/hooks';
import {endOf, gridOf, mapValues, timeOf, valueText} from '../../../output/page/src/heat_map.js';
import {LanesView} from '../../../output/page/src/lanes_view.jsx';
import {MapView} from '../../../output/page/src/map_view.jsx';
import {Choice} from '../../../output/page/src/toolbar.jsx';
import {COLOURS, rangeOfLanes, rangeOfPage, readLanes, withPauses} from './lanes_model.js';
import {Failure} from './notes.jsx';
import {lanesUrl} from './questions.js';
import {useResource} from './resource.js';
import {getRawJson} from './api.js';
import {lengthText, timeText} from './time_range.js';

const SEARCH_DELAY_MS = 300;

/** For useResource. */
async function getLanes(url, signal) {
  return readLanes(await getRawJson(url, signal));
}

/**
 * @param {object} state     of view_state.js
 * @param {object[]} pauses  of the timeline
 * @param {object} events    choose(range, compares), show(span), base(), thread(thread), lanes(change)
 */
export function TimesPanel({state, shown, pauses, tick, now, themeName, events}) {
  const isOpen = state.lanes === 'open', {colour} = state;
  const [method, setMethod] = useState('');  // not in the address, which has no names of methods
  const answered = useResource(isOpen ? lanesUrl(state) : null, tick, getLanes);
  const found = useResource(isOpen && colour === 'search' && method !== '' ? lanesUrl(state, method) : null, tick, getLanes);
  const lanes = useMemo(() => answered.data && withPauses(answered.data, pauses), [answered.data, pauses]);
  const colours = Object.entries(COLOURS).filter(([key]) => key !== 'samples' || lanes?.hasWaits);
  return (
    <section class="live-times" aria-label="Map and lanes" aria-busy={isOpen && (answered.loading || found.loading)}>
      <div class="timeline-bar">
        <button class="quiet timeline-open" aria-expanded={isOpen} onClick={() => events.lanes({lanes: isOpen ? null : 'open'})}><span aria-hidden="true">{isOpen ? '\u25be' : '\u25b8'}</span> Map and lanes of threads</button>
        {isOpen && lanes && <Choice label="Colour of the map" value={colour} onChange={(next) => events.lanes({colour: next})} options={colours} />}
        {isOpen && colour === 'search' && <MethodField method={method} onMethod={setMethod} />}
      </div>
      {answered.error && <Failure error={answered.error} onRetry={answered.retry} />}
      {found.error && <Failure error={found.error} onRetry={found.retry} />}
      {isOpen && !lanes && !answered.error && <p class="note" role="status">Loading what threads did…</p>}
      {isOpen && lanes && (lanes.isEmpty || lanes.profile.threads.length === 0
        ? <p class="note" role="status">No thread ran in this time, as far as was recorded.</p>
        : <Times {...{lanes, state, shown, now, themeName, events}} found={found.data} />)}
    </section>
  );
}

function MethodField({method, onMethod}) {
  const [text, setText] = useState(method);
  useEffect(() => {
    const timer = setTimeout(() => onMethod(text), SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <input class="method-field" type="search" aria-label="Methods on the map" placeholder="Part of a method’s name" spellcheck={false} autocomplete="off" value={text} onInput={(event) => setText(event.target.value)} />;
}

function Times({lanes, found, state, shown, now, themeName, events}) {
  const {profile, times, span, origin} = lanes, {colour} = state;
  const [pending, setPending] = useState(null);
  const {stepNs} = times.groupSteps;
  const grid = useMemo(() => gridOf(span, stepNs), [span.from, span.to, stepNs]);
  const thread = profile.threads.find(({tid, name, pid}) => state.thread !== null && pid === state.pid && (String(tid) === state.thread || name === state.thread));
  const values = useMemo(() => mapOf(lanes, found, grid, colour, thread), [lanes, found, grid, colour, thread]);
  const clock = (ns) => timeText(origin + ns / 1e6, now);
  const describe = (cell) => `${clock(timeOf(grid, cell))}: ${valueText(profile, colour, values[cell])}`;
  const ranges = {range: rangeOfLanes(lanes, state.range), base: rangeOfLanes(lanes, state.base), colour};
  const acts = {
    choose: (range, compares) => events.choose(rangeOfPage(lanes, range), compares), pending: setPending, compare: events.base, all: () => events.choose(shown, false),
    zoomIn: () => state.range && events.show(state.range), zoomOut: () => events.show({from: shown.from - (shown.to - shown.from) / 2, to: shown.to + (shown.to - shown.from) / 2}),
  };
  const common = {state: ranges, pending, acts, clock, themeName};
  const others = profile.threads.find(({isOthers}) => isOthers);
  return (
    <>
      <MapView {...common} {...{grid, values, describe}} />
      <LanesView {...common} {...{profile, times}} span={{from: grid.from, to: endOf(grid)}} picked={{process: null, threads: thread ? [thread] : null}}
        onPick={({threads}) => events.thread(threads?.[0] ?? null)} />
      <p class="timeline-note">
        A column is {lengthText(grid.columnNs / 1e6)}, a cell {lengthText(grid.cellNs / 1e6)}.
        {others && ` The ${profile.threads.length - 1} threads with most time have lanes of their own; ${others.label} ${others.label.startsWith('1 ') ? 'is' : 'are'} one lane.`}
        {' '}Of pauses the 200 longest are marked.
      </p>
    </>
  );
}

/** The map is of all threads, or of the one that was chosen. */
function mapOf(lanes, found, grid, colour, thread) {
  const wanted = (one) => !thread || one.index === thread.index;
  if (colour !== 'search') return mapValues(lanes.profile, lanes.times, grid, {colour, wanted, flags: null});
  if (!found) return new Float64Array(grid.columns * grid.rows);
  // Their threads have other numbers, and their times another begin.
  const same = (one) => !thread || (one.pid === thread.pid && one.tid === thread.tid);
  const moved = {...grid, from: grid.from + (lanes.origin - found.origin) * 1e6};
  return mapValues(found.profile, found.times, moved, {colour: 'samples', wanted: same, flags: null});
}
