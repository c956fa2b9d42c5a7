// Is a difference of two weights more than the noise of sampling? profile/model_diff.h says how that is judged; here it is
// judged again, because views such as "who calls this" have nodes that the writer never saw. In the whole tree the answers
// are the same.

/**
 * @typedef {object} DiffRule
 * @property {number} scale  weights before are multiplied by it
 * @property {number} all    samples of both profiles where shares are compared, else 0
 * @property {?number} self  standard errors from which on a change of a method's own weight counts; null: none does
 * @property {?number} total  the same for its total
 * @property {?number} stack  and for a node of the tree
 * @property {boolean} tested  whether changes and noise can be told apart: only where weights count samples
 * @property {boolean} scatter_unknown  how much the program itself scatters could not be measured, so that marks may be noise
 */

const MIN_EXPECTED = 5;

/** @param {number} noise  how much more than chance the counts scatter  @returns {number} the change in standard errors */
export function standardErrors(rule, before, after, noise) {
  const n = before + after, q = rule.scale / (1 + rule.scale), smaller = Math.min(q, 1 - q);
  if (n * smaller < MIN_EXPECTED) return 0;
  let variance = noise * n * q * (1 - q);
  if (rule.all > 0) {
    const others = rule.all - n;
    if (others * smaller < MIN_EXPECTED) return 0;
    variance *= others / rule.all;
  }
  return Math.max(0, Math.abs(after - n * q) - 0.5) / Math.sqrt(variance);
}

/** critical: rule.self, rule.total or rule.stack. Where nothing is tested, each change counts. */
export function isSignificant(rule, critical, before, after, noise = 1) {
  if (!rule.tested) return true;
  return critical !== null && standardErrors(rule, before, after, noise) >= critical;
}

/**
 * The whole of which shares are told: the greater one of both, where the one before is scaled. They differ where a filter leaves more of one, and
 * where times are compared. So no share is above 100 %.
 */
export const comparedWhole = (rule, tree) => Math.max(tree.total[0], rule.scale * (tree.totalBefore?.[0] ?? 0));

/** The difference in points of the whole: "+10" where 20 % became 30 %. */
export function changePoints(rule, before, after, whole) {
  return whole > 0 ? (100 * (after - rule.scale * before)) / whole : 0;
}
