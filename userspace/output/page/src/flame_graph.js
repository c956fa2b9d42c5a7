// The picture: a tree of frames on a canvas, as a flame graph (root at the bottom) or an icicle graph (root on top).
//
// A component without knowledge of profiles: it gets a layout, names and colours, and tells what the user does with a
// node. Only what is in sight and at least a pixel wide is drawn. This keeps 50,000 stacks fluid: the time of a drawing
// depends on the size of the window and not on that of the profile. Narrower neighbours become one grey bar.
//
// For keyboards and screen readers it is a tree with one item, the selected node.
import {appendElement} from './elements.js';
import {textColorOn} from './palette.js';

const COARSE_ROW_PX = 28;  // for fingers
const MIN_PX = 1;
const TEXT_MIN_PX = 22;
const PADDING_PX = 4;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const ELLIPSIS = '\u2026';

let instances = 0;

export class FlameGraph {
  /**
   * @param {HTMLElement} host  gets the picture as its child, and gives it its size
   * @param {object} events
   *   hover(node, x, y)  the pointer is on a node at that place of the window; node -1: on none
   *   zoom(node)         the user wants to see this node over the whole width
   *   select(node)       a node was selected
   *   menu(node, x, y)   a menu for the node is wanted at that place of the window
   *   describe(node)     the node in words, for screen readers
   */
  constructor(host, events) {
    this.events = events;
    this.view = null;
    this.zoomed = 0;
    this.selected = 0;
    this.hovered = -1;
    this.charWidths = new Map();
    // As the scroller's own ones, which would lay out the whole page each time that they are asked for.
    this.size = null;
    this.scrollTop = 0;
    // A little smaller than the text around it, and room for it: 12 and 20 pixels on most screens.
    const fontPx = parseFloat(getComputedStyle(host).fontSize) - 1;
    this.font = `${fontPx}px ${FONT}`;
    this.rowPx = Math.max(fontPx + 8, matchMedia('(pointer: coarse)').matches ? COARSE_ROW_PX : 0);
    this.makeElements(host);
    this.listen();
  }

  makeElements(host) {
    this.scroller = appendElement('div', 'flame-graph', host);
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute('role', 'tree');
    this.scroller.setAttribute('aria-label', 'Flame graph');
    // As high as the whole picture; the canvas is as high as the window and stays in it.
    this.space = appendElement('div', 'flame-graph-space', this.scroller);
    this.canvas = appendElement('canvas', 'flame-graph-canvas', this.space);
    this.hoverBox = appendElement('div', 'flame-graph-box flame-graph-hover', this.space);
    this.hoverBox.hidden = true;
    this.selectBox = appendElement('div', 'flame-graph-box flame-graph-selected', this.space);
    this.selectBox.id = `flame-graph-item-${++instances}`;
    this.selectBox.setAttribute('role', 'treeitem');
    this.scroller.setAttribute('aria-activedescendant', this.selectBox.id);
    this.context = this.canvas.getContext('2d', {alpha: false});
  }

  listen() {
    const {scroller} = this;
    this.observer = new ResizeObserver(() => this.resized());
    this.observer.observe(scroller);
    scroller.addEventListener('scroll', () => {
      this.scrollTop = scroller.scrollTop;
      this.hover(-1);
      this.draw();
    }, {passive: true});
    scroller.addEventListener('pointermove', (event) => {
      if (event.pointerType === 'mouse') this.hover(this.nodeAt(event), event.clientX, event.clientY);
    });
    scroller.addEventListener('pointerleave', () => this.hover(-1));
    scroller.addEventListener('click', (event) => {
      const node = this.nodeAt(event);
      if (node < 0) return;
      this.select(node, false);
      this.events.zoom(node);
    });
    scroller.addEventListener('contextmenu', (event) => {
      // Menu keys send this event, too, with a place that means nothing.
      if (event.button !== 2) return;
      const node = this.nodeAt(event);
      if (node < 0) return;
      event.preventDefault();
      this.select(node, false);
      this.events.menu(node, event.clientX, event.clientY);
    });
    scroller.addEventListener('keydown', (event) => this.keyDown(event));
  }

  destroy() {
    this.observer.disconnect();
    this.scroller.remove();
  }

