// The server's lanes as the map and the lanes of a recording's page take them: times are nanoseconds since `origin`.
import {CellSteps} from '../../../output/page/src/step_weights.js';
import {countText, inert} from './format.js';

const HOUR_MS = 3_600_000, MOST_STEPS = 100_000;

/** The meanings that a cell's colour can have. */
export const COLOURS = {cpu: 'CPU', samples: 'With waits', pauses: 'Pauses', search: 'Search'};

const WAITS = new Set(['waiting', 'idle']);

function threadsOf({threads = [], others = 0}) {
  return threads.map(({pid, tid, comm, name, ms}, index) => {
    const isOthers = pid === null;
    const own = inert(String(name || comm || 'thread')), of = inert(String(comm ?? ''));
    const label = isOthers ? `${countText(others)} other ${others === 1 ? 'thread' : 'threads'}` : tid ? `${own === of ? own : `${of}: ${own}`} (${tid})` : `${of} (${pid}), all threads`;
    return {index, pid, tid, comm: of, name: own, label, isOthers, weight: Number(ms) || 0, process: {index: 0}};
  });
}

/** Columns of CellSteps: of each lane its steps, `before` of them further on, and sums of its nanoseconds. */
function stepsOf(lanes, stepNs, steps, before) {
  const first = new Uint32Array(lanes.length + 1), step = [], sums = [0];
  lanes.forEach(({step: at = [], us = []}, lane) => {
    for (let i = 0; i < Math.min(at.length, us.length); ++i) {
      if (!(at[i] >= 0 && at[i] < steps && us[i] > 0)) continue;
      step.push(at[i] + before);
      sums.push(sums.at(-1) + us[i] * 1e3);
    }
    first[lane + 1] = step.length;
  });
  return new CellSteps({stepNs, steps: steps + before, first, step: Uint32Array.from(step), sums: Float64Array.from(sums)});
}

/**
 * @param {object} answer  of api/lanes
 * @returns {{profile: object, times: object, span: {from, to}, origin: number, hasWaits: boolean}} profile and times as LanesView and mapValues
 *     need them; span: what the answer is of; origin: milliseconds since 1970, the begin of an hour where steps fit into it
 */
export function readLanes(answer) {
  const steps = Math.min(MOST_STEPS, Math.max(0, Math.trunc(answer.steps) || 0)), stepMs = answer.step_ms > 0 ? answer.step_ms : 1;
  const since = (answer.begin % HOUR_MS) / stepMs, before = Number.isInteger(since) ? since : 0;
  const origin = answer.begin - before * stepMs, stepNs = stepMs * 1e6;
  const threads = threadsOf(answer), states = (answer.states ?? []).map(String);
  const lanes = (answer.lanes ?? []).filter(({thread, state}) => threads[thread] && states[state] !== undefined);
  return {
    profile: {about: {view: 'cpu', unit: 'nanoseconds', period_ns: 0}, threads},
    times: {
      laneTexts: states, groups: lanes.map(({thread, state}) => ({thread, kind: state + 1})), groupSteps: stepsOf(lanes, stepNs, steps, before),
      events: [], stacks: null, holdsWeights: true,
    },
    span: {from: before * stepNs, to: (before + Math.max(1, steps)) * stepNs}, origin, hasWaits: lanes.some(({state}) => WAITS.has(states[state])), isEmpty: steps === 0,
  };
}

/** The same with the pauses of the timeline as events. */
export function withPauses(lanes, pauses) {
  const {profile, times, origin} = lanes;
  const events = pauses.map(({t, pause_ms: ms, pid}) => ({
    kind: 'pause', from: (t - origin) * 1e6, to: (t - origin + ms) * 1e6, thread: profile.threads.findIndex((thread) => thread.pid === pid), name: '', detail: '',
  }));
  return {...lanes, times: {...times, events}};
}

/** A range of lanes as one of the page, in whole steps, and back. */
export function rangeOfPage({origin, times}, {from, to}) {
  const {stepNs} = times.groupSteps, step = stepNs / 1e6;
  const first = Math.floor(from / stepNs + 1e-6);
  return {from: origin + first * step, to: origin + Math.max(first + 1, Math.ceil(to / stepNs - 1e-6)) * step};
}

export const rangeOfLanes = ({origin}, range) => range && {from: (range.from - origin) * 1e6, to: (range.to - origin) * 1e6};
