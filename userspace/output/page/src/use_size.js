// The size of an element, as it changes.
import {useLayoutEffect, useState} from 'preact/hooks';

/** @returns {{width: number, height: number}} in CSS pixels */
export function useSize(element) {
  const [size, setSize] = useState({width: 0, height: 0});
  useLayoutEffect(() => {
    const measure = () => {
      const {clientWidth: width, clientHeight: height} = element.current;
      setSize((now) => (now.width === width && now.height === height ? now : {width, height}));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return size;
}
