// Texts for people: names from strangers made harmless, long names made short, weights with their units.

// Control characters, and those that change the order or the presence of what stands around them: they could make a name
// read as another. Markup needs no care: texts only ever become text nodes, attributes of elements, and pixels.
// biome-ignore lint/suspicious/noMisleadingCharacterClass: variation selectors stand for themselves here
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]/g;

export function inert(text) {
  return text.replace(UNSEEN, '\ufffd');
}

/**
 * Shorter and shorter texts for a qualified name: "Shop.Order.Add", "Order.Add", "Add". The end tells more than the
 * namespace. Text within <>, () and [] is not parted, and long type arguments are the first to go. The last but one is a
 * method with its type.
 * @param {boolean} dotted  dots part names, as they do in managed code but not in "clone.cold" or "libcoreclr.so!0x10"
 * @returns {string[]}
 */
export function shorterNames(name, dotted) {
  if (name.startsWith('[')) return [name];  // a sentence
  const names = [name];
  const brief = withoutArguments(name);
  if (brief !== name) names.push((name = brief));
  let depth = 0;
  for (let i = 1; i < name.length - 1; ++i) {
    const c = name[i];
    if (c === '(') break;  // parameters
    if (c === '<' || c === '[') ++depth;
    else if (c === '>' || c === ']') depth = Math.max(0, depth - 1);
    else if (depth > 0) continue;
    else if (c === '!' || (c === ':' && name[i - 1] === ':') || (dotted && c === '.' && name[i - 1] !== '.')) names.push(name.slice(i + 1));
  }
  return names;
}

const SHORT_ARGUMENTS = 12;

/** "Dictionary<int, Shop.Order>.Add" with long type arguments left out: "Dictionary<\u2026>.Add". */
export function withoutArguments(name) {
  let text = '', depth = 0, begin = 0;
  for (let i = 0; i < name.length; ++i) {
    if (name[i] === '<' && depth++ === 0) {
      text += name.slice(begin, i);
      begin = i;
    } else if (name[i] === '>' && depth > 0 && --depth === 0) {
      const isName = begin === 0 || name[begin - 1] === '.';  // "<lambda_1_0>"
      text += isName || i - begin <= SHORT_ARGUMENTS ? name.slice(begin, i + 1) : '<\u2026>';
      begin = i + 1;
    }
  }
  return text + name.slice(begin);
}

const COUNT = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const TIME_STEPS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
const NS_PER_UNIT = {nanoseconds: 1, microseconds: 1e3};

export function countText(count) {
  return COUNT.format(count);
}

/** "1.31 s" */
export function durationText(ns) {
  const [step, unit] = TIME_STEPS.find(([size]) => Math.abs(ns) >= size) ?? TIME_STEPS[3];
  const value = ns / step;
  return `${value.toFixed(Math.abs(value) >= 100 || step === 1 ? 0 : Math.abs(value) >= 10 ? 1 : 2)} ${unit}`;
}

const BYTE_STEPS = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']];

/** "1.31 MB" */
export function bytesText(bytes) {
  const [step, unit] = BYTE_STEPS.find(([size]) => Math.abs(bytes) >= size) ?? [1, 'B'];
  const value = bytes / step;
  return `${value.toFixed(Math.abs(value) >= 100 || step === 1 ? 0 : Math.abs(value) >= 10 ? 1 : 2)} ${unit}`;
}

/** "1,234 samples", or a time or bytes where weights are these */
export function weightText(weight, unit) {
  if (unit === 'bytes') return bytesText(weight);
  const ns = NS_PER_UNIT[unit];
  if (ns) return durationText(weight * ns);
  return `${countText(weight)} ${Math.round(weight) === 1 ? 'sample' : 'samples'}`;
}

/** The same without the word "samples": for tables. */
export function shortWeightText(weight, unit) {
  if (unit === 'bytes') return bytesText(weight);
  return NS_PER_UNIT[unit] ? durationText(weight * NS_PER_UNIT[unit]) : countText(weight);
}

/** "12.3 %": one digit behind the point, two below one per cent. Never "100 %" of what is not all, nor "0 %" of something. */
export function shareText(part, whole) {
  if (!(whole > 0)) return '0 %';
  const percent = (100 * part) / whole;
  if (percent === 0) return '0 %';
  if (Math.abs(percent) < 0.005) return '< 0.01 %';
  // Sums of the same numbers in another order differ by some 1e-16 of them.
  if (percent < 100 - 1e-7 && percent >= 99.95) return '> 99.9 %';
  return `${percent.toFixed(Math.abs(percent) < 0.9995 ? 2 : 1)} %`;
}

/** "+12.3 %" of a change between shares, in points */
export function changeText(points) {
  const text = `${Math.abs(points).toFixed(Math.abs(points) < 0.9995 ? 2 : 1)} points`;
  return points < 0 ? `\u2212${text}` : `+${text}`;
}
