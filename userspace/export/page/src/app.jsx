// The page: a timeline, what is chosen on it, and below it panels that tell about the chosen range.
import {useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {accountInShort} from '../../../output/page/src/account.js';
import {useTheme} from '../../../output/page/src/theme.js';
import {getRawJson, getText} from './api.js';
import {Chosen, Controls} from './controls.jsx';
import {bytesText, countText} from './format.js';
import {accountOf} from './health.js';
import {HealthPanel} from './health_panel.jsx';
import {Help} from './help.jsx';
import {JitPanel} from './jit_panel.jsx';
import {Failure} from './notes.jsx';
import {PausesPanel} from './pauses_panel.jsx';
import {ProcessFacts} from './process_facts.jsx';
import {emptyText, getProfile, ProfilePanel} from './profile_panel.jsx';
import {healthUrl, jitUrl, LICENCES_URL, pausesUrl, profileUrl, RECORDINGS_URL, seriesBy, STATUS_URL, timelineUrl} from './questions.js';
import {RecordingView} from './recording_view.jsx';
import {RecordingsPanel} from './recordings_panel.jsx';
import {useResource, useTick} from './resource.js';
import {TimelinePanel} from './timeline_panel.jsx';
import {TimesPanel} from './times_panel.jsx';
import {coverageOf, reachOf, readTimeline} from './timeline_model.js';
import {DAY, HOUR, lengthOf, MINUTE, SECOND, zoom} from './time_range.js';
import {useViewState} from './use_view_state.js';
import {choose, chooseToCompare, clearRange, follow, hold, isComparing, isLive, narrow, openRecording, setBase, showSpan, TABS} from './view_state.js';

const REFRESH_MS = 10 * SECOND;
const NOBODY = [];

export function App() {
  const [state, update] = useViewState();
  const [themeName, setThemeName] = useTheme();
  const [licences, setLicences] = useState(null);  // not null: help is shown
  const [width, setWidth] = useState(innerWidth);
  const live = isLive(state);

  const [period, setPeriod] = useState(REFRESH_MS);
  const tick = useTick(live, period);
  const status = useResource(STATUS_URL, tick);
  const recordings = useResource(RECORDINGS_URL, tick);
  const getTimeline = useTimelineReader(seriesBy(state));
  const answered = useResource(timelineUrl(state, width), tick, getTimeline);
  // One answer says what threads do and whose they are.
  const ofStates = useMemo(() => answered.data && {...answered.data, series: answered.data.states}, [answered.data]);
  const timeline = {...answered, data: state.by === 'state' ? ofStates : answered.data};
  const health = useResource(healthUrl(state), tick);
  const profile = useResource(state.tab === 'profile' ? profileUrl(state) : null, tick, getProfile);
  const pauses = useResource(state.tab === 'pauses' ? pausesUrl(state) : null, tick);
  const jit = useResource(state.tab === 'jit' ? jitUrl(state) : null, tick);

  // The server's clock is the one that counts: it stands still while the page does.
  const now = useMemo(() => status.data?.now ?? Date.now(), [status.data]);
  const grid = timeline.data?.grid;
  const shown = useMemo(() => {
    if (state.span) return state.span;
    return grid?.steps > 0 ? reachOf(grid) : {from: now - state.last, to: now};
  }, [state.span, grid, state.last, now]);
  const range = state.range ?? shown;
  // A refresh that cannot show anything new is a waste of the host's time.
  useEffect(() => { if (grid?.step > 0) setPeriod(Math.max(REFRESH_MS, grid.step)); }, [grid?.step]);

  const picture = useRef(null);
  const clamped = (span) => (lengthOf(span) >= SECOND ? zoom(span, 1) : span);
  const pickPid = useCallback((pid) => update((before) => narrow(before, {pid})), []);
  const pickPause = useCallback((pause) => update((before) => choose(before, around(pause, status.data?.window_ms ?? REFRESH_MS, now), shown)), [status.data, now, shown]);
  const events = {
    choose: (next, isStep) => update((before) => (next ? choose(before, next, shown) : clearRange(before)), isStep),
    show: (span) => update((before) => showSpan(before, clamped(span)), true),
    base: () => update((before) => setBase(before, shown)),
    pick: ({narrowTo}) => update((before) => narrow(before, narrowTo)),
    pickPause,
    pickFlag: ({id}) => update((before) => openRecording(before, id)),
  };

  const lanesEvents = {
    choose: (next, compares) => update((before) => (compares ? chooseToCompare : choose)(before, next, shown)),
    show: events.show, base: events.base, lanes: (change) => update((before) => ({...before, ...change})),
    thread: (thread) => update((before) => narrow(before, thread ? {pid: thread.pid, thread: thread.tid ? String(thread.tid) : null} : {thread: null})),
  };

  const toggleLive = () => update((before) => (isLive(before) ? hold(before, shown) : follow(before)));
  const help = useCallback(() => getText(LICENCES_URL).then(setLicences, (error) => setLicences(error.message)), []);
  useEffect(() => {
    const keyDown = (event) => {
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.altKey || event.metaKey || licences !== null) return;
      const act = {'?': help, t: () => picture.current?.focus(), l: toggleLive}[event.key];
      if (act) act();
    };
    const resized = () => setWidth(innerWidth);
    addEventListener('keydown', keyDown);
    addEventListener('resize', resized);
    return () => {
      removeEventListener('keydown', keyDown);
      removeEventListener('resize', resized);
    };
  });
  useLayoutEffect(() => { document.title = status.data?.host ? `${status.data.host} – clrsampler` : 'clrsampler'; }, [status.data?.host]);

  const who = useProcessName(state.pid, answered.data);
  const recorded = !timeline.data || coverageOf(timeline.data, range) > 0;
  const list = recordings.data?.recordings ?? NOBODY;
  const counts = {pauses: pauses.data?.count, recordings: list.length || undefined};
  return (
    <>
      <Head status={status} health={health} themeName={themeName} onTheme={setThemeName} onHelp={help} onHealth={() => update((before) => ({...before, tab: 'health'}))} />
      <Controls state={state} shown={shown} now={now} update={update} />
      <section class="timeline-section" aria-label="Timeline" aria-busy={timeline.loading}>
        {timeline.error && <Failure error={timeline.error} onRetry={timeline.retry} />}
        {timeline.data && (timeline.data.grid.steps > 0
          ? <TimelinePanel timeline={timeline.data} state={state} shown={shown} range={range} recordings={list} themeName={themeName} now={now} events={events} keyRef={picture} />
          : null)}
        {timeline.data && <TimelineNote timeline={timeline.data} state={state} />}
        {!timeline.data && !timeline.error && <p class="note timeline-host" role="status">Loading the timeline…</p>}
      </section>
      {timeline.data?.grid.steps > 0 && (
        <TimesPanel {...{state, shown, tick, now, themeName}} pauses={timeline.data.pauses} events={lanesEvents} />
      )}
      <Chosen state={state} shown={shown} now={now} who={who} update={update} />
      {state.pid !== null && <ProcessFacts key={state.pid} state={state} />}
      <Tabs state={state} counts={counts} update={update} />
      <main class={`panel-host panel-${state.tab}`} role="tabpanel" aria-labelledby={`tab-${state.tab}`}>
        {state.tab === 'profile' && (
          <ProfilePanel resource={profile} empty={emptyText(state.view, recorded, isComparing(state))} facts={[isComparing(state) ? 'difference from the base' : null].filter(Boolean)}
            urlOfFormat={(format) => profileUrl(state, format)} themeName={themeName} listens={licences === null} />
        )}
        {state.tab === 'pauses' && <PausesPanel resource={pauses} now={now} onPause={pickPause} onProcess={pickPid} />}
        {state.tab === 'jit' && <JitPanel resource={jit} onProcess={pickPid} />}
        {state.tab === 'health' && <HealthPanel resource={health} status={status.data} range={state.range ?? state.span ?? {from: now - state.last, to: now}} now={now} />}
        {state.tab === 'recordings' && (state.recording === null
          ? <RecordingsPanel resource={recordings} now={now} onOpen={({id}) => update((before) => openRecording(before, id))} onProcess={pickPid} />
          : <RecordingView key={state.recording} id={state.recording} recording={list.find(({id}) => id === state.recording)} now={now} themeName={themeName} listens={licences === null}
              onClose={() => update((before) => openRecording(before, null))}
              onRange={(chosen) => update((before) => ({...choose(showSpan(before, zoom(chosen, 3)), chosen, shown)}))} />)}
      </main>
      {licences !== null && <Help licences={licences} onClose={() => setLicences(null)} />}
    </>
  );
}

