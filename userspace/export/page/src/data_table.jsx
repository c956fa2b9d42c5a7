// A table that sorts.
import {useMemo, useState} from 'preact/hooks';

/**
 * columns: {key, text, of, cell, title, number}. of: what a row is sorted by; cell: what is shown of it, else that; number: right side, and
 * the first click sorts the largest first.
 */
export function DataTable({label, columns, rows, rowKey, sortBy, empty}) {
  const [sort, setSort] = useState({key: sortBy, descending: true});
  const sorted = useMemo(() => {
    const {of} = columns.find(({key}) => key === sort.key);
    const sign = sort.descending ? -1 : 1;
    return rows.map((row) => [of(row) ?? '', row]).sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
  }, [rows, sort]);
  if (rows.length === 0) return <p class="note">{empty}</p>;
  return (
    <div class="table-host">
      <table class="data" aria-label={label}>
        <thead><tr>
          {columns.map(({key, text, title, number}) => (
            <th key={key} scope="col" class={number ? 'number' : ''} aria-sort={sort.key === key ? (sort.descending ? 'descending' : 'ascending') : 'none'}>
              <button title={title} onClick={() => setSort({key, descending: sort.key === key ? !sort.descending : Boolean(number)})}>
                {text}<span aria-hidden="true">{sort.key === key ? (sort.descending ? ' ↓' : ' ↑') : ''}</span>
              </button>
            </th>
          ))}
        </tr></thead>
        <tbody>
          {sorted.map((row, i) => (
            <tr key={rowKey(row, i)}>{columns.map(({key, of, cell, number}) => <td key={key} class={number ? 'number' : ''}>{cell ? cell(row) : of(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
