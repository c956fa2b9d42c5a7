// The timeline on a canvas: areas of CPU time by process, below them a mark for each pause, below these the time. Chosen ranges lie on
// top as elements of their own, so that dragging one draws nothing again.
//
// A component without knowledge of the server: it gets a model (timeline_model.js) and tells what the user does.
import {appendElement} from '../../../output/page/src/elements.js';
import {gapsOf, isGcPause, niceScale, pauseColumns, pauseHeight, pauseNear, reachOf, seriesAt, stack, stepAt} from './timeline_model.js';
import {timelineKey} from './timeline_keys.js';
import {snap, timeTicks, zoom} from './time_range.js';

// In the size of the text: 50, 10, 8, 8, 46 and 20 pixels where that is 11.
const MARGINS = {left: 50 / 11, right: 10 / 11, top: 8 / 11, gap: 8 / 11, lane: 46 / 11, axis: 20 / 11};
const DRAG_PX = 4;   // a press that moves less is a click
const GRIP_PX = 6;   // how near to an end of the range a drag moves that end
const MARK_PX = 3, SUSPEND_PX = 1.5, NEAR_PX = 5;
const FLAG_PX = 9;
const WHEEL_STEP = 1.25;

export class Timeline {
  /**
   * @param {HTMLElement} host  gets the picture as its child, and gives it its size
   * @param {object} events
   *   choose(range)        a range was chosen; null: none
   *   show(span)           another span is to be shown
   *   base()               what is chosen is to be the base of comparisons
   *   pick(series)         an area was clicked
   *   pickPause(pause), pickFlag(flag)   and a mark
   *   hover(what, x, y)    the pointer is at that place of the window, on what: {series, step, value}, {pause}, {flag}, {gap} or null
   */
  constructor(host, events) {
    this.events = events;
    this.view = null;
    this.drag = null;
    this.makeElements(host);
    this.resized();
    this.listen();
  }

  makeElements(host) {
    this.element = appendElement('div', 'timeline', host);
    this.element.tabIndex = 0;
    this.element.setAttribute('role', 'application');
    this.element.setAttribute('aria-roledescription', 'timeline');
    this.canvas = appendElement('canvas', 'timeline-canvas', this.element);
    this.frame = appendElement('div', 'timeline-frame', this.element);  // around areas and marks, within the axes
    this.rangeBox = appendElement('div', 'timeline-box timeline-range', this.frame);
    this.baseBox = appendElement('div', 'timeline-box timeline-base', this.frame);
    this.baseBox.append('base');
    this.cursor = appendElement('div', 'timeline-box timeline-cursor', this.frame);
    for (const box of [this.baseBox, this.rangeBox, this.cursor]) box.hidden = true;
    this.context = this.canvas.getContext('2d', {alpha: false});
  }

  listen() {
    const {element} = this;
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(element);
    element.addEventListener('pointerdown', (event) => this.pointerDown(event));
    element.addEventListener('pointermove', (event) => this.pointerMove(event));
    element.addEventListener('pointerup', (event) => this.pointerUp(event));
    element.addEventListener('pointercancel', () => this.endDrag());
    element.addEventListener('pointerleave', () => this.hover(null));
    element.addEventListener('keydown', (event) => this.keyDown(event));
    element.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
  }

  destroy() {
    this.observer.disconnect();
    if (this.pending) cancelAnimationFrame(this.pending);
    this.element.remove();
  }

  /**
   * @param {object} view
   *   timeline      of readTimeline
   *   now           when it was asked for
   *   shown         {from, to} that was wanted last, which may still be on its way
   *   measure       of MEASURES
   *   range, base   ?{from, to}
   *   flags         {t}[]
   *   colorOf       (series) => color
   *   marks, paper, ink, quiet   colours
   *   highlighted   index of a series, or -1
   *   label         what it is, in words
   */
  show(view) {
    const before = this.view;
    this.view = view;
    this.element.setAttribute('aria-label', view.label);
    const same = ['timeline', 'measure', 'colorOf', 'marks', 'flags', 'highlighted'].every((key) => before?.[key] === view[key]);
    if (before?.timeline !== view.timeline || before?.measure !== view.measure) {
      this.stacked = stack(view.timeline, view.measure);
      this.scale = niceScale(this.stacked.highest);
      this.gaps = gapsOf(view.timeline, view.now);
      this.longest = view.timeline.pauses.reduce((most, {pause_ms: ms}) => Math.max(most, ms), 0);
    }
    if (!same) this.draw();
    this.placeBoxes();
  }

  focus() {
    this.element.focus();
  }

