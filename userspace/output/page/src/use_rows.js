// The rows of a long table that are in sight: only these are in the document, so that its size costs nothing.
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {useSize} from './use_size.js';

const SIZES = {rowPx: 26, headPx: 30};  // until they were measured
const BEYOND = 8;    // rows above and below those in sight, for the key Tab and for scrolling
const STEP = 4;      // scrolling draws again only so often

/** @returns {{first: number, end: number}} the rows to draw, of so many */
export function rowsInSight(scrollTop, height, rowPx, count) {
  const at = Math.floor(scrollTop / rowPx / STEP) * STEP, most = Math.ceil(height / rowPx) + STEP + 2 * BEYOND;
  const first = Math.max(0, Math.min(at - BEYOND, count - most));
  return {first, end: Math.min(count, first + most)};
}

/** Where a key leads from a row; null: nowhere. */
export function rowOfKey(key, row, page, count) {
  const places = {ArrowDown: row + 1, ArrowUp: row - 1, PageDown: row + page, PageUp: row - page, Home: 0, End: count - 1};
  return Object.hasOwn(places, key) && count > 0 ? Math.max(0, Math.min(count - 1, places[key])) : null;
}

/**
 * @param {{current: HTMLElement}} host  scrolls; its table's rows have aria-rowindex, where 1 is the head
 * @param {number} count  of rows without the head
 * @returns {{first: number, end: number, above: number, whole: number, onScroll: () => void, onKeyDown: (event: KeyboardEvent) => void}} above: pixels of
 *     the rows before the first one; whole: of all rows and the head
 */
export function useRows(host, count) {
  const [scrollTop, setScrollTop] = useState(0), [{rowPx, headPx}, setSizes] = useState(SIZES);
  const wanted = useRef(-1), hadFocus = useRef(false);
  const {width, height} = useSize(host);
  useLayoutEffect(() => {
    const row = host.current.querySelector('tbody tr');
    const of = (element) => element?.getBoundingClientRect().height || null;
    setSizes((now) => ({rowPx: of(row) ?? now.rowPx, headPx: of(host.current.querySelector('thead')) ?? now.headPx}));
  }, [width, count > 0]);
  const page = Math.max(1, Math.floor(height / rowPx) - 2);
  const elementOf = (row) => host.current.querySelector(`tbody tr[aria-rowindex="${row + 2}"] button`);
  // Before the next event of the browser: a key that follows at once starts from the right row.
  useLayoutEffect(() => {
    if (wanted.current >= 0) elementOf(wanted.current)?.focus({preventScroll: true});
    // The row with the focus was scrolled away: keys go on from what is in sight.
    else if (hadFocus.current && document.activeElement === document.body) host.current.focus({preventScroll: true});
    wanted.current = -1;
    hadFocus.current = host.current.contains(document.activeElement);
  });
  const onScroll = () => {
    hadFocus.current = host.current.contains(document.activeElement);
    setScrollTop(Math.floor(host.current.scrollTop / rowPx / STEP) * STEP * rowPx);
  };
  const onKeyDown = (event) => {
    const element = event.target.closest('tbody tr');
    if (event.ctrlKey || event.altKey || event.metaKey || (element === null && event.target !== host.current)) return;
    const row = element ? Number(element.getAttribute('aria-rowindex')) - 2 : Math.ceil(host.current.scrollTop / rowPx) - 1;
    const next = rowOfKey(event.key, row, page, count);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    const top = next * rowPx, room = Math.max(0, Math.floor(height - headPx - rowPx));
    if (top < host.current.scrollTop) host.current.scrollTop = top;
    else if (top > host.current.scrollTop + room) host.current.scrollTop = top - room;
    const drawn = elementOf(next);
    wanted.current = drawn ? -1 : next;
    if (drawn) drawn.focus({preventScroll: true});
    else setScrollTop(Math.floor(host.current.scrollTop / rowPx / STEP) * STEP * rowPx);
  };
  const inSight = rowsInSight(scrollTop, height, rowPx, count);
  return {...inSight, above: inSight.first * rowPx, whole: headPx + count * rowPx, onScroll, onKeyDown};
}
