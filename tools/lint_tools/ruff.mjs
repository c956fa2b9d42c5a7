// Ruff's linter, which npm has as WebAssembly; prints what it finds as FILE:LINE:COLUMN: CODE MESSAGE.
//
// usage: node ruff.mjs NODE_MODULES SETTINGS_AS_JSON FILE...      exit status 1 when something was found
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [modules, settings, ...files] = process.argv.slice(2);
const { PositionEncoding, Workspace } = createRequire(`${resolve(modules)}/`)("@astral-sh/ruff-wasm-nodejs");
const workspace = new Workspace(JSON.parse(settings), PositionEncoding.Utf8);
let found = 0;
for (const file of files) {
  for (const { code, message, start_location: at } of workspace.check(readFileSync(file, "utf8"))) {
    console.log(`${file}:${at.row}:${at.column}: ${code ?? "syntax"} ${message}`);
    ++found;
  }
}
process.exitCode = found > 0 ? 1 : 0;
