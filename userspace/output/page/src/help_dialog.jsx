// Keys, mouse, and the licences of the libraries in this page.
import {useEffect, useRef} from 'preact/hooks';

const KEYS = [
  ['click, Enter', 'zoom into a frame'],
  ['Esc', 'one step back'],
  ['right click, m', 'the menu of a frame: callers, focus, hide, \u2026'],
  ['arrows', 'from frame to frame'],
  ['Home', 'to the root'],
  ['/', 'search'],
  ['?', 'this help'],
];
const TIME_KEYS = [
  ['drag', 'choose a range: every view shows it'],
  ['click, Enter', 'choose a column'],
  ['arrows, Page Up, Page Down, Home, End', 'from cell to cell'],
  ['Shift+arrows', 'mark cells; Enter chooses them'],
  ['c, Shift+drag', 'compare: the range that is chosen next with this one'],
  ['+, -', 'zoom into the range, and out again'],
  ['a', 'choose all that is shown'],
  ['Esc', 'one step back'],
];

/** children: what else there is to know about the page, before the flame graph */
export function HelpDialog({licences, onClose, hasTimes = false, children}) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={onClose}>
      {children}
      <h2>How to read {children ? 'the flame graph' : 'this'}</h2>
      <p>Each box is a method; below it (above, in a flame) is what it calls. The wider the box, the more of the samples were taken while the method, or something
        that it called, ran. From left to right is no order in time.</p>
      <Keys keys={KEYS} />
      {hasTimes && (
        <>
          <h2>The timeline</h2>
          <p>Time goes down a column of the map, and then on to the next column. The darker a cell, the more it has of what the map is coloured by. Below it each
            thread has a lane: how busy it was, and with what kind of work.</p>
          <Keys keys={TIME_KEYS} />
        </>
      )}
      <details><summary>Licences</summary><pre>{licences.trim()}</pre></details>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}

function Keys({keys}) {
  return <dl>{keys.map(([key, text]) => <div key={key}><dt>{key.split(', ').map((k, i) => <span key={k}>{i > 0 && ', '}<kbd>{k}</kbd></span>)}</dt><dd>{text}</dd></div>)}</dl>;
}
