// The page of one profile: its head, the picture with its tables, and help.
import {useEffect, useState} from 'preact/hooks';
import {Header} from './header.jsx';
import {HelpDialog} from './help_dialog.jsx';
import {ProfileView} from './profile_view.jsx';
import {useTheme} from './theme.js';
import {isOfWaits} from './waits.js';

export function App({profile, licences}) {
  const [panel, setPanel] = useState(isOfWaits(profile) && !profile.diff ? 'waits' : 'methods');
  const [helping, setHelping] = useState(false);
  const [themeName, setThemeName] = useTheme();

  useEffect(() => {
    const keyDown = (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.key === '?' && !typing && !event.ctrlKey && !event.altKey && !event.metaKey) setHelping(true);
    };
    addEventListener('keydown', keyDown);
    return () => removeEventListener('keydown', keyDown);
  }, []);

  return (
    <>
      <Header profile={profile} onAccount={() => setPanel('account')} onHelp={() => setHelping(true)} themeName={themeName} onTheme={setThemeName} />
      <ProfileView profile={profile} themeName={themeName} listens={!helping} panel={panel} onPanel={setPanel} />
      {helping && <HelpDialog licences={licences} hasTimes={profile.times !== null} onClose={() => setHelping(false)} />}
    </>
  );
}
