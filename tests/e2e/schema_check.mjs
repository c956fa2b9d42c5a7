// Checks JSON by a schema of draft 2020-12: node schema_check.mjs AJV SCHEMA < JSON      exit status 1 and the faults where it does not fit
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [ajv, schema] = process.argv.slice(2);
const Ajv2020 = createRequire(import.meta.url)(join(ajv, "dist", "2020.js")).default;
const validate = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(JSON.parse(readFileSync(schema, "utf8")));
if (!validate(JSON.parse(readFileSync(0, "utf8")))) {
  console.error(JSON.stringify(validate.errors.slice(0, 5)));
  process.exit(1);
}
