// A profile as a picture with its tables. The view is a function of a few choices: whose samples, what was done to the
// tree, where it is zoomed to and what is searched for. This is where they are kept; each panel shows some and changes some.
import {useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {AccountPanel} from './account_panel.jsx';
import {Breadcrumbs} from './breadcrumbs.jsx';
import {FlameGraph} from './flame_graph.js';
import {FrameMenu} from './frame_menu.jsx';
import {layOut, ORDERS} from './frame_tree.js';
import {DiffLegend, KindLegend} from './legend.jsx';
import {MethodTable} from './method_table.jsx';
import {describeNode, NodeDetails} from './node_details.jsx';
import {diffRamp, kindFills, THEMES} from './palette.js';
import {matchedWeight, matcherOf, matchingFrames} from './search.js';
import {comparedWhole, isSignificant} from './significance.js';
import {lineCosts} from './source_lines.js';
import {SourcePanel} from './source_panel.jsx';
import {TimePanel} from './time_panel.jsx';
import {stepBack} from './time_state.js';
import {Toolbar} from './toolbar.jsx';
import {applyTransforms} from './transforms.js';
import {useMethodCosts} from './use_costs.js';
import {usePartOf, useTimeState} from './use_times.js';
import {isOfWaits, wakerMarks} from './waits.js';
import {WaitsPanel} from './waits_panel.jsx';

const NOBODY = {process: null, threads: null};  // picked: all

/**
 * @param {Profile} given  another one may follow: choices that name methods, threads and processes then mean those of the same
 *     names in the new one
 * @param {string} themeName  of palette.js
 * @param {boolean} listens  to keys that are pressed anywhere on the page
 * @param {string} panel  what is beside the picture, a word of PANELS; null: the view keeps it itself, and there is no account
 * @param {(panel: string) => void} onPanel
 */
export function ProfileView({profile: given, themeName, listens = true, panel = null, onPanel = null}) {
  const [recorded, setRecorded] = useState(given);
  const [time, setTime, timesReady] = useTimeState(recorded);
  const profile = usePartOf(recorded, time, timesReady);
  const [picked, setPicked] = useState(NOBODY);
  const [transforms, setTransforms] = useState([]);
  const [apart, setApart] = useState(true);
  const [foldAll, setFoldAll] = useState(false);
  const [order, setOrder] = useState(ORDERS.weight);
  const [upward, setUpward] = useState(false);
  const [before, setBefore] = useState(false);
  const [more, setMore] = useState('orange');
  const [search, setSearch] = useState({query: '', isPattern: false});
  const [marked, setMarked] = useState(-1);
  const [zooms, setZooms] = useState([]);  // paths of frames, the last one counts
  const [menu, setMenu] = useState(null);
  const [hovered, setHovered] = useState(null);
  const [selected, setSelected] = useState(0);
  const [studied, setStudied] = useState(-1);  // the method whose lines the source view shows: what was chosen last
  const [ownPanel, setOwnPanel] = useState(null);
  const theme = THEMES[themeName];

  const base = useMemo(() => profile.tree(wantedThreads(picked), apart), [profile, picked, apart]);
  const steps = useMemo(() => (foldAll ? [{kind: 'foldAll'}, ...transforms] : transforms), [foldAll, transforms]);
  const marksWaker = useMemo(() => wakerMarks(profile), [profile.names]);
  const tree = useMemo(() => applyTransforms(base, steps, undefined, marksWaker), [base, steps, marksWaker]);
  const layout = useMemo(() => layOut(tree, order, (frame) => profile.names[frame], before && profile.diff !== null), [tree, order, before]);
  // The table goes on telling of the stacks as they ran when the picture shows them from one method's point of view.
  const uprightSteps = useMemo(() => {
    const turned = transforms.findIndex(({kind}) => kind === 'callers' || kind === 'wakers');
    return turned < 0 ? steps : steps.slice(0, turned + (foldAll ? 1 : 0));
  }, [steps]);
  const upright = useMemo(() => (uprightSteps === steps ? tree : applyTransforms(base, uprightSteps)), [base, tree, uprightSteps]);
  const ofWaits = isOfWaits(profile) && !profile.diff;
  const panels = PANELS.filter(([id]) =>
    (id !== 'waits' || ofWaits) && (id !== 'account' || panel !== null) && (id !== 'source' || profile.lines || profile.code.size > 0));
  const wantedPanel = panel ?? ownPanel ?? (ofWaits ? 'waits' : 'methods');
  const wanted = useMemo(() => wantedThreads(picked), [picked]);
  const shownPanel = panels.some(([id]) => id === wantedPanel) ? wantedPanel : 'methods';
  const choosePanel = onPanel ?? setOwnPanel;
  const lines = useMemo(
    () => (shownPanel === 'source' && studied >= 0 && profile.lines ? lineCosts(profile, studied, wantedThreads(picked), uprightSteps) : []),
    [profile, picked, uprightSteps, shownPanel, studied]);
  const told = useMethodCosts(profile, upright, upright === tree ? layout : null);
  const matcher = useMemo(() => matcherOf(search.query, search.isPattern), [search]);
  const found = useMemo(() => (matcher.test ? matchingFrames(profile.names, matcher.test) : null), [matcher, profile.names]);
  const flags = useMemo(() => (marked >= 0 ? Uint8Array.from(profile.names, (_, frame) => (frame === marked ? 1 : 0)) : found), [found, marked, profile.names]);
  const share = useMemo(() => (flags ? matchedWeight(tree, flags) : 0), [tree, flags]);
  const fills = useMemo(() => kindFills(profile, theme), [profile.names, theme]);
  const fillOf = useMemo(() => fillFunction(profile, tree, fills, theme, themeName, more), [profile, tree, fills, themeName, more]);
  const zoomed = useMemo(() => nodeAtPath(layout, zooms[zooms.length - 1] ?? []), [layout, zooms]);
  const last = transforms[transforms.length - 1];
  const rootName = last?.kind === 'callers' ? `callers of ${profile.shortName(last.frame)}`
    : last?.kind === 'wakers' ? `wakers of waits in ${profile.shortName(last.frame)}` : 'all';
  const whole = tree.total[0];

  const zoomTo = useCallback((node) => {
    const path = tree.pathTo(node).map((at) => tree.frame[at]);
    setZooms((history) => [...history, path]);
  }, [tree]);
  const mark = (frame) => {
    setMarked((now) => (now === frame ? -1 : frame));
    setStudied(frame);
  };
  const tabs = useRef(null), reveals = useRef(false);  // whether the chosen tab gets the focus, which brings it into sight
  const study = (frame) => {
    setStudied(frame);
    choosePanel('source');
    reveals.current = true;
  };
  useEffect(() => {
    if (reveals.current) tabs.current.querySelector('[aria-selected=true]').focus();
    reveals.current = false;
  });
  const transform = (kind, frame) => {
    setTransforms([...transforms, {kind, frame}]);
    setMarked(-1);
    if (kind === 'callers' || kind === 'callees' || kind === 'wakers') setZooms([]);
  };
  const goBack = () => {
    if (marked >= 0) setMarked(-1);
    else if (zooms.length > 0) setZooms(zooms.slice(0, -1));
    else if (transforms.length > 0) setTransforms(transforms.slice(0, -1));
    else if (search.query !== '') setSearch({...search, query: ''});
    else if (stepBack(time)) setTime(stepBack(time));
  };

  const host = useRef(null), graph = useRef(null);
  const handlers = useRef({});
  handlers.current = {
    hover: (node, x, y) => setHovered(node < 0 ? null : {node, x, y}),
    select: (node) => {
      setSelected(node);
      if (node > 0) setStudied(tree.frame[node]);
    },
    zoom: (node) => (node === zoomed ? undefined : zoomTo(node)),
    menu: (node, x, y) => setMenu({node, frame: node > 0 ? tree.frame[node] : -1, x, y}),
    describe: (node) => describeNode(profile, tree, node, rootName),
  };
  useLayoutEffect(() => {
    const call = (name) => (...args) => handlers.current[name](...args);
    graph.current = new FlameGraph(host.current, {hover: call('hover'), select: call('select'), zoom: call('zoom'), menu: call('menu'), describe: call('describe')});
    return () => graph.current.destroy();
  }, []);
  const wayBack = useRef(null);  // path of the selected node, when a profile takes the place of another one
  // Choices that keep the tree keep the selection as well.
  const shown = useRef(null);
  useLayoutEffect(() => {
    const keeps = shown.current?.layout === layout && shown.current.zoomed === zoomed;
    const select = keeps ? graph.current.selected : wayBack.current ? nodeAtPath(layout, wayBack.current) : zoomed;
    wayBack.current = null;
    graph.current.show({layout, formsOf: (frame) => profile.formsOf(frame), fillOf, theme, rootName, upward, matches: flags}, zoomed, select);
    shown.current = {layout, zoomed};
    setSelected(select);
  }, [layout, fillOf, theme, rootName, upward, flags, zoomed]);

  // All choices at once, so that none ever meets the other profile; and not under an open menu.
  useLayoutEffect(() => {
    if (given === recorded || menu) return;
    const same = (frame) => given.frameLike(profile, frame);
    wayBack.current = tree.pathTo(graph.current.selected).map((at) => same(tree.frame[at]));
    setTransforms(transforms.map(({kind, frame}) => ({kind, frame: same(frame)})));
    setZooms(zooms.map((path) => path.map(same)));
    if (marked >= 0) setMarked(same(marked));
    if (studied >= 0) setStudied(same(studied));
    setPicked(pickedLike(given, picked));
    setHovered(null);
    setRecorded(given);
  }, [given, menu]);

  const searchField = useRef(null);
  useEffect(() => {
    const keyDown = (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.ctrlKey || event.altKey || event.metaKey || menu || !listens) return;
      if (event.key === '/' && !typing) {
        event.preventDefault();
        searchField.current.focus();
        searchField.current.select();
      } else if (event.key === 'Escape') {
        if (typing) graph.current.focus();
        else goBack();
      }
    };
    addEventListener('keydown', keyDown);
    return () => removeEventListener('keydown', keyDown);
  });

  const context = {profile, tree, whole, unit: profile.about.unit, fills, rootName};
  // Long to make, and the same while the pointer moves and the picture is zoomed: preact skips what is the same object.
  const table = useMemo(() => (
    <MethodTable key={told.profile.diff !== null} profile={told.profile} tree={told.tree} whole={told.tree.total[0]} costs={told.costs} unit={profile.about.unit}
      {...{fills, found, marked}} onMark={mark} onMenu={(frame, x, y) => setMenu({node: -1, frame, x, y})} />
  ), [told, fills, found, marked]);
  const legend = useMemo(
    () => (profile.diff ? <DiffLegend more={more} themeName={themeName} rule={profile.diff} /> : <KindLegend {...context} theme={theme} shares={upright === tree} />), [profile, tree, theme, more]);
  return (
    <>
      <Toolbar
        profile={profile} picked={picked} onPick={setPicked} everyone={NOBODY}
        search={search} onSearch={(next) => { setSearch(next); setMarked(-1); }} error={matcher.error} searchField={searchField}
        matched={flags && !matcher.error ? {weight: share, whole, isMark: marked >= 0} : null}
        upward={upward} onUpward={setUpward} order={order} onOrder={setOrder} foldAll={foldAll} onFoldAll={setFoldAll} apart={apart} onApart={setApart}
        before={before} onBefore={setBefore} more={more} onMore={setMore} />
      {recorded.times && (
        <TimePanel profile={recorded} part={profile} state={time} onState={setTime} wanted={wanted} picked={picked} onPick={setPicked} flags={flags} themeName={themeName} ready={timesReady} />
      )}
      <Breadcrumbs {...context} layout={layout} zoomed={zoomed} onZoom={(node) => (node === 0 ? setZooms([]) : zoomTo(node))}
        transforms={transforms} onTransforms={setTransforms} marked={marked} onMarked={setMarked} />
      <main class="columns">
        <section class="picture" aria-label="Picture">
          <div class="graph-host" ref={host} />
          {(profile.diff ? comparedWhole(profile.diff, tree) : whole) === 0 && <p class="empty">No samples are left. Take back a filter above.</p>}
          <NodeDetails {...context} node={Math.min(selected, tree.size - 1)} />
          {legend}
        </section>
        <section class="side" aria-label="Tables">
          <div class="tabs" role="tablist" ref={tabs}>
            {panels.map(([id, text]) => (
              <button key={id} role="tab" aria-selected={shownPanel === id} onClick={() => choosePanel(id)}>{text}</button>
            ))}
          </div>
          <div class="panel" role="tabpanel" aria-busy={told.profile !== profile || told.tree !== upright}>
            {shownPanel === 'account' ? <AccountPanel profile={profile} />
              : shownPanel === 'waits' ? <WaitsPanel {...{profile, wanted, marked}} onMark={mark} onFocus={(frame) => transform('focus', frame)} onWakers={marksWaker && ((frame) => transform('wakers', frame))} />
              : shownPanel === 'source' ? <SourcePanel {...{profile, lines}} method={studied} whole={upright.total[0]} unit={profile.about.unit} />
              : table}
          </div>
        </section>
      </main>
      {hovered && !menu && <NodeDetails {...context} node={Math.min(hovered.node, tree.size - 1)} at={hovered} />}
      {menu && (
        <FrameMenu {...context} {...menu}
          onClose={(focusGraph) => { setMenu(null); if (focusGraph) graph.current.focus(); }}
          onZoom={zoomTo} onTransform={transform} onMark={setMarked} onStudy={(profile.lines || profile.code.size > 0) && study} tellsWakers={marksWaker !== null} />
      )}
    </>
  );
}

