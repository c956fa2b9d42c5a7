// The timeline with its legend: what each series needs, and a click narrows to it.
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {Swatch} from '../../../output/page/src/node_details.jsx';
import {THEMES} from '../../../output/page/src/palette.js';
import {Tooltip} from '../../../output/page/src/tooltip.jsx';
import {msText, processText, roughText} from './format.js';
import {assignColors, colorOf, MARKS, OTHER} from './series_colors.js';
import {Timeline} from './timeline.js';
import {kindText, meanIn, MEASURES, reachOf, rateOf, STATES_MEASURE} from './timeline_model.js';
import {clockText, rangeText, timeText} from './time_range.js';

export function TimelinePanel({timeline, state, shown, range, recordings, themeName, now, events, keyRef}) {
  const host = useRef(null), picture = useRef(null), handlers = useRef({});
  const [hovered, setHovered] = useState(null);
  const [highlighted, setHighlighted] = useState(-1);
  const colors = useRef(new Map());
  const measure = state.by === 'state' ? STATES_MEASURE : MEASURES[state.view];
  const [hidden, setHidden] = useState(HIDDEN_AT_FIRST);
  const drawn = useMemo(() => ({...timeline, series: timeline.series.filter(({key, isState}) => !isState || !hidden.has(key))}), [timeline, hidden]);
  const toggle = (key) => setHidden((now) => new Set(now.has(key) ? [...now].filter((one) => one !== key) : [...now, key]));
  const colorOfSeries = useMemo(() => {
    colors.current = assignColors(timeline.series.filter(({isOthers}) => !isOthers).map(({key}) => key), colors.current);
    const known = colors.current;
    return ({key, isOthers}) => (isOthers ? OTHER[themeName] : colorOf(known.get(key)));
  }, [timeline, themeName]);
  const flags = useMemo(() => recordings.filter(({t}) => Number.isFinite(t)), [recordings]);

  handlers.current = {...events, hover: (what, x, y) => setHovered(what && {what, x, y})};
  useLayoutEffect(() => {
    const call = (name) => (...args) => handlers.current[name](...args);
    picture.current = new Timeline(host.current, Object.fromEntries(['choose', 'show', 'base', 'pick', 'pickPause', 'pickFlag', 'hover'].map((name) => [name, call(name)])));
    if (keyRef) keyRef.current = picture.current;
    return () => picture.current.destroy();
  }, []);
  const theme = THEMES[themeName];
  useLayoutEffect(() => {
    const what = `${measure.text} by ${state.by === 'state' ? 'what they do' : state.by}, ${rangeText(reachOf(timeline.grid), now)}`;
    const chosen = state.range ? `chosen: ${rangeText(state.range, now)}` : 'nothing chosen';
    picture.current.show({
      timeline: drawn, now, shown, measure, range: state.range, base: state.base, flags, colorOf: colorOfSeries, marks: MARKS[themeName], paper: theme.paper, ink: theme.ink,
      quiet: theme.mutedInk, highlighted: drawn.series.findIndex((one) => one === timeline.series[highlighted]),
      label: `${what}; ${chosen}. Arrows choose and move a range, with Shift its end; plus and minus zoom.`,
    });
  }, [drawn, shown, measure, state.range, state.base, flags, colorOfSeries, themeName, highlighted]);
  useEffect(() => setHighlighted(-1), [timeline.series.length]);

  return (
    <div class="timeline-row">
      <div class="timeline-host" ref={host} />
      <Legend timeline={timeline} measure={measure} range={range} colorOf={colorOfSeries} hidden={hidden} onToggle={toggle} onPick={events.pick} onHighlight={setHighlighted} themeName={themeName} />
      {hovered && <Tooltip at={hovered}><HoverWords {...hovered} timeline={drawn} measure={measure} colorOf={colorOfSeries} now={now} /></Tooltip>}
    </div>
  );
}

