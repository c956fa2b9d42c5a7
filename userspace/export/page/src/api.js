// Questions to the server and its answers. All texts in an answer are made harmless where they arrive, but for the id of a recording,
// which is sent back and never shown.
import {inert} from '../../../output/page/src/text.js';

/** An error as a sentence (message), and what may help (hint). status: HTTP's, or 0 without an answer. */
export class ApiError extends Error {
  constructor(status, message, hint = '') {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

const MOST_TRIES = 4;
const LONGEST_WAIT_S = 60;

/** "api/profile?from=-5m&to=now": parameters that are null or undefined are left out. Relative, so that any prefix of a proxy stays. */
export function urlOf(path, parameters = {}) {
  const wanted = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  return wanted.length === 0 ? path : `${path}?${new URLSearchParams(wanted)}`;
}

/** @returns {Promise<object>} the answer's JSON. Throws ApiError; an AbortError as it is. */
export async function getJson(url, signal) {
  return JSON.parse(await getText(url, signal), (key, value) => (typeof value === 'string' && key !== 'id' ? inert(value) : value));
}

/** JSON whose reader makes its texts harmless. */
export async function getRawJson(url, signal) {
  return JSON.parse(await getText(url, signal));
}

export async function getText(url, signal) {
  let response;
  for (let tries = 1; ; ++tries) {
    try {
      response = await fetch(url, {signal, headers: {Accept: 'application/json, text/plain'}, credentials: 'same-origin'});
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError(0, 'The server does not answer.', 'Is clrsampler serve still running, and can this machine reach it?');
    }
    const wait = waitOf(response.status, response.headers.get('Retry-After'));
    if (wait === 0 || tries === MOST_TRIES) break;
    await pause(1000 * wait, signal);
  }
  const text = await response.text();
  if (response.ok) return text;
  throw errorOf(response.status, text);
}

/** Seconds until the same question may be answered: questions have a budget. 0: do not ask again. */
export function waitOf(status, retryAfter) {
  const seconds = Number(retryAfter ?? '');
  return (status === 429 || status === 503) && seconds > 0 && seconds <= LONGEST_WAIT_S ? seconds : 0;
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new DOMException('', 'AbortError'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, {once: true});
  });
}

export function errorOf(status, text) {
  try {
    const {error, hint} = JSON.parse(text);
    if (typeof error === 'string' && error !== '') return new ApiError(status, inert(error), typeof hint === 'string' ? inert(hint) : '');
  } catch {
    // Not from clrsampler: a proxy's page, for example.
  }
  return new ApiError(status, `The server answered with status ${status} and no explanation.`, 'A proxy between this page and clrsampler may say more in its log.');
}
