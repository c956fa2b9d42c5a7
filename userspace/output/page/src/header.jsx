// The header says what was recorded, where and for how long, and in three words how good it is.
import {accountInShort} from './account.js';
import {durationText, weightText} from './text.js';

const VIEWS = {
  cpu: 'CPU time',
  jit: 'JIT compilation',
  pause: 'while .NET threads stood still',
  alloc: 'where memory was allocated',
  exception: 'where exceptions were thrown',
  contention: 'where threads waited for locks',
  'off-cpu': 'where threads waited',
  wall: 'where threads ran, and where they waited',
  'suspend-delay': 'methods that kept .NET threads from stopping',
};

export function Header({profile, onAccount, onHelp, themeName, onTheme}) {
  const {about, diff} = profile;
  const account = profile.account && accountInShort(profile.account);
  const total = profile.threads.reduce((sum, {weight}) => sum + weight, 0);
  const facts = [
    diff ? 'difference' : VIEWS[about.view] ?? about.view,
    weightText(total, about.unit),
    about.period_ns > 0 && about.unit === 'samples' ? `${(1e9 / about.period_ns).toFixed(0)} Hz a CPU` : null,
    about.recorded_ns > 0 ? durationText(about.recorded_ns) : null,
    about.host || null,
    about.start_unix_ns > 0 ? new Date(about.start_unix_ns / 1e6).toLocaleString('sv-SE').slice(0, 16) : null,
  ].filter((fact) => fact !== null);
  return (
    <header class="head">
      <div class="head-text">
        <h1>{about.title}</h1>
        <p class="facts">{facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
      </div>
      <div class="head-buttons">
        {account && account.text && (
          <button class={`badge ${account.good ? 'good' : 'poor'}`} onClick={onAccount} title="How good is this profile?">
            <span aria-hidden="true">{account.good ? '\u2713' : '!'}</span> {account.text}
          </button>
        )}
        <button class="quiet" onClick={() => onTheme(themeName === 'dark' ? 'light' : 'dark')}>{themeName === 'dark' ? 'Light' : 'Dark'}</button>
        <button class="quiet" onClick={onHelp} aria-label="Help: keys and licences">?</button>
      </div>
    </header>
  );
}
