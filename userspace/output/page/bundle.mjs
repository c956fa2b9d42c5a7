// node bundle.mjs NODE_MODULES OUTPUT
//
// Puts page and libraries into one HTML file. Its policy allows the one script and the one style that are in it, by their hashes, and
// nothing else: no other script, no request to anywhere. @PROFILE@ stays, for the program to put a profile there.
import {createHash} from 'node:crypto';
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const [modules, output] = process.argv.slice(2);
const page = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');

const common = {
  bundle: true, minify: true, write: false, metafile: true, charset: 'utf8', legalComments: 'none', absWorkingDir: page, nodePaths: [modules],
  target: ['chrome110', 'firefox113', 'safari16.4'],
};
const script = await esbuild.build({...common, entryPoints: ['src/main.jsx'], format: 'esm', jsx: 'automatic', jsxImportSource: 'preact'});
const style = await esbuild.build({...common, entryPoints: ['style.css']});

/** The licence texts of the packages that went into the bundle. */
function licences() {
  const packages = new Set(Object.keys(script.metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  return [...packages].sort().map((name) => {
    const folder = join(modules, name);
    const {version} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence text`);
    return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
  }).join('\n\n----\n\n');
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const scriptText = script.outputFiles[0].text.trim();
const styleText = style.outputFiles[0].text.trim();
const policy = [
  "default-src 'none'", `script-src ${hash(scriptText)}`, `style-src ${hash(styleText)}`, "base-uri 'none'", "form-action 'none'",
  "require-trusted-types-for 'script'", "trusted-types 'none'",
].join('; ');
const parts = {POLICY: policy, STYLE: styleText, SCRIPT: scriptText, LICENCES: licences()};
for (const [name, text] of Object.entries(parts)) {
  if (/<\/(script|style)/i.test(text) || text.includes('@PROFILE@')) throw new Error(`${name} has text that would end its element`);
}
const template = readFileSync(join(page, 'index.html'), 'utf8');
writeFileSync(output, template.replace(/@(POLICY|STYLE|SCRIPT|LICENCES)@/g, (_, name) => parts[name]));
