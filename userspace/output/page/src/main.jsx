// The page: unpacks the profile that it carries and shows it.
import {render} from 'preact';
import {App} from './app.jsx';
import {Profile, unpack} from './profile_data.js';
import {unpackTimes} from './recorded_times.js';

const root = document.getElementById('app');

function Failure({error}) {
  return (
    <div class="failure" role="alert">
      <h1>This profile can’t be shown</h1>
      <p>{String(error?.message ?? error)}</p>
      <p>Hint: the file may be incomplete, or this browser too old (it needs DecompressionStream: Chromium 80, Firefox 113, Safari 16.4).</p>
    </div>
  );
}

try {
  const textOf = (id) => document.getElementById(id).textContent.trim();
  // The script runs as soon as it is there, and what is behind it may be long.
  const whole = () => new Promise((done) => (document.readyState === 'loading' ? document.addEventListener('DOMContentLoaded', done, {once: true}) : done()));
  const stacks = async () => {
    await whole();
    return textOf('times');
  };
  const [data, times] = await Promise.all([unpack(textOf('profile')), unpackTimes(textOf('lanes'), stacks)]);
  const profile = new Profile(data, times);
  document.title = `${profile.about.title} \u2013 clrsampler`;
  root.replaceChildren();
  render(<App profile={profile} licences={document.getElementById('licences').textContent} />, root);
  performance.mark('page-ready');
} catch (error) {
  root.replaceChildren();
  render(<Failure error={error} />, root);
}
