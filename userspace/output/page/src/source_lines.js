// The lines of one method: what each costs, what is known of its file, and which lines are shown.
import {inert} from './text.js';
import {applyTransforms} from './transforms.js';

const CONTEXT_LINES = 2;      // shown before and behind each line that has samples
export const MOST_ROWS = 500;
const MOST_CHARACTERS = 400;  // of a line of text
const TAB = '    ';
const INDENT = /^ */;
const LINE_ENDS = /\r\n|[\n\r\u0085\u2028\u2029]/;  // as the C# compiler counts lines

/**
 * @typedef {object} LineCost
 * @property {string} file
 * @property {number} line   0: not known
 * @property {number} self   weight of the stacks that end in the line
 * @property {number} total  with all that it calls; a stack that is in the line twice counts once
 * @property {boolean} exact, optimised  of which code its samples are; both may be true, and none where nobody said it
 */

const FOLDS = new Set(['fold', 'foldAll']);

/**
 * Folded calls of a method to itself stay apart: a sample counts in the line where it was taken.
 * @param {Profile} profile  one with lines
 * @param {number} method
 * @param {(thread: object) => boolean} wanted
 * @param {{kind: string, frame: number}[]} transforms  as they were applied to the tree that is shown
 * @returns {LineCost[]} by file, that with the most weight first, then by line; what has no line comes last
 */
export function lineCosts(profile, method, wanted, transforms) {
  const {tree: whole, frameOf, lineOf} = profile.lineTree(wanted, true);
  const tree = applyTransforms(whole, transforms.filter(({kind}) => !FOLDS.has(kind)), frameOf);
  const rows = new Map();
  const keys = new Array(tree.size), outer = new Int32Array(tree.size);  // nearest node of the method above; 0: none
  for (let node = 1; node < tree.size; ++node) {
    const above = tree.parent[node];
    outer[node] = keys[above] === undefined ? outer[above] : above;
    if (frameOf(tree.frame[node]) !== method) continue;
    const at = lineOf(tree.frame[node]);
    const {file, line, kind} = at < 0 ? NO_LINE : profile.lines[at];
    const key = `${line}\n${file}`;
    keys[node] = key;
    if (!rows.has(key)) rows.set(key, {file, line, self: 0, total: 0, exact: false, optimised: false});
    const row = rows.get(key);
    row.self += tree.self[node];
    if (kind === 'exact') row.exact = true;
    if (kind === 'optimised') row.optimised = true;
    let around = outer[node];
    while (around > 0 && keys[around] !== key) around = outer[around];
    if (around === 0) row.total += tree.total[node];
  }
  return inOrder([...rows.values()].filter(({total}) => total > 0));
}

const NO_LINE = {file: '', line: 0, kind: 'none'};

function inOrder(rows) {
  const weights = new Map();
  for (const {file, line, total} of rows) if (line > 0) weights.set(file, (weights.get(file) ?? 0) + total);
  const rank = new Map([...weights.keys()].sort((a, b) => weights.get(b) - weights.get(a)).map((file, i) => [file, i]));
  const place = ({file, line}) => (line > 0 ? rank.get(file) : weights.size);
  return rows.sort((a, b) => place(a) - place(b) || a.line - b.line);
}

/**
 * The rows to show of one file: those of the costs, and where the text is known the lines around them.
 * @param {LineCost[]} costs  of the file, by line
 * @param {string} text  of the file, or ""
 * @returns {({line: number, text: ?string, cost: ?LineCost} | {gap: true, line: number})[]}
 */
export function sourceRows(costs, text) {
  if (text === '') return costs.map((cost) => ({line: cost.line, text: null, cost}));
  const lines = text.split(LINE_ENDS);
  const rows = [];
  let next = 1;  // the first line that is not shown yet
  costs.forEach((cost, i) => {
    const begin = Math.max(next, cost.line - CONTEXT_LINES);
    if (i > 0 && begin > next && begin <= lines.length) rows.push({gap: true, line: next});
    for (let line = begin; line < cost.line && line <= lines.length; ++line) rows.push({line, text: lineText(lines, line), cost: null});
    rows.push({line: cost.line, text: lineText(lines, cost.line), cost});
    next = cost.line + 1;
    const end = Math.min(lines.length, cost.line + CONTEXT_LINES, (costs[i + 1]?.line ?? Infinity) - 1);
    for (; next <= end; ++next) rows.push({line: next, text: lineText(lines, next), cost: null});
  });
  return outdented(rows);
}

/** Without the spaces that all of them begin with. */
function outdented(rows) {
  const indent = Math.min(...rows.filter(({text}) => text?.trim()).map(({text}) => INDENT.exec(text)[0].length));
  return rows.map((row) => (row.text ? {...row, text: row.text.slice(indent)} : row));
}

/** null: the file has no such line, so it is another one. */
function lineText(lines, line) {
  const text = lines[line - 1];
  if (text === undefined) return null;
  return inert(text.slice(0, MOST_CHARACTERS).replaceAll('\t', TAB));
}

/** Where a line of a file can be read: a link for a browser, or null. Addresses come from strangers: only the web's are links. */
export function linkTo(url, line) {
  try {
    const link = new URL(url);
    if (link.protocol !== 'https:' && link.protocol !== 'http:') return null;
    link.hash = `L${line}`;
    return link.href;
  } catch {
    return null;
  }
}

/** Rows of instructions: all of them, or where they are too many those that are nearest to samples. */
export function rowsNearSamples(rows, most = MOST_ROWS) {
  if (rows.length <= most) return rows;
  const hot = rows.flatMap(({self}, i) => (self > 0 ? [i] : [])).sort((a, b) => rows[b].self - rows[a].self).slice(0, most);
  const kept = new Set(hot);
  for (let distance = 1; kept.size < most; ++distance) {
    for (const at of hot) {
      for (const near of [at - distance, at + distance]) if (near >= 0 && near < rows.length && kept.size < most) kept.add(near);
    }
  }
  return rows.filter((_, i) => kept.has(i));
}

/** The last part of a path as Linux or Windows has it. */
export function fileName(path) {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}
