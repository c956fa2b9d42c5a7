#!/usr/bin/env python3
"""Files and lines of managed frames: are they those that the runtime itself tells, and is the line that works the hot one?

The program (tests/apps/lines) prints the stacks of its threads by the runtime's own StackTrace, files, lines and columns included. Its threads
stand still, so `stacks --lines` must say the same of each frame.
"""
import collections
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import zlib
import time

import deployments
import folded
import harness
import line_truth
import runtimes
import stack_truth
import symbol_servers
from pprof import pprof_tool
from service import Service

VERSIONS = runtimes.selected()
FORMS = ("r2r", "composite", "single-file", "single-file-compressed")
PROJECT = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "lines.csproj")
CHOSEN_WAYS = ("as usual", "optimised at once")


class Program(harness.Target):
    """tests/apps/lines."""

    def __init__(self, version, environment, path=None, published=None):
        """path: another place of the assembly. published: the command of a published program."""
        command, additions = runtimes.command(version, "--seconds", "120", program="lines") if published is None else ([*published, "--seconds", "120"], {})
        if path:
            command = [command[0], path, *command[2:]]
        super().__init__(command, env={**additions, **environment})


class LinesTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def stacks(self, target, *options):
        done = subprocess.run([harness.AGENT, "stacks", "--pid", str(target.host_pid), "--json", "--names", "raw", "--lines", *options],
                              capture_output=True, text=True, timeout=120, check=True)
        # Native frames have lines too, of which the runtime tells nothing (native_lines_live_test).
        return {thread["tid"]: [frame for frame in thread["frames"] if frame["kind"] != "native"] for thread in map(json.loads, done.stdout.splitlines())}

    def check_stacks(self, target, least):
        told = line_truth.told(target.output)
        equal, silent, wrong = line_truth.compare(told, self.stacks(target))
        self.assertEqual(wrong, [])
        self.assertGreater(equal, least)
        # A return address behind which nothing is mapped: a call that ends a method, as with a throw.
        self.assertLessEqual(silent, equal * 0.01, told)
        return equal, silent

    def test_frames_have_the_lines_that_the_runtime_tells(self):
        for version in VERSIONS:
            for way in line_truth.WAYS if runtimes.MATRIX else CHOSEN_WAYS:
                with self.subTest(version=version, way=way):
                    self.need_runtime(version)
                    with Program(version, line_truth.WAYS[way]) as target:
                        equal, silent = self.check_stacks(target, least=500)
                    print(f"  {version} {way}: {equal} frames equal, {silent} without a line", flush=True)

    def test_the_hot_line(self):
        """In code that is not optimised, 99 % of the samples are in the line that works. Its callers are in the lines of their calls."""
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Program(version, {}) as target:
            agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", "499", "--lines"))
            agent.wait_until_sampling()
            target.use_cpu(3)
            agent.interrupt()
            result = agent.finish(120)
        profile = self.check_result(result, minimum_samples=200)
        hot, callers = line_truth.line_of("the hot line"), line_truth.line_of("the line of the callers")
        dear = {frame: count for frame, count in profile.frames("j").items() if frame.startswith("Lines.Hot.Dear")}
        total = sum(dear.values())
        self.assertGreater(total, 500)
        off = total - dear.get(f"Lines.Hot.Dear:{hot}_[j]", 0)
        self.assertLessEqual(off, stack_truth.allowed_faults(total, 0.99), dear)
        statements = {frame: count for frame, count in profile.frames("j").items() if frame.startswith("Lines.Hot.Statements")}
        off = sum(statements.values()) - statements.get(f"Lines.Hot.Statements:{callers}_[j]", 0)
        self.assertLessEqual(off, stack_truth.allowed_faults(sum(statements.values()), 0.99), statements)

    def test_annotate(self):
        """The hot line has the samples of its method, under it the instructions have as many, and the text is that of the file."""
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Program(version, {}) as target:
            result = subprocess.run([harness.AGENT, "annotate", "Hot.Dear", "--pid", str(target.host_pid), "--duration", "3s"],
                                    capture_output=True, text=True, timeout=120)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        text = result.stdout
        total = int(re.search(r"^Lines\.Hot\.Dear: (\d+) samples in its own code", text).group(1))
        self.assertGreater(total, 30, text)
        lines, *bodies = text.split("\n\n")[1:]
        hot = line_truth.line_of("the hot line")
        on_it = re.search(rf"^ *(\d+) +[\d.]+%  Program\.cs:{hot} .*the hot line", lines, re.MULTILINE)
        self.assertIsNotNone(on_it, lines)
        self.assertLessEqual(total - int(on_it.group(1)), stack_truth.allowed_faults(total, 0.99), lines)
        self.assertIn("x86-64", bodies[0].splitlines()[0])
        instructions = re.findall(r"^ *(?:(\d+) +[\d.]+%)?  ([0-9a-f]{6})  (.+)$", "\n".join(bodies), re.MULTILINE)
        self.assertEqual(sum(int(samples) for samples, _, _ in instructions if samples), total)
        self.assertTrue(any(name.startswith("vdivsd") or name.startswith("divsd") for _, _, name in instructions), bodies[0])

    def test_annotate_shows_what_it_has_at_control_c_and_leaves_no_recording(self):
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Program(version, {}) as target:
            command = [harness.AGENT, "annotate", "Hot.Dear", "--pid", str(target.host_pid), "--duration", "10m"]

            def begin():
                shown = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
                time.sleep(5)
                return shown

            shown = begin()
            os.killpg(shown.pid, signal.SIGINT)
            text, errors = shown.communicate(timeout=60)
            self.assertEqual((shown.returncode, errors), (0, ""), text)
            self.assertRegex(text, r"^Lines\.Hot\.Dear: \d+ samples in its own code")
            shown = begin()
            with open(f"/proc/{shown.pid}/task/{shown.pid}/children", encoding="ascii") as children:
                recordings = children.read().split()
            self.assertEqual(len(recordings), 1)
            shown.terminate()
            shown.communicate(timeout=10)
            deadline = time.monotonic() + 10
            while any(harness.is_running(int(pid)) for pid in recordings):
                self.assertLess(time.monotonic(), deadline, "the recording goes on")
                time.sleep(0.1)

    def test_code_is_in_the_page_and_in_json(self):
        """The page that a recording writes is that of its .json, and has the instruction at which most samples are."""
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with tempfile.TemporaryDirectory() as folder, Program(version, {}) as target:
            page, converted, profile = (os.path.join(folder, name) for name in ("code.html", "converted.html", "code.json"))
            result = harness.record("--pid", str(target.host_pid), "--duration", "2s", "--code", "--output", page, "--output", profile)
            self.assertEqual(result.status, 0, result.err)
            self.assertGreater(result.stats["code"]["samples"], 30)
            self.assertEqual(result.stats["code"]["left_out"], 0)
            subprocess.run([harness.AGENT, "convert", profile, converted], check=True, timeout=60)
            with open(page, encoding="utf-8") as written, open(converted, encoding="utf-8") as again:
                text = written.read()
                self.assertEqual(text, again.read())
        data = json.loads(zlib.decompress(base64.b64decode(re.search('id="profile">([^<]*)', text).group(1))))
        hot = max(data["code"], key=lambda body: sum(body["self"]))
        self.assertEqual(data["strings"][data["frames"]["name"][hot["frame"]]], "Lines.Hot.Dear")
        at = max(range(len(hot["self"])), key=lambda i: hot["self"][i])
        self.assertEqual(hot["line"][at], line_truth.line_of("the hot line"))
        self.assertRegex(hot["text"][at], r"^v?\w+ ")

    def test_source_text_is_embedded_only_where_asked_for(self):
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with open(line_truth.PROGRAM_SOURCE, encoding="utf-8") as file:
            text = file.read()
        with Program(version, {}) as target, tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            for options, wanted in (((), False), (("--embed-source",), True)):
                path = os.path.join(folder, "profile.json")
                subprocess.run([harness.AGENT, "--pid", str(target.host_pid), "--duration", "2s", "--lines", "-o", path, "--quiet", *options],
                               capture_output=True, timeout=120, check=True)
                with open(path, encoding="utf-8") as file:
                    written = file.read()
                self.assertIn(line_truth.PROGRAM_SOURCE, written)
                self.assertEqual(json.dumps(text)[1:200] in written, wanted)
                os.remove(path)

    def test_compilations_say_where_their_method_begins(self):
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Program(version, {}) as target:
            done = subprocess.run([harness.AGENT, "jit", "--pid", str(target.host_pid), "--duration", "4s", "--json", "--lines"],
                                  capture_output=True, text=True, timeout=120, check=True)
        begins = [(event.get("file"), event.get("line")) for event in map(json.loads, done.stdout.splitlines())
                  if event["method"].startswith("Lines.Fresh.Run")]
        # The program has one compiled every half a second.
        self.assertGreater(len(begins), 0, done.stdout[-2000:])
        self.assertEqual(set(begins), {(line_truth.PROGRAM_SOURCE, line_truth.line_of("where Run begins"))})


