// node bundle.mjs NODE_MODULES OUTPUT
//
// Puts page and libraries into one HTML file. Its policy allows the one script and the one style that are in it, by their hashes, and
// nothing else: no other script, no request to anywhere. @PROFILE@, @LANES@ and @TIMES@ stay, for the program to put a profile there.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {bundleParts} from './bundle_parts.mjs';

const [modules, output] = process.argv.slice(2);
const page = dirname(fileURLToPath(import.meta.url));
const {script, style, licences} = await bundleParts(modules, page);

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = [
  "default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, "base-uri 'none'", "form-action 'none'",
  "require-trusted-types-for 'script'", "trusted-types 'none'",
].join('; ');
const parts = {POLICY: policy, STYLE: style, SCRIPT: script, LICENCES: licences};
for (const [name, text] of Object.entries(parts)) {
  if (/<\/(script|style)/i.test(text) || /@(PROFILE|LANES|TIMES)@/.test(text)) throw new Error(`${name} has text that would end its element`);
}
const template = readFileSync(join(page, 'index.html'), 'utf8');
writeFileSync(output, template.replace(/@(POLICY|STYLE|SCRIPT|LICENCES)@/g, (_, name) => parts[name]));
