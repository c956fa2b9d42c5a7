// node run_bundled.mjs NODE_MODULES TEST FOLDER
//
// Runs a test that imports the page's sources, which name their libraries as bundles do: so it is bundled first.
import {spawnSync} from 'node:child_process';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [modules, test, folder] = process.argv.slice(2);
const output = join(folder, 'bundled_test.mjs');
const esbuild = createRequire(join(modules, 'x.js'))('esbuild');
esbuild.buildSync({
  entryPoints: [test], bundle: true, platform: 'node', format: 'esm', outfile: output, nodePaths: [modules], jsx: 'automatic', jsxImportSource: 'preact',
  define: {'import.meta.url': JSON.stringify(new URL(test, 'file:').href)},
});
process.exit(spawnSync(process.execPath, ['--test', output], {stdio: 'inherit'}).status ?? 1);
