// node bundle.mjs NODE_MODULES FOLDER
//
// Puts page and libraries into FOLDER/{app.js,app.css,licences.txt}, which the server gives out beside index.html.
import {mkdirSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {bundleParts} from '../../output/page/bundle_parts.mjs';

const [modules, folder] = process.argv.slice(2);
const {script, style, licences} = await bundleParts(modules, dirname(fileURLToPath(import.meta.url)));
mkdirSync(folder, {recursive: true});
for (const [name, text] of Object.entries({'app.js': script, 'app.css': style, 'licences.txt': licences})) {
  writeFileSync(join(folder, name), `${text}\n`);
}
