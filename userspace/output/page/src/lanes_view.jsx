// A lane for each thread: what it was at over time, and when the runtime stood still.
import {useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {LANE_COLORS, laneColumns, rankedThreads, sharesAt} from './lanes.js';
import {Swatch} from './node_details.jsx';
import {THEMES} from './palette.js';
import {drawLanes, fitCanvas, lanesPicture, markColor} from './time_canvas.js';
import {shareText} from './text.js';
import {Tooltip} from './tooltip.jsx';
import {useSize} from './use_size.js';

const LANE_PX = 18;
const FEW = 4, MOST = 200;
const PX_PER_COLUMN = 2;
const NS_PER_UNIT = {microseconds: 1e3, nanoseconds: 1};

/** Time that a weight of 1 lasts; null: weights are no times. */
function weightNsOf({about}) {
  if (about.unit === 'samples') return about.period_ns || null;
  return NS_PER_UNIT[about.unit] ?? null;
}

const labelOf = (thread) => thread.label ?? `${thread.name || thread.comm || 'thread'}${thread.tid ? ` (${thread.tid})` : ''}`;

/**
 * @param {{threads: object[], about: object}} profile  threads: index, pid, tid, comm, name, weight, process; label and isOthers if they are no plain ones
 * @param {object} times  laneTexts, groups, groupSteps and events of RecordedTimes; holdsWeights: a weight lies in its step, however large it is
 * @param {{from, to}} span  in nanoseconds, as all times here
 */
export function LanesView({profile, times, span, state, pending, acts, picked, onPick, clock, themeName}) {
  const host = useRef(null), canvas = useRef(null), drag = useRef(null);
  const [all, setAll] = useState(false), [hovered, setHovered] = useState(null);
  const {width} = useSize(host);
  const ranked = useMemo(() => rankedThreads(profile, (thread) => picked.process === null || thread.process.index === picked.process.index), [profile, picked.process]);
  const threads = useMemo(() => ranked.slice(0, all ? MOST : FEW), [ranked, all]);
  const columns = Math.max(1, Math.floor(width / PX_PER_COLUMN)), columnNs = (span.to - span.from) / columns;
  const weightNs = weightNsOf(profile);
  const lanes = useMemo(() => laneColumns(times, threads, span, columns, times.holdsWeights ? null : weightNs), [times, threads, span.from, span.to, columns]);
  const events = useMemo(() => eventsOf(profile, times, threads, span, columns), [times, threads, span.from, span.to, columns]);
  const kinds = times.laneTexts.length + 1;
  const full = useMemo(() => (weightNs ? columnNs / weightNs : fullest(lanes, kinds)), [lanes]);
  const colors = [LANE_COLORS[themeName].Other, ...times.laneTexts.map((text) => LANE_COLORS[themeName][text])];
  const range = pending ?? state.range;
  const shares = (one) => ({from: (one.from - span.from) / (span.to - span.from), to: (one.to - span.from) / (span.to - span.from)});
  const height = threads.length * LANE_PX;
  const picture = useMemo(() => width > 0 && height > 0 && lanesPicture({width, height}, threads.map((thread) => lanes.get(thread)),
    {laneHeight: LANE_PX, full, colors, events, eventColors: {pause: LANE_COLORS[themeName]['garbage collection'], compilation: LANE_COLORS[themeName]['JIT compiler']}, theme: THEMES[themeName]}),
  [lanes, events, width, themeName, full]);
  useLayoutEffect(() => {
    const fitted = fitCanvas(canvas.current, width, height);
    if (!fitted) return;
    const marks = [state.base && {...shares(state.base), color: markColor(themeName, 'base')}, range && {...shares(range), color: markColor(themeName, 'range')}].filter(Boolean);
    drawLanes(fitted, picture, marks);
  }, [picture, range, state.base]);

  const timeAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return span.from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (span.to - span.from);
  };
  const rangeTo = (event) => {
    const [from, to] = [drag.current.from, timeAt(event)].sort((a, b) => a - b);
    return {from, to};
  };
  const pointerMove = (event) => {
    if (drag.current) {
      acts.pending(rangeTo(event));
    } else if (event.pointerType === 'mouse') {
      const box = canvas.current.getBoundingClientRect();
      setHovered({lane: Math.floor((event.clientY - box.top) / LANE_PX), column: Math.min(columns - 1, Math.floor((event.clientX - box.left) / (box.width / columns))), x: event.clientX, y: event.clientY});
    }
  };
  const noun = ranked.some((index) => profile.threads[index].isOthers) ? 'lanes' : 'threads';
  const seen = kindsSeen(lanes, kinds), hasPauses = times.events.some(({kind}) => kind === 'pause');
  return (
    <div class="lanes-view">
      <ul class="lane-names" aria-label="Threads over time">
        {threads.map((index) => {
          const thread = profile.threads[index];
          if (thread.isOthers) return <li key={index}><span title={labelOf(thread)}>{labelOf(thread)}</span></li>;
          const isPicked = picked.threads !== null && picked.threads.length === 1 && picked.threads[0].index === index;
          return (
            <li key={index}><button class="link" aria-pressed={isPicked} title={labelOf(thread)} aria-label={`${labelOf(thread)}: ${laneText(times, lanes.get(index), columns)}`}
              onClick={() => onPick(isPicked ? {...picked, threads: null} : {process: picked.process, threads: [thread]})}>{labelOf(thread)}</button></li>
          );
        })}
      </ul>
      <div class="lane-host" ref={host}>
        <canvas ref={canvas} onPointerMove={pointerMove} onPointerLeave={() => setHovered(null)}
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = {from: timeAt(event)};
            setHovered(null);
          }}
          onPointerUp={(event) => {
            if (!drag.current) return;
            const chosen = rangeTo(event);
            drag.current = null;
            acts.pending(null);
            acts.choose(chosen, event.shiftKey);
          }}
          onPointerCancel={() => { drag.current = null; acts.pending(null); }} />
      </div>
      <div class="lane-legend">
        {seen.map((kind) => <span key={kind}><Swatch color={colors[kind]} />{kind === 0 ? 'not known' : times.laneTexts[kind - 1]}</span>)}
        {hasPauses && <span><Swatch color={LANE_COLORS[themeName]['garbage collection']} />pauses (on top)</span>}
        {ranked.length > FEW && <button class="link more" aria-expanded={all} onClick={() => setAll(!all)}>{all ? `fewer ${noun}` : `all ${ranked.length} ${noun}`}</button>}
        {all && ranked.length > MOST && <span>{MOST} of them are shown</span>}
      </div>
      {hovered && threads[hovered.lane] !== undefined && (
        <Tooltip at={hovered}>
          <strong>{labelOf(profile.threads[threads[hovered.lane]])}</strong>
          <div>{clock(span.from + hovered.column * columnNs)}: {laneText(times, lanes.get(threads[hovered.lane]).subarray(hovered.column * kinds, (hovered.column + 1) * kinds), 1)}</div>
        </Tooltip>
      )}
    </div>
  );
}

