// One flight recording as a flame graph.
import {Downloads} from './downloads.jsx';
import {processText} from './format.js';
import {getProfile, ProfilePanel} from './profile_panel.jsx';
import {recordingUrl} from './questions.js';
import {useResource} from './resource.js';
import {lengthText, timeText} from './time_range.js';

/** recording: its entry in the list; undefined as long as that is not there */
export function RecordingView({id, recording, now, themeName, listens, onClose, onRange}) {
  const resource = useResource(recordingUrl(id, 'page'), 0, getProfile);
  return (
    <>
      <div class="recording-head">
        <button onClick={onClose}>‹ All recordings</button>
        {recording && (
          <p class="facts">
            <span><code>{recording.trigger}</code></span><span>{recording.value}</span>
            <span>{Number.isInteger(recording.pid) ? processText(recording) : 'the host'}</span><span>{timeText(recording.t, now)}, {lengthText(recording.to - recording.from)}</span>
          </p>
        )}
        {recording && <button onClick={() => onRange({from: recording.from, to: recording.to})}>Choose its time on the timeline</button>}
        {resource.error && <span class="facts">Save as <Downloads urlOfFormat={(format) => recordingUrl(id, format)} /></span>}
      </div>
      <ProfilePanel resource={resource} gone empty="The recording has no samples." urlOfFormat={(format) => recordingUrl(id, format)} themeName={themeName} listens={listens} />
    </>
  );
}
