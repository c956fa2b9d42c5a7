// The account of a run (docs/stats.md) in plain words: how much of the truth the picture has, and what it cost.
import {countText, durationText, shareText} from './text.js';

const REASONS = {
  ring_full: 'the agent read too slowly',
  no_scratch: 'on a CPU that was not there at the start',
  damaged_record: 'a record that contradicted itself',
};

const plural = (count, one, many) => `${countText(count)} ${count === 1 ? one : many}`;

/**
 * @param {object} account  parsed; parts may be missing
 * @returns {{heading: string, good: boolean, lines: string[]}[]} what can be said; `good` is false where something that
 *     matters is missing from the picture
 */
export function accountInWords(account) {
  return [samplesPart(account), namesPart(account), stacksPart(account), costPart(account), noticesPart(account)].filter((part) => part !== null);
}

function samplesPart({samples, duration_seconds: seconds}) {
  if (!samples) return null;
  const lost = Object.entries(samples.lost ?? {}).filter(([, count]) => count > 0);
  const lostCount = lost.reduce((sum, [, count]) => sum + count, 0);
  const lines = [`${plural(samples.written ?? samples.taken, 'sample', 'samples')}${seconds ? ` in ${durationText(seconds * 1e9)}` : ''}.`];
  if (samples.expected > 0) {
    // Interrupts of busy CPUs give samples too, and are not in the accounting.
    const came = Math.min(samples.taken, samples.expected);
    lines.push(`The scheduler\u2019s accounting says there should be about ${countText(samples.expected)}: ${shareText(came, samples.expected)} of these came.`);
  }
  if (samples.set_aside > 0) lines.push(`${plural(samples.set_aside, 'sample is', 'samples are')} no part of this view.`);
  if (lostCount === 0) lines.push('None was lost.');
  for (const [reason, count] of lost) lines.push(`Lost: ${countText(count)}, ${REASONS[reason] ?? reason}.`);
  return {heading: 'Samples', good: lostCount <= 0.01 * (samples.taken + lostCount), lines};
}

function namesPart({frames}) {
  if (!frames) return null;
  const lines = [];
  let good = true;
  for (const [key, word] of [['managed', 'Managed'], ['native', 'Native'], ['kernel', 'Kernel']]) {
    const counts = frames[key];
    const all = counts ? counts.named + counts.unnamed : 0;
    if (all === 0) continue;
    lines.push(`${word}: ${shareText(counts.named, all)} of ${countText(all)} frames have a name.`);
    if (key === 'managed' && counts.named < 0.99 * all) good = false;
  }
  const reasons = Object.entries(frames.unnamed_reasons ?? {}).sort(([, a], [, b]) => b - a);
  for (const [text, count] of reasons.slice(0, 3)) lines.push(`Without a name: ${countText(count)} \u00d7 ${text}`);
  if (reasons.length > 3) lines.push(`\u2026 and ${plural(reasons.length - 3, 'other kind', 'other kinds')}.`);
  return lines.length === 0 ? null : {heading: 'Names', good, lines};
}

function stacksPart({stacks}) {
  const all = stacks ? (stacks.complete ?? 0) + (stacks.truncated ?? 0) + (stacks.broken ?? 0) : 0;
  if (all === 0) return null;
  const lines = [`${shareText(stacks.complete, all)} of the stacks reach the outermost frame of their thread.`];
  if (stacks.truncated > 0) lines.push(`${shareText(stacks.truncated, all)} are deeper than was asked for (--max-frames).`);
  if (stacks.broken > 0) lines.push(`${shareText(stacks.broken, all)} end early: their callers are missing.`);
  return {heading: 'Stacks', good: stacks.complete >= 0.95 * all, lines};
}

function costPart({self, duration_seconds: seconds}) {
  if (!self) return null;
  const mib = (bytes) => `${(bytes / 1048576).toFixed(1)} MiB`;
  const share = seconds > 0 ? `, ${shareText(self.cpu_seconds, seconds)} of one CPU` : '';
  return {
    heading: 'Cost of the recording',
    good: true,
    lines: [`${durationText(self.cpu_seconds * 1e9)} of CPU time${share}; ${mib(self.peak_rss_bytes)} of memory, ${mib(self.bpf_map_bytes)} in the kernel.`],
  };
}

function noticesPart({notices}) {
  if (!notices || notices.length === 0) return null;
  return {heading: 'Notices', good: false, lines: notices.flatMap(({message, hint}) => [message, ...(hint ? [`Hint: ${hint}`] : [])])};
}

/** One line for the head of the page. */
export function accountInShort(account) {
  const parts = accountInWords(account);
  const lost = Object.values(account.samples?.lost ?? {}).reduce((sum, count) => sum + count, 0);
  const managed = account.frames?.managed;
  const words = [];
  if (account.samples) words.push(lost === 0 ? 'nothing lost' : `${shareText(lost, account.samples.taken + lost)} lost`);
  if (managed && managed.named + managed.unnamed > 0) words.push(`${shareText(managed.named, managed.named + managed.unnamed)} named`);
  return {text: words.join(', '), good: parts.every(({good, heading}) => good || heading === 'Notices')};
}
