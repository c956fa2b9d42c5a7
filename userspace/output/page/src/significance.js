// Is a difference of two weights more than the noise of sampling? The profile says how to judge (diff.*); the page only
// applies it, because views such as "who calls this" have nodes that the writer never saw.
//
// Samples are counted, so a weight of n samples varies by the square root of n, times `dispersion` where samples come in
// bursts. Weights of the profile before are scaled to the size of the one after.

/**
 * @typedef {object} DiffRule
 * @property {number} scale       weights before are multiplied by it
 * @property {number} unit        weight of one sample
 * @property {number} dispersion  variance of a count, divided by the count; 1: independent samples
 * @property {number} critical    standard errors from which on a difference counts
 */

/** @returns {number} the difference in standard errors; positive: more after than before */
export function standardErrors(rule, before, after) {
  const samplesBefore = before / rule.unit, samplesAfter = after / rule.unit;
  const variance = rule.dispersion * (samplesAfter + rule.scale * rule.scale * samplesBefore);
  return variance === 0 ? 0 : (samplesAfter - rule.scale * samplesBefore) / Math.sqrt(variance);
}

export function isSignificant(rule, before, after) {
  return Math.abs(standardErrors(rule, before, after)) >= rule.critical;
}

/** The difference in points of the whole: "+10" where 20 % became 30 %. whole: of the profile after. */
export function changePoints(rule, before, after, whole) {
  return whole > 0 ? (100 * (after - rule.scale * before)) / whole : 0;
}
