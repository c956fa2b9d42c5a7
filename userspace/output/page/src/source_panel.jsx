// The source view: the lines of one method with what they cost, from the text of its files where the profile has it.
import {Instructions} from './instructions.jsx';
import {fileName, linkTo, MOST_ROWS, sourceRows} from './source_lines.js';
import {countText, shareText, shortWeightText} from './text.js';

/** lines: what lineCosts gave of the method; whole: weight of the whole tree */
export function SourcePanel({profile, method, lines, whole, unit}) {
  if (method < 0) return <p class="note">Choose a method in the picture or among the top methods: its lines are shown here.</p>;
  const files = [...new Set(lines.filter(({line}) => line > 0).map(({file}) => file))];
  const lost = lines.find(({line}) => line === 0);
  return (
    <div class="source">
      <h2><bdi>{profile.names[method]}</bdi></h2>
      {files.map((file) => <FileLines key={file} {...{profile, file, whole, unit}} costs={lines.filter((cost) => cost.line > 0 && cost.file === file)} />)}
      {lost && <LineTable label="Without a line" whole={whole} unit={unit} rows={[{line: 0, text: null, cost: lost}]} fallback="the line is not known" />}
      {lines.length === 0 && profile.lines && <p class="note">No sample that is shown is in this method.</p>}
      <Kinds lines={lines} />
      <Instructions bodies={profile.code.get(method) ?? []} />
    </div>
  );
}

function FileLines({profile, file, costs, whole, unit}) {
  const {url = '', text = ''} = profile.files.get(file) ?? {};
  const rows = sourceRows(costs, text);
  const name = fileName(file) || 'a file without a name';
  return (
    <section>
      <h3 title={file}>{name}</h3>
      <LineTable label={`Lines of ${name}`} whole={whole} unit={unit} rows={rows.slice(0, MOST_ROWS)} url={url} fallback={name} />
      {rows.length > MOST_ROWS && <p class="note">The first {countText(MOST_ROWS)} of {countText(rows.length)} lines.</p>}
    </section>
  );
}

/** fallback: what stands where a line has no text */
function LineTable({label, rows, whole, unit, url = '', fallback}) {
  return (
    // The keyboard must reach everything that scrolls.
    <div class="lines-host" tabIndex={0} role="region" aria-label={label}><table class="lines">
      <thead><tr>
        <th scope="col" class="number line">Line</th><th scope="col" class="number" title="in the line itself">Self</th>
        <th scope="col" class="number" title="with all that it calls">Total</th><th scope="col" aria-label="Kind" class="kind" /><th scope="col">Source</th>
      </tr></thead>
      <tbody>
        {rows.map((row) => (row.gap ? <tr key={`gap ${row.line}`} class="gap"><td colSpan={5} aria-label="lines without samples">{'\u22ef'}</td></tr> : (
          <tr key={row.line} class={row.cost ? '' : 'around'}>
            <th scope="row" class="number line"><LineNumber line={row.line} link={row.line > 0 ? linkTo(url, row.line) : null} /></th>
            <CostCell value={row.cost?.self ?? 0} whole={whole} unit={unit} /><CostCell value={row.cost?.total ?? 0} whole={whole} unit={unit} />
            <td class="kind"><Kind kind={row.cost && kindOf(row.cost)} /></td>
            <td class="text">{row.text === null ? <span class="no-text">{fallback}</span> : <code>{row.text}</code>}</td>
          </tr>
        )))}
      </tbody>
    </table></div>
  );
}

function LineNumber({line, link}) {
  if (line === 0) return 'no line';
  return link ? <a href={link} target="_blank" rel="noopener noreferrer">{line}</a> : line;
}

function CostCell({value, whole, unit}) {
  if (value === 0) return <td class="number" />;
  const share = whole > 0 ? value / whole : 0;
  return (
    <td class="number" title={shortWeightText(value, unit)}>
      <span class="bar" aria-hidden="true" ref={(element) => { if (element) element.style.width = `${100 * Math.min(1, share)}%`; }} />
      <span class="value"><small>{shortWeightText(value, unit)} </small>{shareText(value, whole)}</span>
    </td>
  );
}

const KINDS = {
  exact: {sign: '=', title: 'exact', text: 'Code of tier 0, which runs statement by statement.'},
  approximate: {
    sign: '\u2248', title: 'approximate: optimised code',
    text: 'A line of optimised code stands for a run of statements, and callees that were inlined count for the line that calls them.',
  },
  both: {sign: '\u2243', title: 'partly exact', text: 'Samples of both, exact and approximate, are in the line.'},
};

/** null: nobody said it */
function kindOf({exact, optimised}) {
  return exact && optimised ? KINDS.both : exact ? KINDS.exact : optimised ? KINDS.approximate : null;
}

function Kind({kind}) {
  return kind && <span role="img" aria-label={kind.title} title={kind.title}>{kind.sign}</span>;
}

function Kinds({lines}) {
  const seen = new Set(lines.map(kindOf));
  if (seen.has(KINDS.both)) seen.add(KINDS.approximate);
  return (
    <dl class="kinds">
      {Object.values(KINDS).filter((kind) => seen.has(kind)).map(({sign, title, text}) => <div key={title}><dt><span aria-hidden="true">{sign}</span> {title}</dt><dd>{text}</dd></div>)}
    </dl>
  );
}