class ServedLinesTest(harness.LiveTest):
    """`serve --lines`: windows and their history have the lines that a recording has."""

    NEEDS = ("dotnet",)

    def ask(self, service, target, since, form):
        status, body = service.get("/api/profile", **{"from": since, "to": time.time(), "pid": target.host_pid, "format": form})
        self.assertEqual(status, 200, body[:500])
        return body

    def test_the_hot_line_in_every_format(self):
        pprof = pprof_tool()
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        hot = line_truth.line_of("the hot line")
        with Service("--frequency", 199, "--lines") as service, Program(version, {}) as target:
            service.wait_for_windows(1)
            since = time.time()
            target.use_cpu(6)
            service.wait_for_windows(1)
            self.check_json(json.loads(self.ask(service, target, since, "json")), hot, service)
            dear = folded.parse(self.ask(service, target, since, "folded")).frames("j")
            self.assertIn(f"Lines.Hot.Dear:{hot}_[j]", dear)
            frames = json.loads(self.ask(service, target, since, "speedscope"))["shared"]["frames"]
            self.assertIn(("Lines.Hot.Dear", line_truth.PROGRAM_SOURCE, hot), {(f["name"], f.get("file"), f.get("line")) for f in frames})
            path = os.path.join(service.folder, "hot.pb.gz")
            with open(path, "wb") as file:
                file.write(self.ask(service, target, since, "pprof"))
            done = subprocess.run([pprof, "-top", "-lines", "-nodecount=1", path], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PPROF_TMPDIR": service.folder})
            self.assertIn(f"Lines.Hot.Dear {line_truth.PROGRAM_SOURCE}:{hot}", done.stdout, done.stderr)
            metrics = service.metrics()
            self.assertGreater(service.sum("clrsampler_frames_with_line_total", metrics), 500)
            self.assertGreaterEqual(service.sum("clrsampler_pdbs_total", metrics, result="found"), 1)
            # .NET's own assemblies come without PDBs.
            self.assertGreaterEqual(service.sum("clrsampler_pdbs_total", metrics, result="without"), 1)

    def check_json(self, profile, hot, service):
        """All samples in the hot method but those of chance are in its hot line."""
        strings, frames, nodes, samples = profile["strings"], profile["frames"], profile["nodes"], profile["samples"]
        lines = collections.Counter()
        for node, weight in zip(samples["stack"], samples["weight"]):
            frame = nodes["frame"][node]
            if node and strings[frames["name"][frame]] == "Lines.Hot.Dear":
                lines[strings[frames["source_file"][frame]], frames["line"][frame]] += weight
        total = sum(lines.values())
        self.assertGreater(total, 2e9, lines)
        self.assertGreater(lines[line_truth.PROGRAM_SOURCE, hot], 0.97 * total, f"{lines}\n{service.said()}")

    def test_lines_are_there_only_where_they_are_asked_for(self):
        version = runtimes.newest()[-1]
        self.need_runtime(version)
        with Service("--frequency", 199) as service, Program(version, {}) as target:
            service.wait_for_windows(1)
            since = time.time()
            target.use_cpu(2)
            service.wait_for_windows(1)
            text = self.ask(service, target, since, "folded").decode()
            self.assertIn("Lines.Hot.Dear_[j]", text)
            self.assertNotIn(b"Program.cs", self.ask(service, target, since, "json"))
            self.assertEqual(service.sum("clrsampler_frames_with_line_total"), 0)


class FormsTest(LinesTest):
    """Published programs: their code is precompiled, or their assemblies are in no file of their own."""

    test_frames_have_the_lines_that_the_runtime_tells = None
    test_the_hot_line = None
    test_source_text_is_embedded_only_where_asked_for = None
    test_compilations_say_where_their_method_begins = None

    def test_published_forms(self):
        for form in FORMS:
            for version in runtimes.PACKED_VERSIONS:
                with self.subTest(form=form, version=version):
                    published = deployments.publish(form, version, project=PROJECT)
                    with Program(version, {}, published=published) as target:
                        equal, silent = self.check_stacks(target, least=500)
                    print(f"  {form} {version}: {equal} frames equal, {silent} without a line", flush=True)


class PdbPlacesTest(harness.LiveTest):
    """Where a PDB may be, and what is no PDB of the program."""

    NEEDS = ("dotnet",)

    def setUp(self):
        super().setUp()
        self.version = runtimes.newest()[-1]
        self.need_runtime(self.version)
        built = os.path.dirname(runtimes.app("lines"))
        self.folder = tempfile.mkdtemp(prefix="clrsampler-test-lines-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.program = os.path.join(self.folder, "app")
        shutil.copytree(built, self.program)
        self.pdb = os.path.join(self.program, "lines.pdb")

    def lines(self, *options, between=None):
        """Frames with a line in all stacks, and what the command said. `between` is done once the program stands: it reads its PDB itself."""
        with Program(self.version, {}, os.path.join(self.program, "lines.dll")) as target:
            if between:
                between()
            done = subprocess.run([harness.AGENT, "stacks", "--pid", str(target.host_pid), "--json", "--lines", *options],
                                  capture_output=True, text=True, timeout=120, check=True)
        frames = [frame for thread in map(json.loads, done.stdout.splitlines()) for frame in thread["frames"]]
        return sum(1 for frame in frames if "line" in frame and frame["kind"] != "native"), done.stderr

    def test_beside_the_assembly(self):
        self.assertGreater(self.lines()[0], 500)

    def test_a_folder_that_is_given(self):
        elsewhere = os.path.join(self.folder, "symbols")
        os.mkdir(elsewhere)
        shutil.move(self.pdb, elsewhere)
        self.assertGreater(self.lines("--pdb-path", elsewhere)[0], 500)

    def test_another_build_a_damaged_one_and_what_is_no_file(self):
        with open(self.pdb, "rb") as file:
            good = file.read()
        other = bytearray(good)
        other[symbol_servers.pdb_id_place(good)] ^= 1
        for name, content, word in (("another build", bytes(other), "another build"), ("cut off", good[:300], "gives no lines"),
                                    ("no PDB", b"x" * 4096, "gives no lines")):
            with self.subTest(name):
                def write(content=content):
                    with open(self.pdb, "wb") as file:
                        file.write(content)

                lines, said = self.lines(between=write)
                self.assertEqual(lines, 0)
                self.assertIn(word, said)

        def make_fifo():
            os.remove(self.pdb)
            os.mkfifo(self.pdb)

        def make_huge():
            with open(self.pdb, "wb") as file:
                file.truncate(2 << 30)

        for name, make in (("2 GB", make_huge), ("a FIFO", make_fifo)):
            with self.subTest(name):
                lines, said = self.lines(between=make)
                self.assertEqual(lines, 0)
                self.assertIn("gives no lines", said)

    def recorded(self, content, behave=None):
        """A recording whose PDB is on a symbol server only: (frames of the hot method by their text, the result)."""
        with open(self.pdb, "rb") as file:
            path = symbol_servers.ssqp_pdb_path("lines.pdb", file.read())
        with symbol_servers.Server({path: content}, behave and (lambda handler, asked: asked == path and behave(server))) as server, \
                Program(self.version, {}, os.path.join(self.program, "lines.dll")) as target:
            os.remove(self.pdb)  # which the program itself has read
            agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", "499", "--lines", "--symbol-server", "ssqp+" + server.url,
                                   "--symbol-cache", os.path.join(self.folder, "cache")), env={"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"})
            agent.wait_until_sampling()
            target.use_cpu(4)
            agent.interrupt()
            result = agent.finish(120)
        profile = self.check_result(result, minimum_samples=200)
        hot = {folded.bare(frame): count for frame, count in profile.frames("j").items() if frame.startswith("Lines.Hot.Dear")}
        self.assertGreater(sum(hot.values()), 200)
        self.assertEqual(server.requests.count(path), 1, server.requests)
        return hot, result

    def test_a_symbol_server(self):
        with open(self.pdb, "rb") as file:
            good = file.read()
        # The answer waits for a second: methods that were looked at before have lines then.
        hot, result = self.recorded(good, lambda server: server.released.wait(1))
        self.assertGreater(hot.get("Lines.Hot.Dear", 0), 20, hot)
        self.assertGreater(hot.get(f"Lines.Hot.Dear:{line_truth.line_of('the hot line')}", 0), 200, hot)
        self.assertGreaterEqual(result.stats["symbol_server"]["fetched"], 1, result.stats["symbol_server"])

    def test_a_symbol_server_with_another_build(self):
        with open(self.pdb, "rb") as file:
            other = bytearray(file.read())
        other[symbol_servers.pdb_id_place(other)] ^= 1
        hot, result = self.recorded(bytes(other))
        self.assertEqual(set(hot), {"Lines.Hot.Dear"})
        self.assertEqual(result.stats["symbol_server"]["rejected"], 1, result.stats["symbol_server"])
        notices = {notice["kind"]: notice["message"] for notice in result.stats["notices"]}
        self.assertIn("a symbol server sent a wrong file for lines.pdb: ", notices["symbol_file_rejected"])


if __name__ == "__main__":
    harness.main()
