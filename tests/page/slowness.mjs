// How much slower a browser is now than where the pages' budgets were set: another machine, or one that does other things as well. A budget
// times this is what a page may take.
const QUIET_MS = 60;  // `work` in Chromium, on two idle CPUs of 2.6 GHz

function work() {
  const begin = performance.now();
  let text = '';
  for (let i = 0; i < 40_000; ++i) text += `"method${(i * 7919) % 100_003}":${i},`;
  Object.keys(JSON.parse(`{${text}"end":1}`)).sort();
  return performance.now() - begin;
}

/** At least 1: the median of five times, since the first ones are those of a compiler that has seen nothing yet. */
export async function slowness(page) {
  const times = [];
  for (let i = 0; i < 5; ++i) times.push(await page.evaluate(work));
  return Math.max(1, times.sort((a, b) => a - b)[2] / QUIET_MS);
}
