// Flight recordings: what was kept at full detail because something happened.
import {useMemo} from 'preact/hooks';
import {DataTable} from './data_table.jsx';
import {Downloads} from './downloads.jsx';
import {bytesText, processText} from './format.js';
import {Answer} from './notes.jsx';
import {recordingUrl} from './questions.js';
import {lengthText, timeText} from './time_range.js';

export function RecordingsPanel({resource, now, onOpen, onProcess}) {
  const columns = useMemo(() => [
    {key: 'time', text: 'Time', of: ({t}) => t, number: true,
      cell: (recording) => <button class="link" aria-label={`Open the recording of ${timeText(recording.t, now)}`} onClick={() => onOpen(recording)}>{timeText(recording.t, now)}</button>},
    {key: 'trigger', text: 'Trigger', of: ({trigger}) => trigger, cell: ({trigger}) => <code>{trigger}</code>},
    {key: 'value', text: 'Seen', of: ({value}) => value},
    {key: 'process', text: 'Process', of: ({pid, comm}) => (pid === null ? '' : processText({pid, comm})),
      cell: ({pid, comm}) => (Number.isInteger(pid)
        ? <button class="link" aria-label={`Narrow to ${processText({pid, comm})}`} onClick={() => onProcess(pid)}>{processText({pid, comm})}</button>
        : 'the host')},
    {key: 'length', text: 'Length', of: ({from, to}) => to - from, cell: ({from, to}) => lengthText(to - from), number: true},
    {key: 'bytes', text: 'Size', of: ({bytes}) => bytes, cell: ({bytes}) => bytesText(bytes), number: true},
    {key: 'save', text: 'Save as', of: ({id}) => id, cell: ({id}) => <Downloads urlOfFormat={(format) => recordingUrl(id, format)} />},
  ], [now, onOpen, onProcess]);
  return (
    <Answer resource={resource}>
      {({recordings = []}) => (
        <DataTable label="Flight recordings" columns={columns} rows={recordings} rowKey={({id}) => id} sortBy="time"
          empty="No flight recordings: no trigger has fired. --trigger 'pause>100ms', for example, keeps the minute around each pause longer than that." />
      )}
    </Answer>
  );
}