const ONE = {cores: 'core', threads: 'thread'};
const unitText = (value, {unit}) => `${roughText(value)} ${(value === 1 && ONE[unit]) || unit}`;

// Threads that wait for work are many, and in nobody's way.
const HIDDEN_AT_FIRST = new Set(['idle']);

function Legend({timeline, measure, range, colorOf, hidden, onToggle, onPick, onHighlight, themeName}) {
  const rows = useMemo(() => timeline.series.map((series) => ({series, mean: meanIn(timeline, series, measure, range)})), [timeline, measure, range]);
  const marks = MARKS[themeName];
  return (
    <div class="timeline-legend">
      <ul aria-label={`Legend: mean ${measure.mean} of the chosen range`}>
        {rows.map(({series, mean}, i) => {
          const words = <><Swatch color={colorOf(series)} /><span class="cut-end">{series.label}</span><span class="value">{unitText(mean, measure)}</span></>;
          const over = {onPointerEnter: () => onHighlight(i), onPointerLeave: () => onHighlight(-1), onFocus: () => onHighlight(i), onBlur: () => onHighlight(-1)};
          return (
            <li key={series.key} class={series.isState && hidden.has(series.key) ? 'hidden-series' : ''} {...over}>
              {series.isState
                ? <button class="quiet" aria-pressed={!hidden.has(series.key)} title={`${series.label}: click to ${hidden.has(series.key) ? 'show' : 'hide'} it`} aria-label={`${series.label}, ${unitText(mean, measure)}`} onClick={() => onToggle(series.key)}>{words}</button>
                : series.narrowTo
                ? <button class="quiet" title={`${series.label}: click to narrow to it`} aria-label={`Narrow to ${series.label}, ${unitText(mean, measure)}`} onClick={() => onPick(series)}>{words}</button>
                : <span class="series">{words}</span>}
            </li>
          );
        })}
      </ul>
      <p class="marks" aria-hidden="true">
        <span><Swatch color={marks.pause} />GC pause</span><span><Swatch color={marks.other} />other pause</span><span><Swatch color={marks.suspend} />until all stood still</span>
      </p>
    </div>
  );
}

const line = (word, text) => <div key={word}><dt>{word}</dt><dd>{text}</dd></div>;

function HoverWords({what, timeline, measure, colorOf, now}) {
  const {grid} = timeline;
  if (what.flag) return <><strong>Flight recording</strong><p>{what.flag.trigger}: {what.flag.value}</p><p class="quiet-text">{timeText(what.flag.t, now)}; a click opens it</p></>;
  if (what.gap) return <strong>{what.gap.pending ? 'Not recorded yet.' : 'Nothing was recorded here.'}</strong>;
  if (what.pause) {
    const {pause} = what;
    return (
      <>
        <strong>{kindText(pause)}</strong>
        <dl>
          {line('process', processText(pause))}{line('at', timeText(pause.t, now, true))}{line('pause', msText(pause.pause_ms))}
          {line('until all stood still', msText(pause.suspend_ms))}{pause.reason && line('reason', pause.reason)}
        </dl>
      </>
    );
  }
  const {series, step, total} = what;
  const value = (one) => (measure.rate ? rateOf(one[measure.field][step], measure, timeline, step) : one[measure.field][step]);
  return (
    <>
      {series && <div class="details-name"><Swatch color={colorOf(series)} /><strong>{series.label}</strong></div>}
      {series?.container && series.container !== series.label && <div class="details-origin">{series.container}</div>}
      <dl>
        {line('at', `${clockText(grid.begin + step * grid.step)} – ${clockText(grid.begin + (step + 1) * grid.step)}`)}
        {series && line(measure.text, unitText(value(series), measure))}{line('all', unitText(total, measure))}
        {series && series.pause_ms[step] > 0 && line('paused', msText(series.pause_ms[step]))}{series && series.jit_ms[step] > 0 && line('compiling', msText(series.jit_ms[step]))}
      </dl>
    </>
  );
}
