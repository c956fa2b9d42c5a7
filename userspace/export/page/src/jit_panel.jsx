// The cost of compiling in a range, by method.
import {useMemo} from 'preact/hooks';
import {DataTable} from './data_table.jsx';
import {bytesText, countText, msText, processText} from './format.js';
import {Answer} from './notes.jsx';

export function JitPanel({resource, onProcess}) {
  const columns = useMemo(() => [
    {key: 'method', text: 'Method', of: ({method}) => method, cell: ({method}) => <span class="method">{method}</span>},
    {key: 'total', text: 'Time', of: ({total_ms: ms}) => ms, cell: ({total_ms: ms}) => msText(ms), number: true, title: 'time of compiling, in all'},
    {key: 'count', text: 'Times', of: ({count}) => count, cell: ({count}) => countText(count), number: true, title: 'how often it was compiled'},
    {key: 'longest', text: 'Longest', of: ({longest_ms: ms}) => ms, cell: ({longest_ms: ms}) => msText(ms), number: true},
    {key: 'bytes', text: 'Code', of: ({bytes}) => bytes, cell: ({bytes}) => bytesText(bytes), number: true},
    {key: 'tier', text: 'Tier', of: ({tier}) => tier},
    {key: 'process', text: 'Process', of: processText,
      cell: (row) => <button class="link" aria-label={`Narrow to ${processText(row)}`} onClick={() => onProcess(row.pid)}>{processText(row)}</button>},
  ], [onProcess]);
  return (
    <Answer resource={resource}>
      {({count = 0, total_ms: total = 0, methods = []}) => (
        <>
          {count > 0 && (
            <p class="note"><strong>{countText(count)} {count === 1 ? 'compilation' : 'compilations'}</strong>, {msText(total)} in all.
              {' '}The {countText(methods.length)} methods that took most of it:</p>
          )}
          <DataTable label="JIT cost by method" columns={columns} rows={methods} rowKey={(row, i) => `${row.pid}/${row.method}/${row.tier}/${i}`} sortBy="total"
            empty="No compilations in this range: no .NET method was compiled then, or compiling was not watched (see Health)." />
        </>
      )}
    </Answer>
  );
}
