// Search, whose samples, and how the picture is drawn.
import {useEffect, useState} from 'preact/hooks';
import {ORDERS} from './frame_tree.js';
import {DIFF_PALETTES} from './palette.js';
import {shareText} from './text.js';

const SEARCH_DELAY_MS = 120;

export function Toolbar(props) {
  const {profile, before, onBefore, more, onMore, upward, onUpward, order, onOrder, foldAll, onFoldAll, apart, onApart} = props;
  return (
    <div class="toolbar" role="toolbar" aria-label="View">
      <Search {...props} />
      <Pickers {...props} />
      <Choice label="Direction" value={upward} onChange={onUpward} options={[[false, 'Icicle'], [true, 'Flame']]} />
      <label class="field"><span>Order</span>
        <select value={order} onChange={(event) => onOrder(event.target.value)}>
          <option value={ORDERS.weight}>widest first</option>
          <option value={ORDERS.name}>by name</option>
        </select>
      </label>
      <label class="check"><input type="checkbox" checked={foldAll} onChange={(event) => onFoldAll(event.target.checked)} /> Fold recursion</label>
      {profile.processes.length > 1 && (
        <label class="check"><input type="checkbox" checked={!apart} onChange={(event) => onApart(!event.target.checked)} /> Merge processes</label>
      )}
      {profile.diff && (
        <>
          <div class="field"><span>Widths</span><Choice label="Widths" value={before} onChange={onBefore} options={[[false, 'after'], [true, 'before']]} /></div>
          <label class="field"><span>Colours</span>
            <select value={more} onChange={(event) => onMore(event.target.value)}>
              {Object.entries(DIFF_PALETTES).map(([key, text]) => <option key={key} value={key}>{text}</option>)}
            </select>
          </label>
        </>
      )}
    </div>
  );
}

export function Choice({label, value, onChange, options}) {
  return (
    <div class="choice" role="radiogroup" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={text} role="radio" aria-checked={value === option} onClick={() => onChange(option)}>{text}</button>
      ))}
    </div>
  );
}

function Search({search, onSearch, error, matched, searchField}) {
  // A search takes as long as a drawing: not at each key of a fast typist.
  const [query, setQuery] = useState(search.query);
  useEffect(() => setQuery(search.query), [search.query]);
  useEffect(() => {
    if (query === search.query) return undefined;
    const timer = setTimeout(() => onSearch({...search, query}), SEARCH_DELAY_MS);
    return () => clearTimeout(timer);
  }, [query]);
  return (
    <div class="search">
      <input ref={searchField} type="search" placeholder="Search methods  ( / )" aria-label="Search methods" aria-invalid={error !== null}
        spellcheck={false} autocomplete="off" value={query} onInput={(event) => setQuery(event.target.value)} />
      <button class="pattern" aria-pressed={search.isPattern} title="Regular expression (RE2 syntax)" aria-label="Regular expression"
        onClick={() => onSearch({query, isPattern: !search.isPattern})}>.*</button>
      <output class={error ? 'error' : 'matched'} aria-live="polite">
        {error ?? (matched ? `${shareText(matched.weight, matched.whole)} of all ${matched.isMark ? 'in the method' : 'matched'}` : '')}
      </output>
    </div>
  );
}

/** Threads of one name are offered together as well: a pool has dozens. */
function threadGroups(threads) {
  const byName = new Map();
  for (const thread of [...threads].sort((a, b) => b.weight - a.weight)) {
    if (!byName.has(thread.name)) byName.set(thread.name, []);
    byName.get(thread.name).push(thread);
  }
  return [...byName].map(([name, members]) => ({name, members, weight: members.reduce((sum, {weight}) => sum + weight, 0)}))
    .sort((a, b) => b.weight - a.weight);
}

function Pickers({profile, picked, onPick, everyone}) {
  const {processes, threads} = profile;
  const total = threads.reduce((sum, {weight}) => sum + weight, 0);
  const candidates = picked.process ? processes[picked.process.index].threads : processes.length === 1 ? threads : [];
  const options = threadGroups(candidates).flatMap(({name, members, weight}) => {
    const label = (thread) => `${thread.name || 'thread'}${thread.tid ? ` (${thread.tid})` : ''}`;
    const single = members.map((thread) => ({text: label(thread), threads: [thread], weight: thread.weight}));
    return members.length === 1 ? single : [{text: `${name || 'thread'} \u00d7 ${members.length}`, threads: members, weight}, ...single.map((one) => ({...one, text: `\u2003${one.text}`}))];
  });
  const chosen = options.findIndex((option) => picked.threads && sameMembers(option.threads, picked.threads));
  return (
    <>
      {processes.length > 1 && (
        <label class="field"><span>Process</span>
          <select class="wide" value={picked.process ? picked.process.index : -1}
            onChange={(event) => onPick(event.target.value === '-1' ? everyone : {process: processes[event.target.value], threads: null})}>
            <option value={-1}>all {processes.length}</option>
            {processes.map((process) => <option key={process.index} value={process.index}>{process.label} · {shareText(process.weight, total)}</option>)}
          </select>
        </label>
      )}
      {options.length > 1 && (
        <label class="field"><span>Thread</span>
          <select class="wide" value={chosen}
            onChange={(event) => onPick({...picked, threads: options[event.target.value]?.threads ?? null})}>
            <option value={-1}>all {candidates.length}</option>
            {options.map((option, i) => <option key={i} value={i}>{option.text} · {shareText(option.weight, total)}</option>)}
          </select>
        </label>
      )}
    </>
  );
}

/** In any order: threads are ranked by their weights, which are others in another part of the time. */
function sameMembers(a, b) {
  const indexes = new Set(a.map(({index}) => index));
  return a.length === b.length && b.every(({index}) => indexes.has(index));
}
