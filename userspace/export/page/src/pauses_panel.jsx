// The pauses of a range: how many of what kind, and each of the longest with who kept it waiting.
import {useMemo} from 'preact/hooks';
import {DataTable} from './data_table.jsx';
import {countText, msText, processText} from './format.js';
import {Answer} from './notes.jsx';
import {timeText} from './time_range.js';
import {kindText} from './timeline_model.js';

export function PausesPanel({resource, now, onPause, onProcess}) {
  return (
    <Answer resource={resource}>
      {(answer) => (
        <>
          <Summary {...answer} />
          <PausesTable pauses={answer.pauses ?? []} now={now} onPause={onPause} onProcess={onProcess} />
        </>
      )}
    </Answer>
  );
}

function Summary({count = 0, pause_ms: pause = 0, suspend_ms: suspend = 0, by_kind: kinds = {}, pauses = []}) {
  if (count === 0) return null;
  const words = Object.entries(kinds).sort(([, a], [, b]) => b - a).map(([kind, number]) => `${countText(number)} × ${kindText({kind})}`);
  return (
    <p class="note">
      <strong>{countText(count)} {count === 1 ? 'pause' : 'pauses'}</strong>, {msText(pause)} in all; {msText(suspend)} of that until all threads stood still.{' '}
      {words.join(', ')}.{count > pauses.length && ` The ${countText(pauses.length)} longest are listed.`}
    </p>
  );
}

function PausesTable({pauses, now, onPause, onProcess}) {
  const columns = useMemo(() => [
    {key: 'time', text: 'Time', of: ({t}) => t, number: true, title: 'a click chooses this time',
      cell: (pause) => <button class="link" aria-label={`Choose the time of the pause at ${timeText(pause.t, now, true)}`} onClick={() => onPause(pause)}>{timeText(pause.t, now, true)}</button>},
    {key: 'pause', text: 'Pause', of: ({pause_ms: ms}) => ms, cell: ({pause_ms: ms}) => msText(ms), number: true, title: 'from the request until the threads were let go'},
    {key: 'suspend', text: 'Suspend', of: ({suspend_ms: ms}) => ms, cell: ({suspend_ms: ms}) => msText(ms), number: true, title: 'until all threads stood still'},
    {key: 'process', text: 'Process', of: processText,
      cell: (pause) => <button class="link" aria-label={`Narrow to ${processText(pause)}`} onClick={() => onProcess(pause.pid)}>{processText(pause)}</button>},
    {key: 'kind', text: 'Kind', of: kindText, cell: (pause) => <>{kindText(pause)}{pause.induced && ', asked for'}{Number.isInteger(pause.gc_index) && <small> #{pause.gc_index}</small>}</>},
    {key: 'reason', text: 'Reason', of: ({gc_reason: gc, reason}) => gc || reason},
    {key: 'thread', text: 'Asked by', of: ({thread, tid}) => `${thread || 'thread'} (${tid})`},
    {key: 'culprits', text: 'Kept waiting by', of: ({culprits}) => culprits?.[0]?.delay_ms ?? 0, title: 'the threads that stopped last, and what they ran',
      cell: ({culprits}) => <Culprits culprits={culprits ?? []} />},
  ], [now, onPause, onProcess]);
  return (
    <DataTable label="Pauses" columns={columns} rows={pauses} rowKey={(pause, i) => `${pause.t}/${pause.pid}/${i}`} sortBy="pause"
      empty="No pauses in this range: no .NET runtime stopped its threads then, or pauses were not watched (see Health)." />
  );
}

const MOST_CULPRITS = 3;

function Culprits({culprits}) {
  if (culprits.length === 0) return <span class="quiet-text">–</span>;
  return (
    <ul class="culprits">
      {culprits.slice(0, MOST_CULPRITS).map(({method, tid, delay_ms: ms}, i) => <li key={i}><span class="method">{method}</span> <small>{msText(ms)}, thread {tid}</small></li>)}
      {culprits.length > MOST_CULPRITS && <li><small>… and {culprits.length - MOST_CULPRITS} more</small></li>}
    </ul>
  );
}
