// The work of each thread over time: a lane of columns, each with the shares of its time by kind of work.

/** Kinds of work with their colours, hues of the frames' kinds where these mean the same. */
export const LANE_COLORS = {
  light: {Other: '#c3c8cf', '.NET': '#f4ab3d', 'precompiled .NET': '#e0c62e', native: '#6fb6e4', kernel: '#f08d5f', 'garbage collection': '#c4361b', 'JIT compiler': '#b06fc0', waiting: '#9fb0c6', idle: '#e8ebef'},
  dark: {Other: '#70767f', '.NET': '#d98f12', 'precompiled .NET': '#cfb92f', native: '#63b3e4', kernel: '#e4794a', 'garbage collection': '#ff7a5c', 'JIT compiler': '#c58ad3', waiting: '#5d6f88', idle: '#2b2f36'},
};

/** Threads that have samples, most weight first, as indexes. Entries that stand for several threads come last. */
export function rankedThreads(profile, wanted = () => true) {
  return profile.threads.filter((thread) => thread.weight > 0 && wanted(thread)).sort((a, b) => (a.isOthers ?? false) - (b.isOthers ?? false) || b.weight - a.weight).map(({index}) => index);
}

/**
 * @param {RecordedTimes} times
 * @param {number[]} threads  whose lanes are wanted
 * @param {{from, to}} span  in nanoseconds
 * @param {number} columns
 * @param {?number} weightNs  time that a weight of 1 lasts from its step on; null: weights have no length
 * @returns {Map<number, Float64Array>} of each thread: of each column the weight by kind (0: not known, then laneTexts)
 */
export function laneColumns(times, threads, span, columns, weightNs = null) {
  const kinds = times.laneTexts.length + 1, steps = times.groupSteps;
  const lanes = new Map(threads.map((thread) => [thread, new Float64Array(columns * kinds)]));
  const columnNs = (span.to - span.from) / columns;
  times.groups.forEach(({thread, kind}, group) => {
    const lane = lanes.get(thread);
    if (!lane) return;
    for (let i = steps.first[group]; i < steps.first[group + 1]; ++i) {
      const from = steps.step[i] * steps.stepNs - span.from, weight = steps.sums[i + 1] - steps.sums[i];
      const length = Math.max(steps.stepNs, weightNs === null ? 0 : weight * weightNs);
      const column = Math.floor(from / columnNs + 1e-6);
      // Most are shorter than a column, and of a day there are millions.
      if (column >= 0 && column < columns && from >= column * columnNs && from + length <= (column + 1) * columnNs) lane[column * kinds + kind] += weight;
      else addTo(lane, kinds, kind, columnNs, columns, from, length, weight);
    }
  });
  return lanes;
}

/** Adds a weight that lasts from a time on to the columns that it goes over. */
function addTo(lane, kinds, kind, columnNs, columns, from, length, weight) {
  const first = Math.max(0, Math.floor(from / columnNs + 1e-6)), last = Math.min(columns - 1, Math.ceil((from + length) / columnNs - 1e-6) - 1);
  for (let column = first; column <= last; ++column) {
    const part = Math.min((column + 1) * columnNs, from + length) - Math.max(column * columnNs, from);
    if (part > 0) lane[column * kinds + kind] += (weight * part) / length;
  }
}

/** "garbage collection 62.0 %, .NET 38.0 %" of a column of a lane. */
export function sharesAt(times, lane, column) {
  const kinds = times.laneTexts.length + 1;
  const parts = Array.from({length: kinds}, (_, kind) => ({text: kind === 0 ? 'not known' : times.laneTexts[kind - 1], weight: lane[column * kinds + kind]})).filter(({weight}) => weight > 0);
  return parts.sort((a, b) => b.weight - a.weight);
}