/** A reader for useResource. */
function useTimelineReader(by) {
  return useCallback(async (url, signal) => readTimeline(await getRawJson(url, signal), by), [by]);
}

/**
 * The windows that a pause lies in, or the minute or hour that became of them. A part belongs to a range if it begins in it, so the one with the
 * pause has begun since one length before.
 */
function around({t, pause_ms: ms}, window, now) {
  const kept = now - t < 23 * HOUR ? window : now - t < 6.9 * DAY ? MINUTE : HOUR;
  return {from: Math.floor(t - kept) + 1, to: Math.ceil(t + Math.max(ms, 1))};
}

/** A process's name as long as the timeline has told it, which a shared address does not. */
function useProcessName(pid, timeline) {
  const names = useRef(new Map());
  for (const {pid: one, label} of timeline?.series ?? []) if (one !== null) names.current.set(one, label);
  return names.current.get(pid) ?? String(pid);
}

function TimelineNote({timeline: {grid, series, covered}, state}) {
  if (grid.steps === 0 || !covered.includes(1)) {
    return <p class="note" role="status">Nothing was recorded in this time: clrsampler was not running then, or its history does not reach back so far any more.</p>;
  }
  if (series.length === 0 && state.by === 'state') return <p class="note" role="status">No waits were recorded in this time: serve --waits does.</p>;
  if (series.length === 0) {
    const filtered = state.pid !== null || state.container !== null || state.thread !== null;
    return <p class="note" role="status">{filtered ? 'Nothing that was chosen ran in this time. Take back a filter below.' : 'No process that is watched ran in this time.'}</p>;
  }
  return null;
}

