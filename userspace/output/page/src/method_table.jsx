// Top methods: what each costs alone (self) and with what it calls (total). A click marks the method in the picture. What the
// runtime does without a name is one row for each role; a click shows the functions by their addresses.
import {useMemo, useState} from 'preact/hooks';
import {Swatch} from './node_details.jsx';
import {changePoints, isSignificant} from './significance.js';
import {countText, shareText, shortWeightText, withoutArguments} from './text.js';

const MOST_ROWS = 200;
const MOST_ADDRESSES = 50;  // of one role

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
  const shown = rows.slice(0, MOST_ROWS);
  return (
    <div>
      <table class="methods">
        <thead><tr>
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
          {shown.map((row) => (row.below ? (
            <RoleRows key={row.name} row={row} {...{profile, whole, unit, fills, marked, onMark}} open={opened === row.name}
              onOpen={() => setOpened((now) => (now === row.name ? null : row.name))} />
          ) : (
            <tr key={row.frame} class={row.frame === marked ? 'marked' : ''}
              onContextMenu={(event) => { event.preventDefault(); onMenu(row.frame, event.clientX, event.clientY); }}>
              <td class="name"><button class="link" aria-pressed={row.frame === marked} title={profile.names[row.frame]} onClick={() => onMark(row.frame)}>
                <Swatch color={fills[row.frame]} /><span class="cut"><bdi>{withoutArguments(profile.names[row.frame])}</bdi></span>
              </button></td>
              {diff
                ? <DiffCells row={row} tree={tree} profile={profile} />
                : <><NumberCell value={row.self} whole={whole} unit={unit} /><NumberCell value={row.total} whole={whole} unit={unit} /></>}
              <td class="more"><button class="quiet" aria-label={`Menu for ${profile.names[row.frame]}`}
                onClick={(event) => { const box = event.currentTarget.getBoundingClientRect(); onMenu(row.frame, box.left, box.bottom); }}>⋮</button></td>
            </tr>
          )))}
        </tbody>
      </table>
      <p class="note">{rows.length === 0 ? 'No method matches.' : rows.length > shown.length ? `${countText(shown.length)} of ${countText(rows.length)} methods; search for the others.` : ''}</p>
    </div>
  );
}

function RoleRows({row, profile, whole, unit, fills, marked, onMark, open, onOpen}) {
  const text = `${row.below.length === 1 ? 'one function' : `${countText(row.below.length)} functions`} without a name, and what else is below`;
  return (
    <>
      <tr class="role">
        <td class="name"><button class="link" aria-expanded={open} title={`${row.name}: ${text}`} onClick={onOpen}>
          <Swatch color={fills[row.frame]} /><span class="cut"><bdi>{row.name}</bdi></span><span class="fold" aria-hidden="true">{open ? '\u25be' : '\u25b8'}</span>
        </button></td>
        <NumberCell value={row.self} whole={whole} unit={unit} /><NumberCell value={row.total} whole={whole} unit={unit} />
        <td class="more" />
      </tr>
      {open && row.below.slice(0, MOST_ADDRESSES).map(({frame, self}) => (
        <tr key={frame} class={`below${frame === marked ? ' marked' : ''}`}>
          <td class="name"><button class="link" aria-pressed={frame === marked} title={profile.names[frame]} onClick={() => onMark(frame)}>
            <Swatch color={fills[frame]} /><span class="cut"><bdi>{profile.names[frame]}</bdi></span>
          </button></td>
          <NumberCell value={self} whole={whole} unit={unit} /><td class="number" />
          <td class="more" />
        </tr>
      ))}
      {open && row.below.length > MOST_ADDRESSES && (
        <tr class="below"><td colspan="4" class="note">{countText(row.below.length - MOST_ADDRESSES)} more; search for them.</td></tr>
      )}
    </>
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
  const whole = tree.total[0] || 1;
  const after = (row) => row.self / whole, before = (row) => (rule.scale * row.selfBefore) / whole;
  const change = (row) => after(row) - before(row);
  return {
    name: COLUMNS.name,
    before: {text: 'Before', of: before, title: 'self, share of the profile before, scaled to the size of the one after'},
    after: {text: 'After', of: after, title: 'self, share of the profile after'},
    // What is noise comes last, however large.
    change: {text: 'Change', of: change, rank: (row) => (changeCounts(profile, row) ? 1 : 1e-6) * Math.abs(change(row)), title: 'change of the self share, in points'},
  };
}

function DiffCells({row, tree, profile}) {
  const rule = profile.diff;
  const points = changePoints(rule, row.selfBefore, row.self, tree.total[0]);
  const counts = changeCounts(profile, row);
  return (
    <>
      <td class="number">{shareText(rule.scale * row.selfBefore, tree.total[0])}</td>
      <td class="number">{shareText(row.self, tree.total[0])}</td>
      <td class={`number ${counts ? (points > 0 ? 'up' : 'down') : 'noise'}`} title={counts ? '' : 'within the noise of sampling'}>
        {points < 0 ? '\u2212' : '+'}{Math.abs(points).toFixed(2)}
      </td>
    </>
  );
}
