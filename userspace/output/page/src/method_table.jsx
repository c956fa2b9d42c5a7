// Top methods: what each costs alone (self) and with what it calls (total). A click marks the method in the picture. Work of
// the runtime without a name is one row for each role; a click shows the functions by their addresses.
import {useMemo, useRef, useState} from 'preact/hooks';
import {Swatch} from './node_details.jsx';
import {changePoints, comparedWhole, isSignificant} from './significance.js';
import {countText, shareText, shortWeightText, withoutArguments} from './text.js';
import {useRows} from './use_rows.js';

const COLUMNS = {
  name: {text: 'Method', of: null},
  self: {text: 'Self', of: (row) => row.self, title: 'in the method itself'},
  total: {text: 'Total', of: (row) => row.total, title: 'with all that it calls'},
};

const nameOf = (profile, row) => row.name ?? profile.names[row.frame];

export function MethodTable({profile, tree, whole, unit, fills, costs, found, marked, onMark, onMenu}) {
  const {diff} = profile;
  const [sort, setSort] = useState({key: diff ? 'change' : 'self', descending: true});
  const [opened, setOpened] = useState(null);  // name of the role whose functions are shown
  const columns = useMemo(() => (diff ? diffColumns(profile, tree) : COLUMNS), [profile, tree]);
  const rows = useMemo(() => {
    const {of, rank} = columns[sort.key];
    const fits = ({frame, below}) => found[frame] || below?.some((one) => found[one.frame]);
    const wanted = found ? costs.filter(fits) : [...costs];
    const sign = sort.descending ? -1 : 1;
    const key = rank ?? of;
    const compare = key ? (a, b) => sign * (key(a) - key(b)) : (a, b) => -sign * (nameOf(profile, a) < nameOf(profile, b) ? -1 : 1);
    return wanted.sort(compare);
  }, [costs, found, columns, sort]);
  const lines = useMemo(() => linesOf(rows, opened), [rows, opened]);
  const host = useRef(null);
  const {first, end, above, whole: room, onScroll, onKeyDown} = useRows(host, lines.length);
  // As high as all rows, whatever is in the document meanwhile: so the place stays that is scrolled to.
  const setRoom = (element) => {
    if (element) Object.assign(element.style, {paddingTop: `${above}px`, height: `${room}px`});
  };
  const open = (name) => setOpened((now) => (now === name ? null : name));
  return (
    <div class="methods-host" ref={host} tabIndex={-1} onScroll={onScroll} onKeyDown={onKeyDown}>
      <div ref={setRoom}>
        <table class="methods" aria-rowcount={lines.length + 1}>
          <thead><tr aria-rowindex={1}>
            {Object.entries(columns).map(([key, {text, title}]) => (
              <th key={key} scope="col" class={key === 'name' ? 'name' : 'number'} aria-sort={sort.key === key ? (sort.descending ? 'descending' : 'ascending') : 'none'}>
                <button title={title} onClick={() => setSort({key, descending: sort.key === key ? !sort.descending : true})}>
                  {text}<span aria-hidden="true">{sort.key === key ? (sort.descending ? ' \u2193' : ' \u2191') : ''}</span>
                </button>
              </th>
            ))}
            <th scope="col" class="more" aria-label="Menu" />
          </tr></thead>
          <tbody>
            {lines.slice(first, end).map((line, i) => (
              <Line key={line.key} line={line} index={first + i + 2} {...{profile, tree, whole, unit, fills, onMark, onMenu}} isMarked={!line.isRole && line.row.frame === marked}
                isOpen={line.isRole && opened === line.row.name} onOpen={open} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="note">No method matches.</p>}
    </div>
  );
}

/** One line for each row, and for each function of the role that is open. */
function linesOf(rows, opened) {
  return rows.flatMap((row) => {
    if (!row.below) return [{key: row.frame, row}];
    const own = {key: row.name, row, isRole: true};
    return row.name === opened ? [own, ...row.below.map((one) => ({key: `${one.frame} below`, row: one, isBelow: true}))] : [own];
  });
}

function Line({line: {row, isRole, isBelow}, index, profile, tree, whole, unit, fills, onMark, onMenu, isMarked, isOpen, onOpen}) {
  const name = nameOf(profile, row);
  const title = isRole ? `${name}: ${row.below.length === 1 ? 'one function' : `${countText(row.below.length)} functions`} without a name, and what else is below` : name;
  const says = isRole ? {'aria-expanded': isOpen, onClick: () => onOpen(row.name)} : {'aria-pressed': isMarked, onClick: () => onMark(row.frame)};
  const hasMenu = !isRole && !isBelow;
  return (
    <tr aria-rowindex={index} class={[isRole && 'role', isBelow && 'below', isMarked && 'marked'].filter(Boolean).join(' ')}
      onContextMenu={hasMenu ? (event) => { event.preventDefault(); onMenu(row.frame, event.clientX, event.clientY); } : undefined}>
      <td class="name"><button class="link" title={title} {...says}>
        <Swatch color={fills[row.frame]} /><span class="cut"><bdi>{hasMenu ? withoutArguments(name) : name}</bdi></span>
        {isRole && <span class="fold" aria-hidden="true">{isOpen ? '\u25be' : '\u25b8'}</span>}
      </button></td>
      {profile.diff ? <DiffCells row={row} tree={tree} profile={profile} />
        : <><NumberCell value={row.self} whole={whole} unit={unit} />{isBelow ? <td class="number" /> : <NumberCell value={row.total} whole={whole} unit={unit} />}</>}
      <td class="more">{hasMenu && (
        <button class="quiet" aria-label={`Menu for ${name}`} onClick={(event) => { const box = event.currentTarget.getBoundingClientRect(); onMenu(row.frame, box.left, box.bottom); }}>⋮</button>
      )}</td>
    </tr>
  );
}

function NumberCell({value, whole, unit}) {
  const share = whole > 0 ? value / whole : 0;
  return (
    <td class="number" title={shortWeightText(value, unit)}>
      <span class="bar" aria-hidden="true" ref={(element) => { if (element) element.style.width = `${100 * Math.min(1, share)}%`; }} />
      <span class="value">{shareText(value, whole)}</span>
    </td>
  );
}

function changeCounts(profile, row) {
  return isSignificant(profile.diff, profile.diff.self, row.selfBefore, row.self, profile.noiseSelf[row.frame]);
}

function diffColumns(profile, tree) {
  const rule = profile.diff;
  const whole = comparedWhole(rule, tree) || 1;
  const after = (row) => row.self / whole, before = (row) => (rule.scale * row.selfBefore) / whole;
  const change = (row) => after(row) - before(row);
  return {
    name: COLUMNS.name,
    before: {text: 'Before', of: before, title: 'self, share of the profile before, scaled to the size of the one after; of the larger one, if they differ'},
    after: {text: 'After', of: after, title: 'self, share of the profile after, or of the one before where that is larger'},
    // Changes that are noise come last, however large.
    change: {text: 'Change', of: change, rank: (row) => (changeCounts(profile, row) ? 1 : 1e-6) * Math.abs(change(row)), title: 'change of the self share, in points'},
  };
}

function DiffCells({row, tree, profile}) {
  const rule = profile.diff;
  const whole = comparedWhole(rule, tree);
  const points = changePoints(rule, row.selfBefore, row.self, whole);
  const counts = changeCounts(profile, row);
  return (
    <>
      <td class="number">{shareText(rule.scale * row.selfBefore, whole)}</td>
      <td class="number">{shareText(row.self, whole)}</td>
      <td class={`number ${counts ? (points > 0 ? 'up' : 'down') : 'noise'}`} title={counts ? '' : 'within the noise of sampling'}>
        {points < 0 ? '\u2212' : '+'}{Math.abs(points).toFixed(2)}
      </td>
    </>
  );
}
