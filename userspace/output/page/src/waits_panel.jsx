// Waiting threads: running and waiting by kind, whether the thread pool is starved, and which threads wait for which.
import {useMemo} from 'preact/hooks';
import {shareText, shortWeightText, withoutArguments} from './text.js';
import {RUNNING, summarizeWaits, WAIT_TEXTS} from './waits.js';

const MOST_SITES = 30;
const MOST_WAKERS = 3;  // of one site

// Other sentences give no verdict: it is not known, or there are several pools.
const verdictClass = (verdict) => (/ is starved/.test(verdict) ? 'poor' : / is not starved/.test(verdict) ? 'good' : '');

/** onMark: a frame in the picture; onFocus: only its stacks; onWakers: stacks of its wakers; null where the profile does not tell. */
export function WaitsPanel({profile, wanted, marked, onMark, onFocus, onWakers}) {
  const {running, waited, kinds, sites} = useMemo(() => summarizeWaits(profile, wanted), [profile, wanted]);
  const {unit} = profile.about, duration = profile.durationNs();
  const verdict = profile.account?.thread_pool;
  const between = sites.filter(({betweenThreads}) => betweenThreads), others = sites.filter(({betweenThreads}) => !betweenThreads);
  const threads = (weight) => (duration > 0 ? `${((weight * (unit === 'nanoseconds' ? 1 : 1e3)) / duration).toFixed(1)} threads at a time` : '');
  const siteProps = {profile, unit, whole: waited, marked, onMark, onFocus, onWakers};
  return (
    <div class="waits">
      {verdict && <p class={`verdict ${verdictClass(verdict)}`}>{verdict}</p>}
      <h3>{running > 0 ? 'Running and waiting' : 'Waiting'}</h3>
      <p class="note">{shortWeightText(waited, unit)} of waiting{duration > 0 && `, ${threads(waited)}`}{running > 0 && `; ${shortWeightText(running, unit)} of running`}.</p>
      <ul class="kinds">
        {kinds.map(({kind, frame, weight}) => (
          <li key={kind} class={frame >= 0 && frame === marked ? 'marked' : ''}>
            <button class="link" disabled={frame < 0} aria-pressed={frame >= 0 && frame === marked} onClick={() => onMark(frame)}>{kind}</button>
            <small>{kind === RUNNING ? 'on a CPU' : WAIT_TEXTS[kind] ?? ''}</small>
            <Share value={weight} whole={waited + running} unit={unit} />
          </li>
        ))}
      </ul>
      <h3>Threads wait for each other</h3>
      {between.length === 0 ? <p class="note">Nowhere: no lock, task, semaphore or event was waited for.</p> : <Sites sites={between} {...siteProps} />}
      {others.length > 0 && <><h3>Other waits</h3><Sites sites={others} {...siteProps} /></>}
    </div>
  );
}

function Share({value, whole, unit}) {
  return (
    <span class="number" title={shareText(value, whole)}>
      <span class="bar" aria-hidden="true" ref={(element) => { if (element) element.style.width = `${(100 * value) / Math.max(whole, value)}%`; }} />
      <span class="value">{shortWeightText(value, unit)}</span>
    </span>
  );
}

function Sites({sites, profile, unit, whole, marked, onMark, onFocus, onWakers}) {
  const nameOf = (frame) => (frame >= 0 ? withoutArguments(profile.names[frame]) : 'unknown');
  return (
    <>
      <ul class="sites">
        {sites.slice(0, MOST_SITES).map(({kind, frame, weight, wakers}) => (
          <li key={`${kind}/${frame}`} class={frame === marked ? 'marked' : ''}>
            <div class="site">
              <span class="kind">{kind}</span>
              <button class="link cut" aria-pressed={frame === marked} title={profile.names[frame]} disabled={frame < 0} onClick={() => onMark(frame)}><bdi>{nameOf(frame)}</bdi></button>
              <Share value={weight} whole={whole} unit={unit} />
            </div>
            {wakers.slice(0, MOST_WAKERS).map((waker) => (
              <p key={`${waker.thread}/${waker.frame}`} class="waker">ended by <b>{waker.thread}</b>{waker.frame >= 0 && <> in <span title={profile.names[waker.frame]}>{nameOf(waker.frame)}</span></>}, {shortWeightText(waker.weight, unit)}</p>
            ))}
            {wakers.length > MOST_WAKERS && <p class="waker">and by {wakers.length - MOST_WAKERS} more</p>}
            {frame >= 0 && (
              <p class="acts">
                <button class="quiet" aria-label={`Stacks that wait in ${nameOf(frame)}`} onClick={() => onFocus(frame)}>its stacks</button>
                {onWakers && wakers.length > 0 && <button class="quiet" aria-label={`Wakers of waits in ${nameOf(frame)}`} onClick={() => onWakers(frame)}>its wakers</button>}
              </p>
            )}
          </li>
        ))}
      </ul>
      {sites.length > MOST_SITES && <p class="note">{sites.length - MOST_SITES} more, in the picture.</p>}
    </>
  );
}
