// node speedscope_import.js SPEEDSCOPE_PACKAGE_DIR FILE...
//
// Imports each file with the importer of the speedscope package and prints one JSON line per file. The line has name, unit, total weight, the
// stacks as [[frame, ...], weight], and of each frame with a line [name, file, line, column]. The package ships its importer only inside the
// bundle of its page, so the bundle is evaluated with stand-ins for the browser's globals. Its importer is untouched: only a reference to it is
// led out.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const release = path.join(process.argv[2], 'dist', 'release');
const bundle = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
const source = fs.readFileSync(path.join(release, bundle), 'utf8');
const entry = /async function (\w+)\(\w+,\w+\)\{return\(await \w+\)\.importProfileGroupFromText/.exec(source);
if (!entry) throw new Error('this speedscope release has another bundle layout: importProfileGroupFromText not found');
const head = /^"use strict";\(\(\)=>\{/;
if (!head.test(source)) throw new Error('this speedscope release has another bundle layout: unknown head');

// Answers every property and call with itself: enough for a page that is never shown.
const anything = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : key === Symbol.iterator ? [][Symbol.iterator] : key === 'length' ? 0 : anything),
  apply: () => anything,
  construct: () => anything,
  set: () => true,
});
const page = {
  console: {log() {}, warn() {}, error() {}}, setTimeout, clearTimeout, TextDecoder, TextEncoder, URL, Buffer, performance,
  document: anything, navigator: {userAgent: '', platform: ''}, localStorage: anything, location: {hash: '', protocol: 'file:', href: ''},
  matchMedia: () => anything, requestAnimationFrame: () => 0, cancelAnimationFrame() {}, addEventListener() {}, removeEventListener() {},
};
page.window = page;
page.self = page;
page.globalThis = page;
vm.createContext(page);
const led = source.replace(head, `$&globalThis.importText=(name,text)=>${entry[1]}(name,text);`);
try {
  vm.runInContext(led, page);
} catch (error) {
  if (!page.importText) throw error;  // else the page failed to draw itself, after the importer was ready
}

async function main() {
  for (const file of process.argv.slice(3)) {
    const group = await page.importText(path.basename(file), fs.readFileSync(file, 'utf8'));
    if (!group || group.profiles.length !== 1) throw new Error(`${file}: speedscope did not recognise the file`);
    const profile = group.profiles[0];
    const stacks = [], places = [];
    let stack = [], value = 0;
    // forEachCall visits the samples in file order: what is open between two values is the stack of that stretch.
    const account = (until) => {
      if (until > value) stacks.push([stack.slice(), until - value]);
      value = until;
    };
    profile.forEachCall(
        (node, at) => { account(at); stack.push(node.frame.name); },
        (_, at) => { account(at); stack.pop(); });
    profile.forEachFrame(({name, file, line, col}) => { if (line) places.push([name, file, line, col]); });
    console.log(JSON.stringify({name: profile.getName(), weight: profile.getTotalWeight(), stacks, places}));
  }
}
main().catch((error) => {
  console.error(String((error && error.stack) || error));
  process.exit(1);
});
