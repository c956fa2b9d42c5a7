// The account of the run: what the picture may leave out, and what taking it cost.
import {accountInWords} from './account.js';

export function AccountPanel({profile}) {
  if (!profile.account && !profile.accountBefore) {
    return <p class="note">The profile has no account of its recording: it was read from a format that holds none.</p>;
  }
  return (
    <div class="account">
      {profile.accountBefore && <><h2>Before</h2><AccountInWords account={profile.accountBefore} /><h2>After</h2></>}
      {profile.account && <AccountInWords account={profile.account} />}
      {profile.about.command && <section><h3>Command</h3><p><code>{profile.about.command}</code></p></section>}
      {profile.about.creator && <p class="note">Made by {profile.about.creator}.</p>}
    </div>
  );
}

export function AccountInWords({account}) {
  return accountInWords(account).map(({heading, good, lines}) => (
    <section key={heading}>
      <h3><span class={good ? 'good' : 'poor'} aria-label={good ? 'good' : 'look here'}>{good ? '\u2713' : '!'}</span> {heading}</h3>
      {lines.map((line) => <p key={line}>{line}</p>)}
    </section>
  ));
}