function kindsSeen(lanes, kinds) {
  const seen = new Uint8Array(kinds);
  for (const lane of lanes.values()) for (let i = 0; i < lane.length; ++i) if (lane[i] > 0) seen[i % kinds] = 1;
  return [...seen.keys()].filter((kind) => seen[kind]);
}

function fullest(lanes, kinds) {
  let most = 0;
  for (const lane of lanes.values()) {
    for (let at = 0; at < lane.length; at += kinds) most = Math.max(most, lane.subarray(at, at + kinds).reduce((a, b) => a + b, 0));
  }
  return most || 1;
}

/** "kernel 62.0 %, .NET 38.0 %" of all columns together. */
function laneText(times, lane, columns) {
  const kinds = times.laneTexts.length + 1, sum = new Float64Array(kinds);
  for (let i = 0; i < columns * kinds; ++i) sum[i % kinds] += lane[i];
  const whole = sum.reduce((a, b) => a + b, 0);
  const parts = sharesAt(times, sum, 0);
  return parts.length === 0 ? 'no samples' : parts.slice(0, 4).map(({text, weight}) => `${text} ${shareText(weight, whole)}`).join(', ');
}

/** Shares of the columns of each lane in which its process stood still, and in which its thread compiled. */
function eventsOf(profile, times, threads, span, columns) {
  const columnNs = (span.to - span.from) / columns;
  const lanes = threads.map(() => ({pause: new Float64Array(columns), compilation: new Float64Array(columns)}));
  for (const {kind, from, to, thread} of times.events) {
    if (kind === 'collection' || to < span.from || from >= span.to) continue;
    const {pid, tid} = profile.threads[thread] ?? {};
    threads.forEach((index, lane) => {
      const own = profile.threads[index];
      if (own.pid !== pid || (kind === 'compilation' && own.tid !== tid)) return;
      for (let column = Math.max(0, Math.floor((from - span.from) / columnNs)); column < columns && span.from + column * columnNs <= to; ++column) {
        const begin = span.from + column * columnNs;
        lanes[lane][kind][column] += Math.max(1, Math.min(to, begin + columnNs) - Math.max(from, begin)) / columnNs;
      }
    });
  }
  return lanes;
}