  // --- geometry ---------------------------------------------------------------------------------------------------------

  get plot() {
    const {left, right, top, gap, lane, axis} = this.margins;
    return {left, right: this.width - right, top, bottom: this.height - axis - lane - gap};
  }

  get lane() {
    const {lane, axis} = this.margins;
    return {top: this.height - axis - lane, bottom: this.height - axis, height: lane};
  }

  xOf(time) {
    const {from, to} = reachOf(this.view.timeline.grid);
    const {left, right} = this.plot;
    return left + ((time - from) / (to - from)) * (right - left);
  }

  timeAt(x) {
    const {from, to} = reachOf(this.view.timeline.grid);
    const {left, right} = this.plot;
    return Math.min(to, Math.max(from, from + ((x - left) / (right - left)) * (to - from)));
  }

  yOf(value) {
    const {top, bottom} = this.plot;
    return bottom - (value / this.scale.top) * (bottom - top);
  }

  widthOfPause({pause_ms: ms}) {
    return Math.max(MARK_PX, this.xOf(this.view.timeline.grid.begin + ms) - this.plot.left);
  }

  placeOf(event) {
    const box = this.element.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  get isEmpty() {
    return !this.view || this.view.timeline.grid.steps === 0 || !(this.width > this.margins.left + this.margins.right + 10);
  }

  resized() {
    const {clientWidth, clientHeight} = this.element;
    const ratio = devicePixelRatio || 1, style = getComputedStyle(this.element), fontPx = parseFloat(style.fontSize);
    if (clientWidth === this.width && clientHeight === this.height && ratio === this.ratio && fontPx === this.fontPx) return;
    Object.assign(this, {width: clientWidth, height: clientHeight, ratio, fontPx, font: `${fontPx}px ${style.fontFamily}`});
    this.margins = Object.fromEntries(Object.entries(MARGINS).map(([side, size]) => [side, Math.round(size * fontPx)]));
    this.frame.style.inset = `0 ${this.margins.right}px ${this.margins.axis}px ${this.margins.left}px`;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNow();
    if (this.view) this.placeBoxes();
  }

  placeBoxes() {
    const place = (box, range) => {
      box.hidden = this.isEmpty || !range;
      if (box.hidden) return;
      const {left, right} = this.plot;
      const from = Math.max(left, this.xOf(range.from)), to = Math.min(right, this.xOf(range.to));
      box.hidden = to < left || from > right;
      box.style.transform = `translateX(${from - left}px)`;
      box.style.width = `${Math.max(1, to - from)}px`;
    };
    place(this.baseBox, this.view.base);
    place(this.rangeBox, this.drag?.range ?? this.view.range);
  }

  // --- drawing ----------------------------------------------------------------------------------------------------------

  draw() {
    this.pending ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    if (this.pending) cancelAnimationFrame(this.pending);
    this.pending = null;
    if (!this.view || !(this.width > 0)) return;
    const begin = performance.now();
    const {context} = this;
    context.globalAlpha = 1;
    context.fillStyle = this.view.paper;
    context.fillRect(0, 0, this.width, this.height);
    if (!this.isEmpty) {
      this.drawGaps();
      this.drawAxes();
      this.drawAreas();
      this.drawPauses();
      this.drawFlags();
    }
    performance.clearMeasures('timeline-draw');  // of a page that is open for weeks, the last one is enough
    performance.measure('timeline-draw', {start: begin, end: performance.now()});
  }

  /** Hatched where nothing was recorded: no CPU time is something else than no record. */
  drawGaps() {
    const {context, plot, lane} = this;
    const {timeline: {grid}, marks} = this.view;
    for (const {first, end, pending} of this.gaps) {
      if (pending) continue;
      const x = this.xOf(grid.begin + first * grid.step), right = this.xOf(grid.begin + end * grid.step);
      context.save();
      context.beginPath();
      context.rect(x, plot.top, right - x, lane.bottom - plot.top);
      context.clip();
      context.fillStyle = marks.gap;
      context.fillRect(x, plot.top, right - x, lane.bottom - plot.top);
      context.strokeStyle = marks.hatch;
      context.lineWidth = 1;
      context.beginPath();
      const height = lane.bottom - plot.top;
      for (let at = Math.floor((x - height) / 9) * 9; at < right; at += 9) {
        context.moveTo(at, lane.bottom);
        context.lineTo(at + height, plot.top);
      }
      context.stroke();
      context.restore();
    }
  }

  drawAxes() {
    const {context, plot, lane} = this;
    const {timeline: {grid}, measure, marks, quiet} = this.view;
    context.font = this.font;
    context.fillStyle = quiet;
    context.strokeStyle = marks.grid;
    context.lineWidth = 1;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    context.beginPath();
    for (const tick of this.scale.ticks) {
      const y = Math.round(this.yOf(tick)) + 0.5;
      context.moveTo(plot.left, y);
      context.lineTo(plot.right, y);
      context.fillText(String(tick), plot.left - 5, Math.max(y, 0.65 * this.fontPx));
      if (tick === this.scale.ticks.at(-1)) context.fillText(measure.unit, plot.left - 5, y + 1.2 * this.fontPx);
    }
    for (const ms of [1, 10, 100, 1000, 10_000]) {
      if (ms > Math.max(10, this.longest)) break;
      const y = Math.round(lane.bottom - pauseHeight(ms, this.longest) * lane.height) + 0.5;
      context.moveTo(plot.left, y);
      context.lineTo(plot.right, y);
      if (ms === 1 || ms === 100 || ms === 10_000 || this.longest <= 10) context.fillText(ms < 1000 ? `${ms} ms` : `${ms / 1000} s`, plot.left - 5, y);
    }
    context.stroke();
    context.textAlign = 'center';
    for (const {at, text} of timeTicks(reachOf(grid), Math.max(2, Math.floor((plot.right - plot.left) / (6.5 * this.fontPx))))) {
      const x = this.xOf(at);
      const half = context.measureText(text).width / 2;
      context.fillRect(Math.round(x), lane.bottom, 1, 4);
      context.fillText(text, Math.min(Math.max(x, half + 1), this.width - half - 1), lane.bottom + 0.65 * this.margins.axis);
    }
    context.fillRect(plot.left, lane.bottom, plot.right - plot.left, 1);
  }

  drawAreas() {
    const {context, plot} = this;
    const {timeline: {grid, series}, colorOf, highlighted, paper} = this.view;
    const {tops} = this.stacked;
    const edges = Float64Array.from({length: grid.steps + 1}, (_, i) => this.xOf(grid.begin + i * grid.step));
    for (let i = 0; i < series.length; ++i) {
      const top = tops[i], bottom = i > 0 ? tops[i - 1] : null;
      context.beginPath();
      for (let begin = 0; begin < grid.steps;) {  // runs of steps that are not empty
        if (top[begin] === (bottom ? bottom[begin] : 0)) {
          ++begin;
          continue;
        }
        let end = begin;
        context.moveTo(edges[begin], this.yOf(top[begin]));
        for (; end < grid.steps && top[end] !== (bottom ? bottom[end] : 0); ++end) {
          const y = this.yOf(top[end]);
          context.lineTo(edges[end], y);
          context.lineTo(edges[end + 1], y);
        }
        for (let back = end - 1; back >= begin; --back) {
          const y = bottom ? this.yOf(bottom[back]) : plot.bottom;
          context.lineTo(edges[back + 1], y);
          context.lineTo(edges[back], y);
        }
        context.closePath();
        begin = end;
      }
      context.globalAlpha = highlighted >= 0 && highlighted !== i ? 0.25 : 1;
      context.fillStyle = colorOf(series[i]);
      context.fill();
      context.strokeStyle = paper;
      context.lineWidth = 0.5;
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** As high as the pause is long, by a logarithm; the inner part is the time until all threads stood still. */
  drawPauses() {
    const {context, lane, plot} = this;
    const {timeline: {pauses, series}, marks, highlighted} = this.view;
    const only = highlighted >= 0 && series[highlighted].pid !== null ? series[highlighted].pid : null;
    this.columns = pauseColumns(only === null ? pauses : pauses.filter(({pid}) => pid === only), (time) => this.xOf(time));
    for (const {x, pause} of this.columns) {
      const width = Math.min(this.widthOfPause(pause), plot.right - x);
      const height = pauseHeight(pause.pause_ms, this.longest) * lane.height;
      context.fillStyle = isGcPause(pause) ? marks.pause : marks.other;
      context.fillRect(x, lane.bottom - height, width, height);
      if (pause.suspend_ms >= 0.1) {
        const part = Math.min(height, pauseHeight(pause.suspend_ms, this.longest) * lane.height);
        context.fillStyle = marks.suspend;
        context.fillRect(x, lane.bottom - part, width > MARK_PX ? Math.max(SUSPEND_PX, (width * part) / height) : SUSPEND_PX, part);
      }
    }
  }

  drawFlags() {
    const {context, plot} = this;
    context.fillStyle = this.view.marks.flag;
    for (const flag of this.view.flags) {
      const x = this.xOf(flag.t);
      if (x < plot.left || x > plot.right) continue;
      context.beginPath();
      context.moveTo(x - FLAG_PX / 2, 0);
      context.lineTo(x + FLAG_PX / 2, 0);
      context.lineTo(x, FLAG_PX);
      context.fill();
    }
  }

  // --- what the user does -------------------------------------------------------------------------------------------------

  /** The things at a place: see the event hover. */
  at({x, y}) {
    if (this.isEmpty) return null;
    const {plot, lane} = this;
    const {timeline: {grid, series}, flags} = this.view;
    if (x < plot.left - NEAR_PX || x > plot.right + NEAR_PX || y > this.height) return null;
    if (y < FLAG_PX + 2) {
      const flag = flags.find(({t}) => Math.abs(this.xOf(t) - x) <= FLAG_PX);
      if (flag) return {flag};
    }
    if (y >= lane.top - this.margins.gap / 2) {
      const pause = pauseNear(this.columns ?? [], x, NEAR_PX, (one) => this.widthOfPause(one));
      if (pause) return {pause};
    }
    const step = stepAt(grid, this.timeAt(x));
    const gap = this.gaps.find(({first, end}) => step >= first && step < end);
    if (gap) return {gap};
    if (y > plot.bottom) return null;
    const value = (this.scale.top * (plot.bottom - y)) / (plot.bottom - plot.top);
    const found = seriesAt(this.stacked, step, value);
    const last = this.stacked.tops.at(-1);
    return found >= 0 || last ? {series: found >= 0 ? series[found] : null, step, total: last[step]} : null;
  }

  hover(what, x = 0, y = 0) {
    if (what === null && !this.hovered) return;
    this.hovered = what;
    this.cursor.hidden = what === null;
    this.events.hover(what, x, y);
  }

  grip(x) {
    const {range} = this.view;
    if (!range) return null;
    if (Math.abs(x - this.xOf(range.from)) <= GRIP_PX) return range.to;
    if (Math.abs(x - this.xOf(range.to)) <= GRIP_PX) return range.from;
    return null;
  }

  pointerDown(event) {
    if (event.button !== 0 || this.isEmpty) return;
    const {x, y} = this.placeOf(event);
    if (x < this.plot.left - GRIP_PX) return;
    const fixed = this.grip(x);
    this.drag = {x, y, anchor: fixed ?? this.timeAt(x), moved: false, range: null};
    this.element.setPointerCapture(event.pointerId);
  }

  pointerMove(event) {
    if (this.isEmpty) return;
    const {x, y} = this.placeOf(event);
    if (this.drag) {
      if (!this.drag.moved && Math.abs(x - this.drag.x) < DRAG_PX) return;
      this.drag.moved = true;
      this.drag.range = snap(this.drag.anchor, this.timeAt(x), this.view.timeline.grid);
      this.hover(null);
      this.placeBoxes();
      return;
    }
    if (event.pointerType !== 'mouse') return;
    const what = this.at({x, y});
    this.element.classList.toggle('can-pick', Boolean(what?.pause || what?.flag || what?.series?.narrowTo));
    this.element.classList.toggle('can-grip', this.grip(x) !== null);
    this.hover(what, event.clientX, event.clientY);
    this.cursor.style.transform = `translateX(${x - this.plot.left}px)`;
  }

  pointerUp(event) {
    const {drag} = this;
    if (!drag) return;
    this.endDrag();
    if (drag.moved) {
      this.events.choose(drag.range);
      return;
    }
    const what = this.at(this.placeOf(event));
    if (what?.flag) this.events.pickFlag(what.flag);
    else if (what?.pause) this.events.pickPause(what.pause);
    else if (what?.series?.narrowTo) this.events.pick(what.series);
    else if (this.view.range) this.events.choose(null);
  }

  endDrag() {
    this.drag = null;
    if (this.view) this.placeBoxes();
  }

  wheel(event) {
    if (!(event.ctrlKey || event.metaKey) || this.isEmpty) return;  // without: the page scrolls
    event.preventDefault();
    const {x} = this.placeOf(event);
    this.events.show(zoom(this.view.shown, event.deltaY > 0 ? WHEEL_STEP : 1 / WHEEL_STEP, this.timeAt(x)));
  }

  keyDown(event) {
    if (this.isEmpty || event.ctrlKey || event.altKey || event.metaKey) return;
    const action = timelineKey(event, this.view.timeline.grid, this.view.range, this.view.shown);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    if (action.range) this.events.choose(action.range, true);
    else if (action.span) this.events.show(action.span);
    else if (action.clear) this.events.choose(null);
    else this.events.base();
  }
}

