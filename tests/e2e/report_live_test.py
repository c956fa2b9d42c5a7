#!/usr/bin/env python3
"""`clrsampler report` names the trouble of ten services that have one each (tests/apps/services), in 4,000 characters; its JSON fits its
schema; and a report of a file says the same as one of a process."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

import harness
import runtimes

NEWEST = runtimes.PACKED_VERSIONS[-1]
VERSIONS = runtimes.PACKED_VERSIONS if runtimes.MATRIX else (NEWEST,)
BUDGET = 4000
SDK_VERSION = "1.32.2"
SCHEMA = os.path.join(runtimes.SOURCE, "docs", "schemas", "report.schema.json")

# For each service the section that is to name the trouble, and what stands in its first row, or in its sentence in front of the table.
TROUBLES = {
    "hot": ("CPU time: methods of the program, with what was done for them", r"`Shop\.Prices\.Recalculate`\|its own code"),
    "pauses": ("Methods that delayed the pauses", r"`Shop\.Cache\.Rebuild`"),
    "pool": ("Thread pool", r"The thread pool is starved: .* below Shop\.Orders\.Place"),
    "lock": ("Waits of threads for each other", r"\|(monitor|lock)\|`Shop\.Stock\.Reserve`\|`thread seller in Shop\.Stock\.Reserve`"),
    "allocations": ("Allocations: methods of the program", r"`Shop\.Export\.Build`\|`Shop\.Line`"),
    "exceptions": ("Exceptions", r"`System\.FormatException`\|`Shop\.Parser\.ParseNumber ← Shop\.Parser\.Parse"),
    "jit": ("Compilation: for which methods of the program", r"`Shop\.Rules\.Apply`"),
    "regex": ("CPU time: methods of the program, with what was done for them",
              r"`Shop\.Validator\.Check`\|`System\.Text\.RegularExpressions\."),
    "serializer": ("CPU time: methods of the program, with what was done for them",
                   r"`Shop\.Api\.Answer`\|`System\.Text\.Json\."),
    "start": ("Other waits", r"\|socket\|`Shop\.Settings\.Ask`"),
}
# One of each sort of recording: samples, pauses, waits, and events with a type.
RUNNING = [mode for mode in TROUBLES if mode != "start"] if runtimes.MATRIX else ["hot", "pauses", "lock", "exceptions"]


def mcp_sdk():
    """Folder of the Model Context Protocol's own SDK."""
    return runtimes.npm_package("@modelcontextprotocol/sdk", SDK_VERSION, "mcp")


