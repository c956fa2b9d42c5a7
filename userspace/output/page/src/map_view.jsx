// The map: a canvas that is coloured by what is counted, and on which a range is chosen by pointer or keys. Knows nothing of profiles:
// it gets values, and their words.
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {mapKey, strongest, timeOf} from './heat_map.js';
import {THEMES} from './palette.js';
import {drawMap, fitCanvas, pictureOf, shadesOf} from './time_canvas.js';
import {Tooltip} from './tooltip.jsx';
import {useSize} from './use_size.js';

/**
 * @param {MapGrid} grid
 * @param {Float64Array} values  of its cells
 * @param {{range, base, colour}} state  as time_state.js has it
 * @param {?{from, to}} pending  what is being chosen
 * @param {object} acts  choose(range, compares), pending(range), compare(), all(), zoomIn(), zoomOut()
 * @param {(cell: number) => string} describe
 * @param {(ns: number) => string} clock
 */
export function MapView({grid, values, state, pending, acts, describe, clock, themeName}) {
  const host = useRef(null), canvas = useRef(null), drag = useRef(null);
  const [cursor, setCursor] = useState(0), [anchor, setAnchor] = useState(null), [hovered, setHovered] = useState(null);
  const [focused, setFocused] = useState(false);
  const {width, height} = useSize(host);
  const {colour} = state, paper = THEMES[themeName].paper;
  const picture = useMemo(() => pictureOf(grid, values, strongest(values) || 1, shadesOf(themeName, colour, paper)), [values, themeName]);
  useEffect(() => {
    setCursor((now) => Math.min(now, values.length - 1));
    setAnchor(null);
  }, [grid]);

  const marks = {range: pending ?? state.range, base: state.base, cursor: focused ? cursor : -1};
  useLayoutEffect(() => {
    const fitted = fitCanvas(canvas.current, width, height);
    if (fitted) drawMap(fitted, grid, picture, marks, themeName, paper);
  }, [picture, width, height, themeName, marks.range, marks.base, marks.cursor]);

  const cellOf = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const part = (at, from, size, count) => Math.max(0, Math.min(count - 1, Math.floor(((at - from) / size) * count)));
    return part(event.clientX, box.left, box.width, grid.columns) * grid.rows + part(event.clientY, box.top, box.height, grid.rows);
  };
  const rangeOf = (a, b) => ({from: timeOf(grid, Math.min(a, b)), to: timeOf(grid, Math.max(a, b) + 1)});
  const columnOf = (cell) => {
    const first = cell - (cell % grid.rows);
    return rangeOf(first, first + grid.rows - 1);
  };
  const pointerDown = (event) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = {from: cellOf(event), moved: false};
    setHovered(null);
  };
  const pointerMove = (event) => {
    const cell = cellOf(event);
    if (!drag.current) {
      if (event.pointerType === 'mouse') setHovered({cell, x: event.clientX, y: event.clientY});
      return;
    }
    drag.current.moved ||= cell !== drag.current.from;
    if (drag.current.moved) acts.pending(rangeOf(drag.current.from, cell));
  };
  const pointerUp = (event) => {
    if (!drag.current) return;
    const {from, moved} = drag.current, cell = cellOf(event);
    drag.current = null;
    acts.pending(null);
    setCursor(cell);
    setAnchor(null);
    acts.choose(moved ? rangeOf(from, cell) : columnOf(cell), event.shiftKey);
  };
  const keyDown = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const act = mapKey(event, grid, cursor);
    if (!act || (act.clear && !pending)) return;
    event.preventDefault();
    event.stopPropagation();
    if (act.cursor !== undefined) {
      const from = act.extend ? (anchor ?? cursor) : null;
      setAnchor(from);
      setCursor(act.cursor);
      acts.pending(act.extend ? rangeOf(from, act.cursor) : null);
    } else if (act.choose) {
      acts.pending(null);
      acts.choose(anchor === null ? columnOf(cursor) : rangeOf(anchor, cursor), event.shiftKey);
      setAnchor(null);
    } else if (act.clear) {
      acts.pending(null);
      setAnchor(null);
    } else {
      acts[Object.keys(act)[0]]();
    }
  };
  const end = grid.from + grid.columns * grid.columnNs, labels = Array.from({length: 5}, (_, i) => clock(grid.from + ((end - grid.from) * i) / 4));
  return (
    <div class="timeline-place">
      <div ref={host} class="timeline-map" tabIndex={0} role="slider" aria-label="Map of the time" aria-orientation="horizontal" aria-valuemin={0} aria-valuemax={values.length - 1}
        aria-valuenow={cursor} aria-valuetext={describe(Math.min(cursor, values.length - 1))} onFocus={() => setFocused(true)} onBlur={() => setFocused(false)} onKeyDown={keyDown}
        onPointerDown={pointerDown} onPointerMove={pointerMove} onPointerUp={pointerUp} onPointerLeave={() => setHovered(null)}
        onPointerCancel={() => { drag.current = null; acts.pending(null); }}>
        <canvas ref={canvas} />
      </div>
      <div class="timeline-axis" aria-hidden="true">{labels.map((text, i) => <span key={i}>{text}</span>)}</div>
      {hovered && hovered.cell < values.length && <Tooltip at={hovered}>{describe(hovered.cell)}</Tooltip>}
    </div>
  );
}