const PANELS = [['waits', 'Waits'], ['methods', 'Top methods'], ['source', 'Source'], ['account', 'How good is this?']];  // the first one only of waits, the third only with lines

/** The same processes and threads in another profile; everybody if they are not in it. */
function pickedLike(profile, {process, threads}) {
  const same = process && profile.processes.find(({pid, comm}) => pid === process.pid && comm === process.comm);
  const sameThreads = threads && profile.threads.filter((one) => threads.some(({pid, tid, name}) => one.pid === pid && one.tid === tid && one.name === name));
  if ((process && !same) || sameThreads?.length === 0) return NOBODY;
  return {process: same ?? null, threads: sameThreads ?? null};
}

function wantedThreads({process, threads}) {
  // By their numbers, which are the same in a part of the time.
  if (threads) return (thread) => threads.some(({index}) => index === thread.index);
  if (process) return (thread) => thread.process.index === process.index;
  return () => true;
}

function nodeAtPath(layout, path) {
  const {tree, firstChild, child} = layout;
  let node = 0;
  for (const frame of path) {
    const next = child.subarray(firstChild[node], firstChild[node + 1]).find((c) => tree.frame[c] === frame);
    if (next === undefined) break;
    node = next;
  }
  return node;
}

function fillFunction(profile, tree, fills, theme, themeName, more) {
  if (!profile.diff) return (node) => (node === 0 ? theme.muted : fills[tree.frame[node]]);
  const ramp = diffRamp(themeName, more), rule = profile.diff;
  return (node) => {
    const before = tree.totalBefore[node], after = tree.total[node];
    if (!isSignificant(rule, rule.stack, before, after, profile.noiseTotal[tree.frame[node]])) return ramp.none;
    return ramp.of((after - rule.scale * before) / Math.max(after, rule.scale * before));
  };
}
