// The timeline by keyboard: which key does what, as a function.
import {endOf, reachOf} from './timeline_model.js';
import {lengthOf, moveWithin, sameRange, shift, zoom} from './time_range.js';

/**
 * @param {{key: string, shiftKey: boolean}} event
 * @param {{begin, step, steps}} grid  what is shown
 * @param {?{from, to}} range  what is chosen
 * @param {{from, to}} shown  what will be shown: further than the grid after several keys in a moment
 * @returns {?object} one of {range}, {span}, {clear: true}, {base: true}; null: the key means nothing
 */
export function timelineKey({key, shiftKey}, grid, range, shown = reachOf(grid)) {
  const {step} = grid;
  const bounds = reachOf(grid), end = endOf(grid);
  const first = {from: bounds.from, to: bounds.from + step}, last = {from: end - step, to: end};
  const moved = (by) => moveWithin(shift(range, by), bounds);
  const extended = (to) => ({from: range.from, to: Math.min(end, Math.max(range.from + step, to))});
  const page = Math.max(step, Math.round((range ? lengthOf(range) : lengthOf(bounds) / 10) / step) * step);
  // Without a range the first key chooses the last step, or at the left the first one.
  const keys = {
    ArrowRight: () => ({range: !range ? last : shiftKey ? extended(range.to + step) : moved(step)}),
    ArrowLeft: () => ({range: !range ? last : shiftKey ? extended(range.to - step) : moved(-step)}),
    Home: () => ({range: !range ? first : shiftKey ? {from: bounds.from, to: range.to} : moveWithin(shift(range, bounds.from - range.from), bounds)}),
    End: () => ({range: !range ? last : shiftKey ? {from: range.from, to: end} : moveWithin(shift(range, end - range.to), bounds)}),
    PageUp: () => (range ? {range: moved(-page)} : {span: shift(shown, -lengthOf(shown) / 2)}),
    PageDown: () => (range ? {range: moved(page)} : {span: shift(shown, lengthOf(shown) / 2)}),
    '+': () => ({span: range && !sameRange(range, bounds) ? range : zoom(shown, 0.5)}),
    '-': () => ({span: zoom(shown, 2, range ? (range.from + range.to) / 2 : undefined)}),
    Enter: () => (range ? {span: range} : null),
    Escape: () => (range ? {clear: true} : null),
    a: () => ({range: bounds}),
    b: () => ({base: true}),
  };
  keys['='] = keys['+'];
  keys['_'] = keys['-'];
  return Object.hasOwn(keys, key) ? keys[key]() : null;
}