function Tabs({state, counts, update}) {
  const names = Object.keys(TABS);
  const open = (tab) => update((before) => ({...before, tab, recording: null}));
  const keyDown = (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const next = names[(names.indexOf(state.tab) + step + names.length) % names.length];
    open(next);
    document.getElementById(`tab-${next}`).focus();
    event.preventDefault();
  };
  return (
    <div class="tabs" role="tablist" aria-label="About the chosen range" onKeyDown={keyDown}>
      {names.map((tab) => (
        <button key={tab} id={`tab-${tab}`} role="tab" aria-selected={state.tab === tab} tabIndex={state.tab === tab ? 0 : -1} onClick={() => open(tab)}>
          {TABS[tab]}{counts[tab] !== undefined && <small> {countText(counts[tab])}</small>}
        </button>
      ))}
    </div>
  );
}

function Head({status, health, themeName, onTheme, onHelp, onHealth}) {
  const {data, error} = status;
  const account = health.data && accountInShort(accountOf(health.data));
  const facts = data ? [
    `${data.cpus} ${data.cpus === 1 ? 'CPU' : 'CPUs'}`, data.frequency_hz > 0 ? `${data.frequency_hz} Hz a CPU` : 'nothing recorded yet', data.store ? `${bytesText(data.store.bytes)} of history` : 'no history kept',
  ] : [];
  return (
    <header class="head">
      <div class="head-text">
        <h1>{data?.host ?? 'clrsampler'}</h1>
        <p class="facts">{error ? <span class="poor">{error.message}</span> : facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
        {(data?.notices ?? []).slice(0, 3).map(({text, hint}) => <p key={text} class="poor" role="status">{text}{hint && ` Hint: ${hint}`}</p>)}
      </div>
      <div class="head-buttons">
        {account?.text && (
          <button class={`badge ${account.good ? 'good' : 'poor'}`} onClick={onHealth} title="How good is this?">
            <span aria-hidden="true">{account.good ? '✓' : '!'}</span> {account.text}
          </button>
        )}
        <button class="quiet" onClick={() => onTheme(themeName === 'dark' ? 'light' : 'dark')}>{themeName === 'dark' ? 'Light' : 'Dark'}</button>
        <button class="quiet" onClick={onHelp} aria-label="Help: keys and licences">?</button>
      </div>
    </header>
  );
}
