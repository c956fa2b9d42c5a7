// Colours of the areas of the timeline. A series keeps its colour as long as it is there: others come and go each ten seconds.

const COLORS = ['#4e8ac9', '#f0a04b', '#4fa36b', '#c96ba6', '#8d78c9', '#d9c02c', '#3aa7a3', '#b5744a', '#e07b86', '#7f9c3b', '#8fb8de', '#a3889b'];
export const OTHER = {light: '#b4b9c1', dark: '#70767f'};

/** Marks on the timeline. */
export const MARKS = {
  light: {gap: '#eceef1', hatch: '#c3c8cf', grid: '#e6e8ec', pause: '#c4361b', other: '#6b7280', suspend: '#5b21b6', flag: '#0b63b5'},
  dark: {gap: '#212429', hatch: '#4a5059', grid: '#2b2f36', pause: '#ff7a5c', other: '#9aa0a8', suspend: '#c4a7ff', flag: '#7db9ee'},
};

/**
 * @param {string[]} keys  of the series to be shown
 * @param {Map<string, number>} before  the last result of this function; it also has series that are not shown now
 * @returns {Map<string, number>} the same with a colour's number for each of the keys: different ones as far as they go
 */
export function assignColors(keys, before = new Map()) {
  const colors = new Map(before), used = new Set();
  const isFree = (color) => color !== undefined && (!used.has(color) || used.size >= COLORS.length);
  const take = (key, color) => {
    colors.set(key, color);
    used.add(color);
  };
  const fresh = keys.filter((key) => (isFree(before.get(key)) ? take(key, before.get(key)) : true));
  for (const key of fresh) {
    const free = COLORS.findIndex((_, color) => !used.has(color));
    take(key, free >= 0 ? free : colors.size % COLORS.length);
  }
  return colors;
}

export const colorOf = (number) => COLORS[number];
