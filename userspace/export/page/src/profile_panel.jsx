// A profile or a comparison as a flame graph; in words what it is of, and why it is empty if it is.
import {ProfileView} from '../../../output/page/src/profile_view.jsx';
import {Profile} from '../../../output/page/src/profile_data.js';
import {weightText} from '../../../output/page/src/text.js';
import {getRawJson} from './api.js';
import {DIFF_FORMATS, Downloads, PROFILE_FORMATS} from './downloads.jsx';
import {Answer} from './notes.jsx';

/** For useResource. */
export async function getProfile(url, signal) {
  return new Profile(await getRawJson(url, signal));
}

const WEIGHT_TEXTS = {cpu: 'of CPU time', jit: 'of compiling', pause: 'while .NET threads stood still', 'suspend-delay': 'until .NET threads stood still', alloc: 'allocated', 'off-cpu': 'of waiting'};

const EMPTY_TEXTS = {
  cpu: 'no program that was watched ran on a CPU.',
  jit: 'no .NET method was compiled, or compiling was not watched (see Health).',
  pause: 'no .NET runtime stopped its threads while they would have run, or pauses were not watched (see Health).',
  'suspend-delay': 'no thread kept a .NET runtime waiting, or pauses were not watched (see Health).',
  'off-cpu': 'no thread that was watched waited, or waits were not recorded (serve --waits).',
  alloc: 'no .NET program allocated 100 KB, or allocations were not watched (see Health).',
};

/** Why a profile has no samples. recorded: whether anything is known of its time */
export function emptyText(view, recorded, comparing) {
  if (!recorded) return 'No samples in this range: clrsampler was not recording then, or its history does not have this time any more.';
  return `No samples in ${comparing ? 'one of the two ranges' : 'this range'}: ${EMPTY_TEXTS[view]} Choose a longer range or take back a filter.`;
}

/**
 * empty: what is said if there are no samples; facts: further words about the profile; urlOfFormat: where it can be had in another format.
 * gone: whether "not found" is an error, and not that there are no samples.
 */
export function ProfilePanel({resource, empty, gone = false, facts = [], urlOfFormat, themeName, listens}) {
  const note = <p class="note empty-range" role="status">{empty}</p>;
  if (!gone && resource.error?.status === 404) return note;
  return (
    <Answer resource={resource} wait="Loading the profile…">
      {(profile) => {
        const weight = profile.threads.reduce((sum, thread) => sum + thread.weight, 0);
        const before = profile.threads.reduce((sum, thread) => sum + thread.before, 0);
        const {unit} = profile.about;
        const kind = unit === 'samples' ? '' : ` ${WEIGHT_TEXTS[profile.about.view] ?? ''}`;
        const words = [`${weightText(weight, unit)}${kind}${profile.diff ? `, before ${weightText(before, unit)}` : ''}`, ...facts];
        if (weight + before === 0) return note;
        return (
          <>
            <div class="profile-head">
              <p class="facts">{words.map((word) => <span key={word}>{word}</span>)}</p>
              <p class="facts">Save as <Downloads urlOfFormat={urlOfFormat} formats={profile.diff ? DIFF_FORMATS : PROFILE_FORMATS} /></p>
            </div>
            <ProfileView profile={profile} themeName={themeName} listens={listens} />
          </>
        );
      }}
    </Answer>
  );
}
