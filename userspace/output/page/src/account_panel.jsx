// The account of the run: what the picture may leave out, and what taking it cost.
import {accountInWords} from './account.js';
import {shareText, weightText} from './text.js';
import {clockText} from './time_state.js';

export function AccountPanel({profile}) {
  if (!profile.account && !profile.accountBefore && !profile.chosen) {
    return <p class="note">The profile has no account of its recording: it was read from a format that holds none.</p>;
  }
  return (
    <div class="account">
      {profile.chosen && <ChosenRange profile={profile} />}
      {profile.accountBefore && <><h2>Before</h2><AccountInWords account={profile.accountBefore} /><h2>After</h2></>}
      {profile.account && <AccountInWords account={profile.account} />}
      {profile.about.command && <section><h3>Command</h3><p><code>{profile.about.command}</code></p></section>}
      {profile.about.creator && <p class="note">Made by {profile.about.creator}.</p>}
    </div>
  );
}

/** The part of the recording that the other views show; the account is of all the time. */
function ChosenRange({profile}) {
  const {chosen: {range, base}, whole} = profile, {unit} = profile.about;
  const sum = (threads, key) => threads.reduce((total, thread) => total + thread[key], 0);
  const all = sum(whole.threads, 'weight'), part = sum(profile.threads, 'weight');
  const times = whole.times.durationNs, clock = ({from, to}) => `${clockText(from, times)} to ${clockText(to, times)}`;
  return (
    <section>
      <h3>Chosen range</h3>
      <p>{clock(range)}: {weightText(part, unit)}, {shareText(part, all)} of the recording.</p>
      {base && <p>Compared with {clock(base)}: {weightText(sum(profile.threads, 'before'), unit)}.</p>}
      {whole.times.untimed > 0 && <p>{weightText(whole.times.untimed, unit)} of the recording have no time, and are in no range.</p>}
      <p>All below is about the whole recording.</p>
    </section>
  );
}

export function AccountInWords({account}) {
  return accountInWords(account).map(({heading, good, lines}) => (
    <section key={heading}>
      <h3><span class={good ? 'good' : 'poor'} role="img" aria-label={good ? 'good' : 'look here'}>{good ? '\u2713' : '!'}</span> {heading}</h3>
      {lines.map((line) => <p key={line}>{line}</p>)}
    </section>
  ));
}
