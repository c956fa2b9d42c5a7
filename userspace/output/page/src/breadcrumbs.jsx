// Where the picture is, and how it came there: what was done to the tree, each with a way to take it back, and the way from
// the root to the zoomed frame.

export const TRANSFORM_TEXTS = {
  focus: 'only stacks with',
  without: 'without stacks with',
  hide: 'hidden:',
  callees: 'callees of:',
  callers: 'callers of:',
  wakers: 'wakers of waits in:',
  fold: 'recursion folded:',
};
const MOST_CRUMBS = 6;

export function Breadcrumbs({profile, tree, rootName, zoomed, onZoom, transforms, onTransforms, marked, onMarked}) {
  const path = tree.pathTo(zoomed);
  const shown = path.slice(-MOST_CRUMBS);
  return (
    <nav class="crumbs" aria-label="Where the picture is">
      {transforms.map(({kind, frame}, i) => (
        <Chip key={i} text={`${TRANSFORM_TEXTS[kind]} ${profile.shortName(frame)}`} title={profile.names[frame]}
          onRemove={() => onTransforms(transforms.filter((_, at) => at !== i))} />
      ))}
      {marked >= 0 && <Chip text={`marked: ${profile.shortName(marked)}`} title={profile.names[marked]} onRemove={() => onMarked(-1)} />}
      <ol>
        <li><Crumb text={rootName} isLast={zoomed === 0} onClick={() => onZoom(0)} /></li>
        {path.length > shown.length && <li>{'\u2026'}</li>}
        {shown.map((node) => (
          <li key={node}><Crumb text={profile.shortName(tree.frame[node])} title={profile.names[tree.frame[node]]} isLast={node === zoomed} onClick={() => onZoom(node)} /></li>
        ))}
      </ol>
    </nav>
  );
}

function Crumb({text, title, isLast, onClick}) {
  return isLast ? <span aria-current="location" title={title}>{text}</span> : <button class="link" title={title} onClick={onClick}>{text}</button>;
}

function Chip({text, title, onRemove}) {
  return <span class="chip" title={title}>{text}<button aria-label={`Take back: ${text}`} onClick={onRemove}>×</button></span>;
}
