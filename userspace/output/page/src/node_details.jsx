// A frame in words: what it is and what it costs. As a tooltip, as a line below the picture, and for screen readers.
import {KIND_TEXTS} from './palette.js';
import {KINDS} from './profile_data.js';
import {changePoints, comparedWhole, isSignificant} from './significance.js';
import {changeText, shareText, weightText} from './text.js';
import {Tooltip} from './tooltip.jsx';

function origin(profile, frame) {
  const kind = KINDS[profile.kinds[frame]];
  return [KIND_TEXTS[kind][0], profile.modules[frame], profile.tiers[frame], profile.sources[frame] && `named by ${profile.sources[frame]}`].filter(Boolean);
}

function costLines(profile, tree, node, unit) {
  const total = tree.total[node], self = tree.self[node], whole = profile.diff ? comparedWhole(profile.diff, tree) : tree.total[0];
  const lines = [['total', `${weightText(total, unit)}, ${shareText(total, whole)}`], ['self', `${weightText(self, unit)}, ${shareText(self, whole)}`]];
  if (profile.diff) {
    const before = tree.totalBefore[node];
    const counts = isSignificant(profile.diff, profile.diff.stack, before, total, profile.noiseTotal[tree.frame[node]]);
    const change = changeText(changePoints(profile.diff, before, total, whole));
    lines.push(['before', `${weightText(before, unit)}, ${shareText(profile.diff.scale * before, whole)}`]);
    // Scaled to the size of the other, the whole has not changed.
    if (node > 0 || counts) lines.push(['change', counts ? change : `${change}: within the noise of sampling`]);
  }
  return lines;
}

export function describeNode(profile, tree, node, rootName) {
  const name = node === 0 ? rootName : profile.names[tree.frame[node]];
  const words = node === 0 ? [] : origin(profile, tree.frame[node]);
  return [name, ...words, ...costLines(profile, tree, node, profile.about.unit).map((line) => line.join(' '))].join(', ');
}

/** `at`: the pointer's place, for a tooltip beside it. */
export function NodeDetails({profile, tree, node, unit, fills, rootName, at = null}) {
  const frame = tree.frame[node];
  const words = (
    <>
      <div class="details-name">
        {node > 0 && <Swatch color={fills[frame]} />}
        <strong>{node === 0 ? rootName : profile.names[frame]}</strong>
      </div>
      {node > 0 && <div class="details-origin">{origin(profile, frame).join(' · ')}</div>}
      <dl>{costLines(profile, tree, node, unit).map(([word, text]) => <div key={word}><dt>{word}</dt><dd>{text}</dd></div>)}</dl>
    </>
  );
  return at ? <Tooltip at={at}>{words}</Tooltip> : <div class="details">{words}</div>;
}

// Colours are set by script: the page's policy allows no style attributes.
export function Swatch({color}) {
  return <span class="swatch" aria-hidden="true" ref={(element) => { if (element) element.style.background = color; }} />;
}
