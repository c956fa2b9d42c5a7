// The help: everything that the page can do, and the keys for it.
import {HelpDialog} from '../../../output/page/src/help_dialog.jsx';

const KEYS = [
  ['drag', 'over the timeline: choose a range; its ends can be dragged as well'],
  ['click', 'on an area or in the legend: only that process; on a pause: its time'],
  ['t', 'to the timeline; then:'],
  ['←, →', 'choose a range and move it; with Shift its end'],
  ['Home, End', 'to the beginning, to the end; with Shift only one end of the range'],
  ['+, −', 'zoom: into the range, and out. Ctrl and the wheel do it at the pointer'],
  ['Enter, Esc', 'the range over the whole width; no range'],
  ['a, b', 'all is the range; the range becomes the base of comparisons'],
  ['l', 'follow the time, or stand still'],
  ['Map and lanes', 'arrows move on the map, with Shift they mark; Enter chooses, with Shift to compare; c makes the range the base'],
];

export function Help({licences, onClose}) {
  return (
    <HelpDialog licences={licences} onClose={onClose}>
      <h2>The timeline</h2>
      <p>Areas say what ran, the marks below them when .NET threads stood still: the higher, the longer. All else on the page is about the chosen range.
        The address in the browser holds what is chosen: send it to people who should see the same.</p>
      <dl>{KEYS.map(([key, text]) => <div key={key}><dt>{key.split(', ').map((k, i) => <span key={k}>{i > 0 && ', '}<kbd>{k}</kbd></span>)}</dt><dd>{text}</dd></div>)}</dl>
    </HelpDialog>
  );
}