def report(*arguments, budget=BUDGET):
    done = subprocess.run([harness.AGENT, "report", "--budget", str(budget), *arguments], capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout, done.stderr


def sections(text):
    """{title: lines} of a report."""
    found, title = {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            title = line[3:]
            found[title] = []
        elif title and line:
            found[title].append(line)
    return found


def telling(lines):
    """The sentences and the first row of a section: what a reader meets first."""
    head = [line for line in lines if not line.startswith("|")]
    rows = [line for line in lines if line.startswith("|")][2:]
    return "\n".join(head + rows[:1])


class Service:
    def __init__(self, version, mode):
        command, additions = runtimes.command(version, mode, program="services")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **additions},
                                        start_new_session=True)
        word, _, pid = self.process.stdout.readline().partition(" ")
        if word != "ready":
            raise AssertionError("the service did not start")
        self.pid = int(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class SettingsServer:
    """Answers each byte after a quarter of a second, so that ten of them make a start slow."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            while connection.recv(1):
                time.sleep(0.25)
                connection.sendall(b".")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class TroublesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_text(self, mode, text):
        self.assertLessEqual(len(text), BUDGET)
        found = sections(text)
        self.assertEqual(next(iter(found)), "Coverage")
        title, cause = TROUBLES[mode]
        self.assertIn(title, found, text)
        self.assertRegex(telling(found[title]), cause, text)
        # A pool that is not starved is never said to be.
        self.assertEqual("The thread pool is starved" in text, mode == "pool", text)
        if mode == "pool":
            # The program sets no limits of its own.
            self.assertRegex(text, rf"By its own fields the pool has \d+ workers, keeps at least {os.cpu_count()} and may have 32767\.")

    def test_the_trouble_of_a_running_service_is_named(self):
        for version in VERSIONS:
            for mode in RUNNING:
                with self.subTest(version=version, mode=mode), Service(version, mode) as service:
                    time.sleep(2)  # of a service that has been running for a while; the verdict does not hang on it
                    began = time.monotonic()
                    status, text, err = report("--pid", str(service.pid), "--duration", "6s")
                    print(f"  {version} {mode}: {len(text)} characters in {time.monotonic() - began:.1f} s", flush=True)
                    self.assertEqual(status, 0, err)
                    self.check_text(mode, text)

    def test_a_slow_start_is_named_by_a_recording_of_it(self):
        for version in VERSIONS:
            with self.subTest(version=version), tempfile.TemporaryDirectory(prefix="report-") as folder, SettingsServer() as server:
                command, additions = runtimes.command(version, "start", program="services")
                path = os.path.join(folder, "start.json")
                done = subprocess.run([harness.AGENT, "record", "--event", "wall", "--wakers", "-d", "6s", "-q", "-o", path, "--", *command],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
                                      env={**os.environ, **additions, "SETTINGS_PORT": str(server.port)})
                self.assertEqual(done.returncode, 0, done.stderr)
                status, text, err = report(path)
                self.assertEqual(status, 0, err)
                self.check_text("start", text)


class FormsTest(harness.LiveTest):
    NEEDS = ("dotnet", "node", "npm")

    @classmethod
    def check_needs(cls):
        super().check_needs()
        # The validator is one that the protocol's own SDK brings.
        cls.ajv = os.path.join(os.path.dirname(os.path.dirname(mcp_sdk())), "ajv")

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="report-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check_schema(self, text):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema_check.mjs")
        done = subprocess.run(["node", script, self.ajv, SCHEMA], input=text, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_schema_can_be_broken(self):
        for text in ("{}", '{"title":"t","left_out":[],"sections":[{"id":"x"}]}', '{"title":"t","left_out":[],"sections":[],"more":1}'):
            with self.assertRaises(AssertionError):
                self.check_schema(text)

    def recorded(self, service, name, *arguments):
        path = os.path.join(self.folder, name)
        done = subprocess.run([harness.AGENT, "record", "--pid", str(service.pid), "-d", "3s", "-q", "-o", path, *arguments],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def json_of(self, *arguments, budget=20_000):
        status, text, err = report("--json", *arguments, budget=budget)
        self.assertEqual(status, 0, err)
        self.assertLessEqual(len(text), budget)
        self.check_schema(text)
        return json.loads(text)

    def test_json_fits_its_schema_and_formats_agree(self):
        with Service(NEWEST, "regex") as service:
            paths = [self.recorded(service, name) for name in ("cpu.json", "cpu.pb.gz", "cpu.folded")]
            wall = self.recorded(service, "wall.json", "--event", "wall", "--wakers")
            allocations = self.recorded(service, "alloc.json", "--event", "alloc")
        for path in paths:
            with self.subTest(path):
                told = self.json_of(path)
                (methods,) = [section for section in told["sections"] if section["id"] == "own_methods"]
                self.assertEqual(methods["rows"][0]["method"], "Shop.Validator.Check")
                self.assertGreater(methods["rows"][0]["share"], 0.8)
                # 3 s at 99 Hz: a share of 90 % of some 270 samples has an error of 2 %.
                self.assertGreater(methods["rows"][0]["share_error"], 0.002)
                self.assertLess(methods["rows"][0]["share_error"], 0.05)
        told = self.json_of(paths[0], wall, allocations)
        ids = [section["id"] for section in told["sections"]]
        self.assertEqual(ids[0], "coverage")
        self.assertTrue({"own_methods", "self", "thread_pool", "lock_sites", "allocating_methods"} <= set(ids), ids)
        self.assertEqual(len(told["sections"][0]["rows"]), 3)
        small = self.json_of(paths[0], wall, allocations, budget=1500)
        self.assertTrue(small["left_out"])

    def test_two_files_say_what_changed(self):
        with Service(NEWEST, "regex") as service:
            before = self.recorded(service, "before.json")
        with Service(NEWEST, "serializer") as service:
            after = self.recorded(service, "after.json")
        told = self.json_of(before, after)
        (changes,) = [section for section in told["sections"] if section["id"] == "changes"]
        rows = {row["method"]: row for row in changes["rows"]}
        self.assertLess(rows["Shop.Validator.Check"]["change"], -0.5)
        self.assertGreater(rows["Shop.Api.Answer"]["change"], 0.5)
        self.assertEqual(rows["Shop.Api.Answer"]["of"], "with callees")

    def test_wrong_arguments_have_hints(self):
        for arguments, text in (((), "report needs either profiles or a process"),
                                (("--pid", "1", "x.json"), "report needs either profiles or a process"),
                                (("no-such-file.json",), "no-such-file.json"),
                                (("--pid", "4194303"), "4194303")):
            status, out, err = report(*arguments)
            self.assertNotEqual(status, 0)
            self.assertEqual(out, "")
            self.assertIn(text, err)
            self.assertIn("hint: ", err)


if __name__ == "__main__":
    harness.main()
