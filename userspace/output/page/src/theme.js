// Light or dark: as the system has it, until the user chooses.
import {useEffect, useMemo, useState} from 'preact/hooks';

/** @returns {[string, (name: string) => void]} name of the theme in palette.js, and what chooses another */
export function useTheme() {
  const query = useMemo(() => matchMedia('(prefers-color-scheme: dark)'), []);
  const [chosen, setChosen] = useState(null);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const changed = () => setDark(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, [query]);
  const name = chosen ?? (dark ? 'dark' : 'light');
  useEffect(() => { document.documentElement.dataset.theme = name; }, [name]);
  return [name, setChosen];
}
