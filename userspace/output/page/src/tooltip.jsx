// A box of text beside the pointer, always in sight.
import {useLayoutEffect, useRef} from 'preact/hooks';

const POINTER_GAP_PX = 14;

/** at: {x, y}, the pointer's place in the window */
export function Tooltip({at, children}) {
  const element = useRef(null);
  useLayoutEffect(() => {
    const {style, offsetWidth, offsetHeight} = element.current;
    const left = at.x + POINTER_GAP_PX + offsetWidth > innerWidth ? at.x - POINTER_GAP_PX - offsetWidth : at.x + POINTER_GAP_PX;
    const top = at.y + POINTER_GAP_PX + offsetHeight > innerHeight ? at.y - POINTER_GAP_PX - offsetHeight : at.y + POINTER_GAP_PX;
    style.left = `${Math.max(4, left)}px`;
    style.top = `${Math.max(4, top)}px`;
  });
  return <div ref={element} class="tooltip" role="tooltip">{children}</div>;
}