  /**
   * Shows something else.
   * @param {object} view
   *   layout: TreeLayout; fillOf: (node) => color; theme: of palette.js
   *   formsOf: (frame) => string[], its name and shorter forms of it; rootName: text of the root; upward: flame instead of icicle; matches: ?Uint8Array by frame, others fade
   * @param {number} zoomed  the node that takes the whole width
   * @param {number} selected
   */
  show(view, zoomed = 0, selected = zoomed) {
    const turned = this.view?.upward !== view.upward;
    this.view = view;
    this.zoomed = zoomed;
    this.selected = selected;
    this.hover(-1);
    this.measure();
    if (turned) this.scrollTo(view.upward ? this.contentHeight - this.height : 0);
    this.reveal(zoomed);
    this.drawNow();
    this.showSelection();
  }

  focus() {
    this.scroller.focus();
  }

  // --- geometry -------------------------------------------------------------------------------------------------------

  resized() {
    const {clientWidth, clientHeight} = this.scroller;
    this.size = {clientWidth, clientHeight};
    if (!this.view || !this.measure()) return;
    this.drawNow();
    this.showSelection();
  }

  /** Fits canvas and scrolled space to the window and the view. @returns {boolean} whether the canvas must be drawn again */
  measure() {
    const {clientWidth, clientHeight} = (this.size ??= {clientWidth: this.scroller.clientWidth, clientHeight: this.scroller.clientHeight});
    this.contentHeight = Math.max(clientHeight, (this.view.layout.maxDepth + 1) * this.rowPx);
    this.space.style.height = `${this.contentHeight}px`;
    this.scrollTop = Math.min(this.scrollTop, this.contentHeight - clientHeight);
    const ratio = devicePixelRatio || 1;
    if (clientWidth === this.width && clientHeight === this.height && ratio === this.ratio) return false;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = ratio;
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return true;
  }

  topOf(depth) {
    return this.view.upward ? this.contentHeight - (depth + 1) * this.rowPx : depth * this.rowPx;
  }

  get scale() {
    return this.width / this.view.layout.width[this.zoomed];
  }

  /** Left edge and width in pixels; nodes above the zoomed one are as wide as it. */
  spanOf(node) {
    const {layout} = this.view;
    if (layout.tree.isWithin(this.zoomed, node)) return [0, this.width];
    return [(layout.left[node] - layout.left[this.zoomed]) * this.scale, layout.width[node] * this.scale];
  }

  nodeAt(event) {
    if (!this.view) return -1;
    const {layout, upward} = this.view;
    const box = this.space.getBoundingClientRect();
    const y = event.clientY - box.top, x = event.clientX - box.left;
    if (x < 0 || x >= this.width) return -1;
    const depth = Math.floor((upward ? this.contentHeight - y : y) / this.rowPx);
    if (depth < 0 || depth > layout.maxDepth) return -1;
    let node = this.zoomed;
    if (depth > layout.depth[node]) return layout.nodeAt(node, depth, layout.left[node] + x / this.scale);
    while (layout.depth[node] > depth) node = layout.tree.parent[node];
    return node;
  }

  /** Scrolls so that the node and something of what it calls is in sight. */
  reveal(node) {
    const top = this.topOf(this.view.layout.depth[node]);
    const {scrollTop} = this;
    const ahead = Math.min(3 * this.rowPx, this.height / 3);
    const low = this.view.upward ? top - ahead : top, high = this.view.upward ? top + this.rowPx : top + this.rowPx + ahead;
    if (low < scrollTop) this.scrollTo(low);
    else if (high > scrollTop + this.height) this.scrollTo(high - this.height);
  }

