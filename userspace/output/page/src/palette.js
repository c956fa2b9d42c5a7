// Colours of frames. By kind: hues after Okabe and Ito, which people with any kind of colour vision can tell apart, made
// lighter or darker until the text on them reads well (tests: contrast of at least 4.5). Differences: blue is less, orange
// is more, or blue and red; grey is noise.
import {interpolateLab} from 'd3-interpolate';
import {KINDS} from './profile_data.js';

export const THEMES = {
  light: {
    paper: '#ffffff', ink: '#17191c', muted: '#e3e5e8', mutedInk: '#54585e', fade: 0.45, spread: 0.28,
    kinds: {
      jit: '#f4ab3d', r2r: '#f3e06a', aot: '#e9c46f', inlined: '#57c79f', native: '#86c8ef', kernel: '#f08d5f', role: '#dba1c4',
      mark: '#c9ccd1', type: '#b5c46a', unknown: '#d8dadd', process: '#b9c3d6',
    },
  },
  dark: {
    paper: '#16181c', ink: '#eceef1', muted: '#33373e', mutedInk: '#a4a9b1', fade: 0.4, spread: 0.16,
    kinds: {
      jit: '#d98f12', r2r: '#cfb92f', aot: '#bf9440', inlined: '#27a67b', native: '#63b3e4', kernel: '#e4794a', role: '#cf92b8',
      mark: '#949aa3', type: '#a3b552', unknown: '#9aa0a8', process: '#93a1bc',
    },
  },
};

export const KIND_TEXTS = {
  jit: ['JIT', 'compiled while the program ran; runtime stubs as well'],
  r2r: ['ReadyToRun', 'managed code compiled ahead of time'],
  aot: ['NativeAOT', 'managed code of a native program'],
  inlined: ['inlined', 'stands inside its caller\u2019s code'],
  native: ['native', 'the runtime, libc and other native libraries'],
  kernel: ['kernel', 'the operating system'],
  role: ['runtime role', 'the purpose of a thread of the runtime'],
  type: ['type', 'the type of the object that its caller allocates; no code'],
  mark: ['mark', 'a word about the stack at this place; no code'],
  unknown: ['not known', 'the profile does not say'],
  process: ['process', ''],
};

// Text on frames, whichever contrasts more: with these two it is at least 4.58 on any colour.
const DARK_TEXT = '#000000', LIGHT_TEXT = '#ffffff';

/** Relative luminance of '#rrggbb' or 'rgb(r, g, b)', as the Web Content Accessibility Guidelines define it. */
export function luminance(color) {
  const channels = color.startsWith('#') ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)) : color.match(/[\d.]+/g).map(Number);
  const [r, g, b] = channels.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

export function textColorOn(fill) {
  return contrast(DARK_TEXT, fill) >= contrast(LIGHT_TEXT, fill) ? DARK_TEXT : LIGHT_TEXT;
}

const SHADES = 5;

function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/**
 * Fills of each frame by its kind. Methods differ a little in lightness, so that neighbours are told apart, and always
 * alike for one name.
 * @param {Profile} profile
 * @returns {string[]} by frame
 */
export function kindFills(profile, theme) {
  const ramps = KINDS.map((kind) => {
    const ramp = interpolateLab(theme.kinds[kind], theme.paper);
    return Array.from({length: SHADES}, (_, i) => ramp((theme.spread * i) / (SHADES - 1)));
  });
  return profile.names.map((name, frame) => ramps[profile.kinds[frame]][hash(name) % SHADES]);
}

const DIFF_COLORS = {
  light: {none: '#dfe1e4', orange: ['#fbe3c4', '#e08a00'], red: ['#fbdcd3', '#dd4a2a'], blue: ['#d9eaf7', '#3b94d1']},
  dark: {none: '#474c54', orange: ['#6b532c', '#e99a1c'], red: ['#6e4036', '#f0714f'], blue: ['#2f4d63', '#58b0ea']},
};
export const DIFF_PALETTES = {orange: 'blue / orange', red: 'blue / red'};

/** Fills for changes: `more` is 'orange' or 'red'. Strength -1 (much less) to 1 (much more). */
export function diffRamp(themeName, more) {
  const colors = DIFF_COLORS[themeName];
  const up = interpolateLab(...colors[more]), down = interpolateLab(...colors.blue);
  return {none: colors.none, of: (strength) => (strength > 0 ? up(Math.min(1, strength)) : down(Math.min(1, -strength)))};
}
