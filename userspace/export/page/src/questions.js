// Questions to the server that a state of the page asks: addresses of its API.
import {urlOf} from './api.js';
import {baseParameters, isComparing, rangeParameters, spanParameters, whoParameters} from './view_state.js';

const MOST_ROWS = 500;
const LANE_POINTS = 10_000, LANES = 12;  // a day of windows

/** The kind of series that is asked for: of containers or of processes. The states of threads come with either. */
export const seriesBy = ({by}) => (by === 'container' ? 'container' : 'process');

/** width: of the timeline in pixels, which says how many points are worth asking for */
export function timelineUrl(state, width) {
  const points = width < 600 ? 120 : width < 1600 ? 300 : 600;
  return urlOf('api/timeline', {...spanParameters(state), ...whoParameters(state), by: seriesBy(state), points, series: width < 600 ? 8 : 12});
}

/** The profile of the chosen range, or its difference from the base. */
export function profileUrl(state, format = 'page') {
  const wanted = {...rangeParameters(state), ...whoParameters(state), view: state.view, format};
  return isComparing(state) ? urlOf('api/diff', {...baseParameters(state), ...wanted}) : urlOf('api/profile', wanted);
}

/** The chosen process; null: none is chosen. */
export const processUrl = (state) => (state.pid === null ? null : urlOf('api/processes', {...rangeParameters(state), pid: state.pid}));

const tableUrl = (path) => (state) => urlOf(path, {...rangeParameters(state), ...whoParameters(state), limit: MOST_ROWS});
export const pausesUrl = tableUrl('api/pauses');
export const jitUrl = tableUrl('api/jit');
export const healthUrl = (state) => urlOf('api/health', rangeParameters(state));
export const recordingUrl = (id, format) => urlOf(`api/recordings/${encodeURIComponent(id)}`, {format});
/** method: only of stacks with such a method */
export function lanesUrl(state, method = null) {
  const {pid, container} = state;
  return urlOf('api/lanes', {...spanParameters(state), pid, container, points: LANE_POINTS, threads: LANES, method});
}
export const RECORDINGS_URL = 'api/recordings', STATUS_URL = 'api/status', LICENCES_URL = 'assets/licences.txt';