  scrollTo(top) {
    this.scroller.scrollTop = top;
    this.scrollTop = this.scroller.scrollTop;
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  draw() {
    this.pending ??= requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    if (this.pending) cancelAnimationFrame(this.pending);
    this.pending = null;
    if (!this.view || this.width === 0 || this.height === 0) return;
    const begin = performance.now();
    const {theme} = this.view;
    this.context.fillStyle = theme.paper;
    this.context.fillRect(0, 0, this.width, this.height);
    if (this.view.layout.width[0] > 0) this.paint(this.collect());
    performance.clearMeasures('flame-graph-draw');
    performance.measure('flame-graph-draw', {start: begin, end: performance.now()});
  }

  /** The things in sight: boxes by colour, since changing the colour is what costs, and the texts on them. */
  collect() {
    const {layout, matches, fillOf, theme} = this.view;
    const {tree, left, width, firstChild, child} = layout;
    const {scale, rowPx, zoomed} = this;
    const {scrollTop} = this, origin = left[zoomed];
    const bright = new Map(), faded = new Map(), texts = [];
    const inSight = (y) => y + rowPx > 0 && y < this.height;
    const box = (boxes, color, x, y, w) => {
      let list = boxes.get(color);
      if (!list) boxes.set(color, (list = []));
      list.push(x, y, w);
    };
    const add = (node, x, y, w, above) => {
      const fade = above || (matches !== null && (node === 0 || matches[tree.frame[node]] === 0));
      const fill = fillOf(node);
      box(fade ? faded : bright, fill, x, y, w);
      if (w >= TEXT_MIN_PX) texts.push(node, x, y, w, fade, fill);
    };

    for (let node = tree.parent[zoomed]; node >= 0; node = tree.parent[node]) {
      const y = this.topOf(layout.depth[node]) - scrollTop;
      if (inSight(y)) add(node, 0, y, this.width, true);
    }
    const rootY = this.topOf(layout.depth[zoomed]) - scrollTop;
    if (inSight(rootY)) add(zoomed, 0, rootY, this.width, false);
    const open = [zoomed];
    while (open.length > 0) {
      const node = open.pop();
      const y = this.topOf(layout.depth[node] + 1) - scrollTop;
      if (this.view.upward ? y + rowPx <= 0 : y >= this.height) continue;  // nor what lies behind
      const visible = inSight(y);
      let narrowFrom = -1, narrowTo = -1;  // a run of nodes too narrow to be drawn
      const flush = () => {
        if (narrowFrom >= 0 && visible && narrowTo - narrowFrom >= 0.25) {
          box(bright, theme.muted, narrowFrom, y, Math.max(MIN_PX, narrowTo - narrowFrom));
        }
        narrowFrom = -1;
      };
      for (let i = firstChild[node]; i < firstChild[node + 1]; ++i) {
        const down = child[i];
        const w = width[down] * scale;
        if (w === 0) continue;
        const x = (left[down] - origin) * scale;
        if (w < MIN_PX) {
          if (narrowFrom < 0) narrowFrom = x;
          narrowTo = x + w;
          continue;
        }
        flush();
        if (visible) add(down, x, y, w, false);
        open.push(down);
      }
      flush();
    }
    return {bright, faded, texts};
  }

  paint({bright, faded, texts}) {
    const {context, rowPx} = this;
    const {theme} = this.view;
    const fill = (boxes) => {
      for (const [color, list] of boxes) {
        context.fillStyle = color;
        for (let i = 0; i < list.length; i += 3) {
          const w = list[i + 2];
          context.fillRect(list[i], list[i + 1], w > 3 ? w - 1 : w, rowPx - 1);
        }
      }
    };
    context.globalAlpha = theme.fade;
    fill(faded);
    context.globalAlpha = 1;
    fill(bright);

    context.font = this.font;
    context.textBaseline = 'middle';
    const colors = new Map();
    for (let i = 0; i < texts.length; i += 6) {
      const [node, x, y, w, fade, color] = texts.slice(i, i + 6);
      const text = this.fit(this.formsOf(node), w - 2 * PADDING_PX - 1);
      if (text === '') continue;
      if (!colors.has(color)) colors.set(color, textColorOn(color));
      context.fillStyle = fade ? theme.mutedInk : colors.get(color);
      context.fillText(text, x + PADDING_PX, y + rowPx / 2);
    }
  }

  formsOf(node) {
    return node === 0 ? [this.view.rootName] : this.view.formsOf(this.view.layout.tree.frame[node]);
  }

  /** The longest form that fits, else the beginning of the shortest. */
  fit(forms, space) {
    const form = forms.find((one) => this.widthOf(one) <= space) ?? forms[forms.length - 1];
    if (this.widthOf(form) <= space) return form;
    let used = this.widthOf(ELLIPSIS), end = 0;
    for (const character of form) {
      used += this.widthOf(character);
      if (used > space) break;
      end += character.length;
    }
    return end < 2 ? '' : form.slice(0, end) + ELLIPSIS;
  }

  /** Sum of the characters' widths, each measured once: measuring thousands of texts a drawing would take longer than it. */
  widthOf(text) {
    let width = 0;
    for (const character of text) {
      let own = this.charWidths.get(character);
      if (own === undefined) {
        this.context.font = this.font;
        this.charWidths.set(character, (own = this.context.measureText(character).width));
      }
      width += own;
    }
    return width;
  }

  // --- what the user does ---------------------------------------------------------------------------------------------

  hover(node, x = 0, y = 0) {
    if (node < 0 && this.hovered < 0) return;
    this.hovered = node;
    this.placeBox(this.hoverBox, node);
    this.events.hover(node, x, y);
  }

  select(node, reveal = true) {
    this.selected = node;
    if (reveal) this.reveal(node);
    this.showSelection();
    this.events.select(node);
  }

  showSelection() {
    if (!this.view) return;
    this.placeBox(this.selectBox, this.selected);
    this.selectBox.setAttribute('aria-level', this.view.layout.depth[this.selected] + 1);
    this.selectBox.setAttribute('aria-label', this.events.describe(this.selected));
    this.selectBox.setAttribute('aria-selected', 'true');
  }

  placeBox(element, node) {
    element.hidden = node < 0;
    if (node < 0) return;
    const [x, w] = this.spanOf(node);
    const from = Math.max(0, x), to = Math.min(this.width, x + w);
    element.style.transform = `translate(${from}px, ${this.topOf(this.view.layout.depth[node])}px)`;
    element.style.width = `${Math.max(2, to - from - (to - from > 3 ? 1 : 0))}px`;
    element.style.height = `${this.rowPx - 1}px`;
  }

  /** Opens the menu of the selected node, below it. */
  openMenu() {
    const box = this.selectBox.getBoundingClientRect();
    const view = this.scroller.getBoundingClientRect();
    const y = Math.min(Math.max(box.bottom, view.top), view.bottom);
    this.events.menu(this.selected, Math.min(Math.max(box.left, 0) + 8, innerWidth - 16), y);
  }

  keyDown(event) {
    if (!this.view || event.ctrlKey || event.altKey || event.metaKey) return;
    const {upward, layout} = this.view;
    const actions = {
      [upward ? 'ArrowUp' : 'ArrowDown']: () => this.selectDown(),
      [upward ? 'ArrowDown' : 'ArrowUp']: () => this.selected > 0 && this.select(layout.tree.parent[this.selected]),
      ArrowLeft: () => this.selectBeside(-1),
      ArrowRight: () => this.selectBeside(1),
      Home: () => this.select(0),
      Enter: () => this.events.zoom(this.selected),
      ' ': () => this.events.zoom(this.selected),
      m: () => this.openMenu(),
      ContextMenu: () => this.openMenu(),
      F10: () => event.shiftKey && this.openMenu(),
    };
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /** To the widest node below, or towards the zoomed node where that lies below. */
  selectDown() {
    const {layout} = this.view;
    const {tree, firstChild, child, width} = layout;
    const depth = layout.depth[this.selected];
    if (depth < layout.depth[this.zoomed] && tree.isWithin(this.zoomed, this.selected)) {
      this.select(tree.pathTo(this.zoomed)[depth]);
      return;
    }
    let widest = -1;
    for (let i = firstChild[this.selected]; i < firstChild[this.selected + 1]; ++i) {
      if (widest < 0 || width[child[i]] > width[widest]) widest = child[i];
    }
    if (widest >= 0 && width[widest] > 0) this.select(widest);
  }

  /** To the next node of the same depth in that direction, within the zoomed one. */
  selectBeside(step) {
    const {layout} = this.view;
    const {tree, firstChild, child, depth, width} = layout;
    if (depth[this.selected] <= depth[this.zoomed]) return;
    const wanted = depth[this.selected];
    // Up until there is a neighbour, then down along its near side, and on to the next one where that is not deep enough.
    for (let node = this.selected; node !== this.zoomed; node = tree.parent[node]) {
      const parent = tree.parent[node];
      const begin = firstChild[parent], end = firstChild[parent + 1];
      for (let i = child.indexOf(node, begin) + step; i >= begin && i < end; i += step) {
        if (width[child[i]] === 0) continue;
        const found = this.firstAtDepth(child[i], wanted, step);
        if (found >= 0) return this.select(found);
      }
    }
  }

  firstAtDepth(top, wanted, step) {
    const {depth, firstChild, child, width} = this.view.layout;
    const open = [top];
    while (open.length > 0) {
      const node = open.pop();
      if (depth[node] === wanted) return node;
      const children = [...child.subarray(firstChild[node], firstChild[node + 1])].filter((c) => width[c] > 0);
      open.push(...(step > 0 ? children.reverse() : children));
    }
    return -1;
  }
}
