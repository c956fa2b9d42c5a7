// A client of the Model Context Protocol by its own SDK: node mcp_client.mjs SDK PROGRAM ARGUMENT... < REQUESTS
//
// Each line of standard input is {"tool", "arguments"}; each line of the output is its answer, or {"failed"}. The first line of the output
// has what the server says of itself.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [sdk, command, ...args] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(sdk, "dist", "esm", "client", file)).href);
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");

const client = new Client({ name: "mcp_client", version: "1" });
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const { tools } = await client.listTools();
const say = (value) => console.log(JSON.stringify(value));
say({ server: client.getServerVersion(), instructions: client.getInstructions(), tools });
for await (const line of createInterface({ input: process.stdin })) {
  const { tool, arguments: given } = JSON.parse(line);
  try {
    // The SDK checks the structured content against the tool's output schema, and throws where it does not fit.
    say(await client.callTool({ name: tool, arguments: given }, undefined, { timeout: 120_000 }));
  } catch (error) {
    say({ failed: String(error), code: error.code });
  }
}
await client.close();
