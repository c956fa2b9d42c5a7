// The legend says what the colours mean, and how the time itself is spread over them.
import {DIFF_PALETTES, diffRamp, KIND_TEXTS} from './palette.js';
import {KINDS} from './profile_data.js';
import {Swatch} from './node_details.jsx';
import {shareText} from './text.js';

/** shares: say how much of the time ran in code of each kind. */
export function KindLegend({profile, tree, whole, theme, shares}) {
  const self = new Float64Array(KINDS.length), seen = new Uint8Array(KINDS.length);
  for (let node = 1; node < tree.size; ++node) {
    const kind = profile.kinds[tree.frame[node]];
    seen[kind] = 1;
    self[kind] += tree.self[node];
  }
  const kinds = Object.keys(KIND_TEXTS).map((word) => ({word, kind: KINDS.indexOf(word)})).filter(({word, kind}) => seen[kind] && word !== 'process');
  return (
    <ul class="legend" aria-label="Legend">
      {kinds.map(({word, kind}) => (
        <li key={word} title={KIND_TEXTS[word][1]}><Swatch color={theme.kinds[word]} />{KIND_TEXTS[word][0]}{shares && self[kind] > 0 && <small>{shareText(self[kind], whole)} self</small>}</li>
      ))}
    </ul>
  );
}

export function DiffLegend({more, themeName, rule}) {
  const ramp = diffRamp(themeName, more);
  const none = rule.tested ? 'no change beyond the noise of sampling' : 'no change';
  const entries = [[ramp.of(-1), 'less than before'], [ramp.of(-0.2), 'a little less'], [rule.tested ? ramp.none : ramp.of(0), none], [ramp.of(0.2), 'a little more'], [ramp.of(1), 'more than before']];
  return (
    <ul class="legend" aria-label={`Legend: ${DIFF_PALETTES[more]}`}>
      {entries.map(([color, text]) => <li key={text}><Swatch color={color} />{text}</li>)}
      {!rule.tested && <li>Changes and noise can’t be told apart: the weights are no counts of samples.</li>}
      {rule.scatter_unknown && <li>The scatter of the program is not known: too few samples, or some without a time. Marks may be noise.</li>}
    </ul>
  );
}
