// How much of the truth is in what is shown, and what recording it cost.
import {AccountInWords} from '../../../output/page/src/account_panel.jsx';
import {bytesText, countText, shareText} from './format.js';
import {accountOf, rateChanges} from './health.js';
import {Answer} from './notes.jsx';
import {dateText, lengthOf, lengthText, timeText} from './time_range.js';

const PENDING_MS = 20_000;  // the last windows are not yet written

export function HealthPanel({resource, status, range, now}) {
  return (
    <Answer resource={resource}>
      {(health) => (
        <div class="account">
          <Coverage health={health} range={range} />
          <AccountInWords account={accountOf(health)} />
          <Rates rates={rateChanges(health.rates)} now={now} />
          <NoticeCounts counts={health.notice_counts ?? {}} />
          {status && <Service status={status} />}
        </div>
      )}
    </Answer>
  );
}

function Coverage({health: {covered_ms: covered = 0}, range}) {
  const length = lengthOf(range);
  const good = covered >= 0.99 * length - PENDING_MS;
  return (
    <section>
      <h3><Sign good={good} /> Time</h3>
      <p>{covered > 0 ? `${shareText(Math.min(covered, length), length)} of ${lengthText(length)} are recorded.` : 'Nothing of this range is recorded: clrsampler was not running then, or its history does not reach back so far any more.'}</p>
    </section>
  );
}

function Sign({good}) {
  return <span class={good ? 'good' : 'poor'} role="img" aria-label={good ? 'good' : 'look here'}>{good ? '✓' : '!'}</span>;
}

function Rates({rates, now}) {
  if (rates.length === 0) return null;
  return (
    <section>
      <h3><Sign good={rates.length === 1} /> Rate</h3>
      {rates.length === 1 && <p>{rates[0].hz} samples a second and CPU, all the time.</p>}
      {rates.length > 1 && <p>The rate was changed to stay within the limits; weights take account of it.</p>}
      {rates.length > 1 && <ul>{rates.map(({t, hz}) => <li key={t}>{timeText(t, now)}: {hz} samples a second and CPU</li>)}</ul>}
    </section>
  );
}

function NoticeCounts({counts}) {
  const entries = Object.entries(counts).filter(([, count]) => count > 0);
  if (entries.length === 0) return null;
  return (
    <section>
      <h3>Notices by kind</h3>
      {entries.map(([kind, count]) => <p key={kind}>{countText(count)} × {kind}</p>)}
    </section>
  );
}

function Service({status}) {
  const {store, started, oldest, version} = status;
  return (
    <section>
      <h3>Service</h3>
      <p>clrsampler {version}{started > 0 && `, running since ${dateText(started)} ${timeText(started, started)}`}.</p>
      {store
        ? <p>History: {bytesText(store.bytes)}{store.max_bytes > 0 && ` of at most ${bytesText(store.max_bytes)}`}; {countText(store.windows)} windows, {countText(store.minutes)} minutes and {countText(store.hours)} hours
            {oldest > 0 && `, the oldest of ${dateText(oldest)} ${timeText(oldest, oldest)}`}.</p>
        : <p>No history is kept: only the last windows are in memory.</p>}
    </section>
  );
}
