// The parts of a page: its script and its style, each one text with all that it imports, and the licences of the libraries in it.
// Every page of the project is bundled by this.
import {readdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

/**
 * @param {string} modules  node_modules with esbuild and the libraries
 * @param {string} page  folder with src/main.jsx and style.css
 * @returns {Promise<{script: string, style: string, licences: string}>}
 */
export async function bundleParts(modules, page) {
  const esbuild = createRequire(join(modules, 'x.js'))('esbuild');
  const common = {
    bundle: true, minify: true, write: false, metafile: true, charset: 'utf8', legalComments: 'none', absWorkingDir: page, nodePaths: [modules],
    target: ['chrome110', 'firefox113', 'safari16.4'],
  };
  const script = await esbuild.build({...common, entryPoints: ['src/main.jsx'], format: 'esm', jsx: 'automatic', jsxImportSource: 'preact'});
  const style = await esbuild.build({...common, entryPoints: ['style.css']});
  return {
    script: script.outputFiles[0].text.trim(),
    style: style.outputFiles[0].text.trim(),
    licences: licences(modules, Object.keys(script.metafile.inputs)),
  };
}

/** The licence texts of the packages that went into the bundle. */
function licences(modules, inputs) {
  const packages = new Set(inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));
  return [...packages].sort().map((name) => {
    const folder = join(modules, name);
    const {version} = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence text`);
    return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
  }).join('\n\n----\n\n');
}
