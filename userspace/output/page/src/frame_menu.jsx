// The acts on a frame: by the right button, a menu key, or from the table.
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {KINDS} from './profile_data.js';

export function FrameMenu({profile, tree, rootName, node, frame, x, y, onClose, onZoom, onTransform, onMark, onStudy, tellsWakers}) {
  const element = useRef(null);
  const isMethod = frame >= 0 && KINDS[profile.kinds[frame]] !== 'process';
  const name = frame >= 0 ? profile.names[frame] : rootName;
  const entry = (text, act) => ({text, act});
  const entries = [
    node >= 0 && entry('Zoom in', () => onZoom(node)),
    isMethod && entry('Who calls this?', () => onTransform('callers', frame)),
    isMethod && entry('What does this call?', () => onTransform('callees', frame)),
    isMethod && tellsWakers && entry('Who ended waits in this?', () => onTransform('wakers', frame)),
    isMethod && entry('Focus: only stacks with this', () => onTransform('focus', frame)),
    isMethod && entry('Leave out stacks with this', () => onTransform('without', frame)),
    isMethod && entry('Hide this frame', () => onTransform('hide', frame)),
    isMethod && callsItself(tree, frame) && entry('Fold its recursion', () => onTransform('fold', frame)),
    isMethod && entry('Mark everywhere', () => onMark(frame)),
    isMethod && onStudy && entry('Show its lines', () => onStudy(frame)),
    navigator.clipboard && entry('Copy the name', () => navigator.clipboard.writeText(name)),
  ].filter(Boolean);

  useLayoutEffect(() => {
    const {style, offsetWidth, offsetHeight} = element.current;
    style.left = `${Math.max(4, Math.min(x, innerWidth - offsetWidth - 4))}px`;
    style.top = `${Math.max(4, Math.min(y, innerHeight - offsetHeight - 4))}px`;
    element.current.querySelector('button').focus();
  }, [x, y, frame]);
  useEffect(() => {
    const outside = (event) => { if (!element.current.contains(event.target)) onClose(false); };
    addEventListener('pointerdown', outside, true);
    return () => removeEventListener('pointerdown', outside, true);
  }, []);

  const keyDown = (event) => {
    const buttons = [...element.current.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement);
    const to = {ArrowDown: (at + 1) % buttons.length, ArrowUp: (at + buttons.length - 1) % buttons.length, Home: 0, End: buttons.length - 1}[event.key];
    if (to !== undefined) buttons[to].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') onClose(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div ref={element} class="menu" role="menu" aria-label={name} onKeyDown={keyDown} onContextMenu={(event) => event.preventDefault()}>
      <div class="menu-title" aria-hidden="true">{name}</div>
      {entries.map(({text, act}) => (
        <button key={text} role="menuitem" tabIndex={-1} onClick={() => { onClose(true); act(); }}>{text}</button>
      ))}
    </div>
  );
}

function callsItself(tree, frame) {
  const within = new Uint8Array(tree.size);
  for (let node = 1; node < tree.size; ++node) {
    const above = within[tree.parent[node]];
    const same = tree.frame[node] === frame;
    if (same && above) return true;
    within[node] = above || same ? 1 : 0;
  }
  return false;
}
