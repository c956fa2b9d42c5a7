#!/usr/bin/env python3
"""`clrsampler mcp` with a client by the protocol's own SDK, which checks each answer against the schema of its tool."""
import json
import os
import subprocess
import tempfile
import time

import harness
import runtimes
from report_live_test import NEWEST, Service, mcp_sdk

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(runtimes.SOURCE, "docs", "schemas")


class McpTest(harness.LiveTest):
    NEEDS = ("dotnet", "node", "npm")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        cls.sdk = mcp_sdk()

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="mcp-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def ask(self, *calls, arguments=()):
        """(what the server says of itself, answers)"""
        requests = "".join(json.dumps({"tool": tool, "arguments": given}) + "\n" for tool, given in calls)
        done = subprocess.run(["node", os.path.join(HERE, "mcp_client.mjs"), self.sdk, harness.AGENT, "mcp", *arguments], input=requests,
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        about, *answers = map(json.loads, done.stdout.splitlines())
        self.assertEqual(len(answers), len(calls))
        return about, answers

    def recorded(self, service, name, *arguments):
        path = os.path.join(self.folder, name)
        done = subprocess.run([harness.AGENT, "record", "--pid", str(service.pid), "-d", "3s", "-q", "-o", path, *arguments],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def text_of(self, answer):
        self.assertNotIn("failed", answer)
        self.assertFalse(answer["isError"], answer)
        self.assertLessEqual(len(answer["content"][0]["text"]), 4000)
        return answer["content"][0]["text"]

    def test_tools_answer_on_files(self):
        with Service(NEWEST, "regex") as service:
            cpu = self.recorded(service, "cpu.json", "--lines")
        with Service(NEWEST, "serializer") as service:
            after = self.recorded(service, "after.json")
        with Service(NEWEST, "lock") as service:
            wall = self.recorded(service, "wall.json", "--event", "wall", "--wakers")
        with Service(NEWEST, "pauses") as service:
            pauses = self.recorded(service, "pauses.json", "--view", "suspend-delay")
            events = self.recorded(service, "events.json")
            folded = self.recorded(service, "events.folded")
        about, answers = self.ask(("report", {"files": [cpu, wall]}), ("top", {"file": cpu}),
                                  ("callers", {"file": cpu, "method": "Validator.Check"}),
                                  ("lines", {"file": cpu, "method": "Shop.Validator.Check"}), ("diff", {"before": cpu, "after": after}),
                                  ("waits", {"file": wall}), ("pauses", {"file": pauses}), ("pauses", {"file": events}),
                                  ("pauses", {"file": folded}))
        self.assertEqual(about["server"]["name"], "clrsampler")
        with open(os.path.join(SCHEMAS, "mcp-tools.json"), encoding="utf-8") as f:
            tools = json.load(f)["tools"]
        with open(os.path.join(SCHEMAS, "report.schema.json"), encoding="utf-8") as f:
            output = json.load(f)
        self.assertEqual([tool["inputSchema"] for tool in about["tools"]], [tool["inputSchema"] for tool in tools])
        self.assertTrue(all(tool["outputSchema"] == output for tool in about["tools"]))
        whole, top, callers, lines, diff, waits, delays, pauses_of_cpu, without = map(self.text_of, answers)
        self.assertIn("`Shop.Validator.Check`", whole)
        self.assertIn("`Shop.Stock.Reserve`", whole)
        self.assertIn("`Shop.Validator.Check`", top)
        self.assertIn("## Callers of a method", callers)
        self.assertRegex(callers, r"\|`Shop\.Program\.")
        self.assertRegex(lines, r"`[^`]*services/Program\.cs:\d+`")
        self.assertIn("`Shop.Api.Answer`", diff)
        self.assertIn("`Shop.Stock.Reserve`", waits)
        self.assertIn("`Shop.Cache.Rebuild`", delays)
        self.assertRegex(pauses_of_cpu, r"[1-9]\d* pauses took ")
        self.assertIn("`Shop.Cache.Rebuild`", pauses_of_cpu.partition("## Methods that delayed the pauses")[2])
        self.assertIn("has neither pauses nor compilations. `clrsampler record --pid PID -o cpu.json` keeps them", without)
        self.assertEqual(answers[0]["structuredContent"]["sections"][0]["id"], "coverage")

    def test_processes_are_recorded_only_where_that_is_allowed(self):
        with Service(NEWEST, "pauses") as service:
            time.sleep(1)
            calls = [(tool, {"pid": service.pid, "seconds": 3}) for tool in ("pauses", "waits", "top", "report")]
            _, refused = self.ask(*calls)
            for answer in refused:
                self.assertTrue(answer["isError"])
                self.assertIn("this server records no processes", answer["content"][0]["text"])
            _, answers = self.ask(*calls, arguments=("--record",))
            pauses, waits, top, whole = map(self.text_of, answers)
        self.assertIn("`Shop.Cache.Rebuild`", pauses)
        self.assertIn("## Thread pool", waits)
        self.assertIn("`Shop.Cache.Rebuild`", top)
        self.assertIn("## Methods that delayed the pauses", whole)

    def empty(self):
        path = os.path.join(self.folder, "empty.folded")
        with open(path, "wb"):
            return path

    def test_wrong_calls_are_errors_and_the_server_goes_on(self):
        _, answers = self.ask(("top", {"file": "/no/such/file"}), ("top", {}), ("callers", {"file": "x"}), ("nothing", {}),
                              ("top", {"file": "/bin/true"}), ("top", {"file": self.empty()}))
        self.assertTrue(answers[0]["isError"])
        self.assertIn("hint: ", answers[0]["content"][0]["text"])
        self.assertIn("either a file or a pid", answers[1]["content"][0]["text"])
        self.assertEqual(answers[2]["code"], -32602)
        self.assertEqual(answers[3]["code"], -32602)
        self.assertTrue(answers[4]["isError"])
        self.assertIn("No sample was taken", self.text_of(answers[5]))


if __name__ == "__main__":
    harness.main()
