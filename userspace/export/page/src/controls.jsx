// The choices for the timeline: which time it shows, what it tells apart and counts, whose, and what is compared.
import {useEffect, useState} from 'preact/hooks';
import {Choice} from '../../../output/page/src/toolbar.jsx';
import {inert} from './format.js';
import {lengthOf, lengthText, parseTime, rangeText, sameRange, shift, timeText, zoom} from './time_range.js';
import {BY, clearRange, follow, hold, isComparing, isLive, setBase, showSpan, SPANS, VIEWS} from './view_state.js';

export function Controls({state, shown, now, update}) {
  const live = isLive(state);
  const spans = SPANS.includes(state.last) || state.last === null ? SPANS : [...SPANS, state.last].sort((a, b) => a - b);
  const to = (span) => update((before) => showSpan(before, span));
  return (
    <div class="toolbar controls" role="toolbar" aria-label="Time and series">
      <button class="live" aria-pressed={live} title={live ? 'Stand still' : 'Follow the time'} onClick={() => update((before) => (live ? hold(before, shown) : follow(before)))}>
        <span aria-hidden="true" class="dot" /> Live
      </button>
      <label class="field"><span>Last</span>
        <select value={live ? state.last : ''} onChange={(event) => update((before) => follow(before, Number(event.target.value)))}>
          {!live && <option value="" disabled>{lengthText(lengthOf(shown))}</option>}
          {spans.map((ms) => <option key={ms} value={ms}>{lengthText(ms)}</option>)}
        </select>
      </label>
      <span class="buttons" role="group" aria-label="Move and zoom">
        <button aria-label="Earlier" title="Earlier" onClick={() => to(shift(shown, -lengthOf(shown) / 2))}>‹</button>
        <button aria-label="Later" title="Later" onClick={() => to(shift(shown, lengthOf(shown) / 2))}>›</button>
        <button aria-label="Zoom out" title="Zoom out" onClick={() => to(zoom(shown, 2))}>−</button>
        <button aria-label="Zoom in" title={state.range ? 'Zoom to the range' : 'Zoom in'} onClick={() => to(state.range && !sameRange(state.range, shown) ? zoom(state.range, 1) : zoom(shown, 0.5))}>+</button>
      </span>
      <TypedTimes state={state} shown={shown} now={now} update={update} />
      <div class="field"><span>By</span><Choice label="Series by" value={state.by} onChange={(by) => update((before) => ({...before, by}))} options={Object.entries(BY)} /></div>
      <div class="field"><span>View</span><Choice label="View" value={state.view} onChange={(view) => update((before) => ({...before, view}))} options={Object.entries(VIEWS)} /></div>
    </div>
  );
}

/** The chosen range, or else the span, as texts that can be changed. */
function TypedTimes({state, shown, now, update}) {
  const live = isLive(state);
  const range = state.range ?? shown;
  const texts = live ? [`-${lengthText(state.last, 4).replace(/ min/, 'm').replace(/ /g, '')}`, 'now'] : [timeText(range.from, now), timeText(range.to, now)];
  const [from, setFrom] = useState(texts[0]), [until, setUntil] = useState(texts[1]), [error, setError] = useState('');
  useEffect(() => { setFrom(texts[0]); setUntil(texts[1]); setError(''); }, texts);
  const take = (event) => {
    event.preventDefault();
    const times = [parseTime(from, now), parseTime(until, now)];
    const bad = times.indexOf(null);
    if (bad >= 0) return setError(`“${[from, until][bad]}” is no time: 14:03, 14:03:10, 2026-11-22 14:03, -5m or now`);
    if (times[0] >= times[1]) return setError('The range ends before it begins.');
    setError('');
    const next = {from: Math.round(times[0]), to: Math.round(times[1])};
    return update((before) => ({...showSpan(before, {from: Math.min(next.from, shown.from), to: Math.max(next.to, shown.to)}), range: next,
      ...(next.from >= shown.from && next.to <= shown.to ? {} : {span: lengthOf(zoom(next, 1.2)) > lengthOf(shown) ? zoom(next, 1.2) : zoom(next, Math.max(1.2, lengthOf(shown) / lengthOf(next)))})}));
  };
  return (
    <form class="times" onSubmit={take}>
      <input aria-label="From" title="From: 14:03, 14:03:10, 2026-11-22 14:03, -5m" aria-invalid={error !== ''} value={from} spellcheck={false} autocomplete="off" onInput={(event) => setFrom(event.target.value)} />
      <span aria-hidden="true">–</span>
      <input aria-label="To" title="To: the same, or now" aria-invalid={error !== ''} value={until} spellcheck={false} autocomplete="off" onInput={(event) => setUntil(event.target.value)} />
      <button>Choose</button>
      {error && <output class="poor" role="alert">{error}</output>}
    </form>
  );
}

/** The chosen range in words, with a way to take it back. */
export function Chosen({state, shown, now, who, update}) {
  const {range, base} = state;
  const drop = (change) => () => update((before) => ({...before, ...change}));
  return (
    <nav class="crumbs chosen" aria-label="The choice">
      <output class="range-text" aria-live="polite">
        {range ? <><strong>{rangeText(range, now)}</strong> ({lengthText(lengthOf(range))})</>
          : isLive(state) ? <>The last {lengthText(state.last)}. <span class="quiet-text">Drag over the timeline to choose a range.</span></> : <>{rangeText(shown, now)} ({lengthText(lengthOf(shown))})</>}
      </output>
      {range && <button onClick={() => update(clearRange)}>Clear range</button>}
      <button onClick={() => update((before) => setBase(before, shown))} title="Other ranges are then compared with this one">Set as base</button>
      {base && (
        <span class="chip">{isComparing(state) ? 'compared with' : 'base'} {rangeText(base, now)}
          {isComparing(state) && range && <button aria-label="Swap range and base" title="Swap range and base" onClick={() => update((before) => ({...before, range: before.base, base: before.range}))}>⇄</button>}
          <button aria-label="Take back: base" onClick={drop({base: null})}>×</button>
        </span>
      )}
      {base && !isComparing(state) && <span class="quiet-text">Now choose the range to compare with it.</span>}
      {state.pid !== null && <span class="chip">process {who}<button aria-label={`Take back: process ${who}`} onClick={drop({pid: null})}>×</button></span>}
      {state.container !== null && <span class="chip">container {inert(state.container)}<button aria-label={`Take back: container ${inert(state.container)}`} onClick={drop({container: null})}>×</button></span>}
      {state.thread !== null && <span class="chip">thread {inert(state.thread)}<button aria-label={`Take back: thread ${inert(state.thread)}`} onClick={drop({thread: null})}>×</button></span>}
    </nav>
  );
}
