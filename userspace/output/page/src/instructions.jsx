// The instructions of a method's bodies with their samples, below its lines.
import {fileName, MOST_ROWS, rowsNearSamples} from './source_lines.js';
import {countText, shareText} from './text.js';

/** bodies: what Profile.code has of the method */
export function Instructions({bodies}) {
  if (bodies.length === 0) return null;
  const whole = bodies.reduce((sum, {samples}) => sum + samples, 0);
  return (
    <section class="instructions">
      <h3>Instructions, of the whole recording</h3>
      {bodies.map((body, i) => <Body key={body.what} {...{body, whole}} open={i === 0} />)}
    </section>
  );
}

function Body({body, whole, open}) {
  const {what, samples, rows} = body;
  return (
    <details open={open}>
      <summary>{what}: {countText(samples)} samples</summary>
      <div class="lines-host" tabIndex={0} role="region" aria-label={`Instructions of ${what}`}><table class="lines">
        <thead><tr><th scope="col" class="number line">Offset</th><th scope="col" class="number" title="taken at the instruction">Self</th><th scope="col">Instruction</th></tr></thead>
        <tbody>{rowsNearSamples(rows).flatMap((row, i, all) => rowsOf(row, all[i - 1], whole))}</tbody>
      </table></div>
      {rows.length > MOST_ROWS && <p class="note">{countText(MOST_ROWS)} of {countText(rows.length)} instructions: those around the samples.</p>}
    </details>
  );
}

function rowsOf(row, before, whole) {
  const {offset, self, text, file, line} = row;
  const place = line > 0 ? `${fileName(file)}:${line}` : 'no line';
  const heading = before === undefined || before.file !== file || before.line !== line;
  const own = (
    <tr key={offset}>
      <th scope="row" class="number line">{offset.toString(16).padStart(4, '0')}</th>
      <td class="number">{self > 0 && <Share {...{self, whole}} />}</td>
      <td class="text"><code>{text || '\u2026'}</code></td>
    </tr>
  );
  return heading ? [<tr key={`line ${offset}`} class="place"><td colSpan={3}>{place}</td></tr>, own] : [own];
}

function Share({self, whole}) {
  return (
    <>
      <span class="bar" aria-hidden="true" ref={(element) => { if (element) element.style.width = `${100 * self / whole}%`; }} />
      <span class="value"><small>{countText(self)} </small>{shareText(self, whole)}</span>
    </>
  );
}
