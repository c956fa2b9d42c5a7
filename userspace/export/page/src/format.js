// Numbers as texts.
import {countText, durationText, inert, shareText} from '../../../output/page/src/text.js';

export {countText, inert, shareText};

export const msText = (ms) => (ms > 0 ? durationText(ms * 1e6) : '0');

const SIZES = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

export function bytesText(bytes) {
  const [size, unit] = SIZES.find(([limit]) => bytes >= limit) ?? [1, 'B'];
  return `${size === 1 ? bytes : (bytes / size).toFixed(bytes / size >= 100 ? 0 : 1)} ${unit}`;
}

/** A number of which three digits tell enough. */
export function roughText(value) {
  if (value === 0) return '0';
  if (value < 0.01) return '< 0.01';
  return value >= 100 ? countText(value) : value.toFixed(value >= 10 ? 1 : 2);
}

/** "shop (4711)" */
export function processText({comm, pid}) {
  if (!Number.isInteger(pid)) return comm || 'unknown process';
  return comm ? `${comm} (${pid})` : `process ${pid}`;
}
