#!/usr/bin/env python3
"""Files and lines of native code: is the line that works the hot one, and are the lines those of addr2line?

What does it cost a recording when debug information is damaged or the process that reads it is killed?

The programs are tests/apps/native_lines, whose hot line is known, and clrsampler itself, which has C++ with inlined code.
"""
import collections
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import deployments
import harness
import hot_lines_live_test
import runtimes
import stack_truth
import symbol_servers
from service import Service

PROGRAMS = os.path.join(os.path.dirname(harness.MINIJIT), "native_lines")
SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "native_lines", "native_lines.c")


def line_of(comment):
    with open(SOURCE, encoding="utf-8") as source:
        (number,) = [number for number, text in enumerate(source, 1) if text.rstrip().endswith("// " + comment)]
    return number


HOT, CALLER = line_of("the hot line"), line_of("the line of the caller")
NO_PROXY = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
EXACT, OPTIMISED = 1, 2  # formats/names/line_kind.h


def program(name, folder=PROGRAMS):
    return harness.Target([os.path.join(folder, name), "300"])


def helpers():
    """(pid, parent) of the processes that read debug information, of all recordings."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path) as file:
            pid, name, _, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", file.read()).groups()
            if name == "clrsampler-line":
                found.append((int(pid), int(parent)))
    return found


def readers_of(agent):
    """(keeper, reader) of a running recording."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        all_of_them = helpers()
        for keeper, parent in all_of_them:
            if parent == agent.process.pid:
                for reader, its_parent in all_of_them:
                    if its_parent == keeper:
                        return keeper, reader
        time.sleep(0.02)
    raise AssertionError("no process reads lines")


def frames_of(profile, function):
    """Counter of the frames of a function, with and without a line."""
    found = collections.Counter()
    for frames, count in profile.stacks:
        for frame in frames[1:]:
            if re.fullmatch(re.escape(function) + r"(:\d+)?", frame):
                found[frame] += count
    return found


def damaged(path, to):
    """The program with rubbish in the places of .debug_line and .debug_info."""
    shutil.copy(path, to)
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    chance = random.Random(1)
    with open(to, "r+b") as file:
        for name in (".debug_line", ".debug_info"):
            offset, size = (int(number, 16) for number in re.search(rf" {re.escape(name)} +PROGBITS +\w+ (\w+) (\w+)", sections).groups())
            file.seek(offset)
            file.write(chance.randbytes(size))


def place(text):
    """(file, line) of what such a program prints; None: it knows none."""
    file, _, line = text.split(" (disc")[0].rpartition(":")
    return (os.path.normpath(file), int(line)) if line.isdigit() and line != "0" and file != "??" else None


class LinesTestCase(harness.LiveTest):
    NEEDS = ("addr2line", "llvm-symbolizer", "nm", "readelf")

    def recorded(self, target, *options, cpu_seconds=3, during=None):
        agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", "499", "--lines", *options), env=NO_PROXY)
        agent.wait_until_sampling()
        if during:
            during(agent)
        target.use_cpu(cpu_seconds)
        agent.interrupt()
        result = agent.finish(120)
        self.check_result(result, minimum_samples=200)
        return result

    def named(self, pid, addresses):
        """(file, line) of each address, by the program."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(f"{address:x}\n" for address in addresses))
            file.flush()
            done = subprocess.run([harness.AGENT, "names", "--pid", str(pid), "--lines", "--addresses", file.name], capture_output=True, text=True,
                                  timeout=300, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        return [(row[8], int(row[9])) for row in rows]

    def compare(self, path, pid, count, chance, debug=None):
        """`debug`: the separate file with the program's symbols and lines."""
        debug = debug or path
        symbols = subprocess.run(["nm", "-S", "--defined-only", debug], capture_output=True, text=True, check=True).stdout
        # Bytes that lie between functions are filling.
        functions = [(int(begin, 16), int(size, 16)) for begin, size in re.findall(r"^(\w+) (\w+) [tTwW] ", symbols, re.MULTILINE)]
        sizes = [size for _, size in functions]
        linked = [begin + chance.randrange(size) for begin, size in chance.choices(functions, sizes, k=count)]
        with open(f"/proc/{pid}/maps") as maps:
            base = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(path) and line.split()[2] == "00000000")
        text = "".join(f"{address:#x}\n" for address in linked)
        judges = [subprocess.run(command, input=text, capture_output=True, text=True, timeout=600, check=True).stdout.splitlines()
                  for command in (["addr2line", "-e", debug], ["llvm-symbolizer", "--obj=" + debug, "--no-inlines", "-f=none", "--output-style=GNU"])]
        equal, silent, wrong = 0, 0, []
        for address, (file, line), *said in zip(linked, self.named(pid, [base + address for address in linked]), *judges, strict=True):
            told = [place(one) for one in said]
            if (os.path.normpath(file), line) in told:
                equal += 1
            elif line == 0 and None in told:
                silent += 1
            else:
                wrong.append((hex(address), file, line, said))
        print(f"  {os.path.basename(path)}: {equal} addresses equal, {silent} without a line, {len(wrong)} differ", flush=True)
        self.assertEqual(wrong[:10], [])
        self.assertGreater(equal, 0.5 * count)


class NativeLinesTest(LinesTestCase):
    def check_hot_line(self, result):
        """99 % of the samples in `dear` are in its hot line; its caller is in the line of the call."""
        dear = frames_of(result.profile, "dear")
        total = sum(dear.values())
        self.assertGreater(total, 500)
        self.assertLessEqual(total - dear.get(f"dear:{HOT}", 0), stack_truth.allowed_faults(total, 0.99), dear)
        callers = frames_of(result.profile, "statements")
        off = sum(callers.values()) - callers.get(f"statements:{CALLER}", 0)
        self.assertLessEqual(off, stack_truth.allowed_faults(sum(callers.values()), 0.99), callers)

    def test_the_hot_line(self):
        for name, kind in (("plain", EXACT), ("stripped", EXACT), ("optimised", OPTIMISED)):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, program(name) as target:
                path = os.path.join(folder, "hot.json")
                result = self.recorded(target, "--output", path)
                self.check_hot_line(result)
                with open(path, encoding="utf-8") as file:
                    profile = json.load(file)
                strings, frames = profile["strings"], profile["frames"]
                (at,) = [i for i, name in enumerate(frames["name"]) if strings[name] == "dear" and frames["line"][i] == HOT]
                self.assertEqual(strings[frames["source_file"][at]], SOURCE)
                self.assertEqual(frames["line_kind"][at], kind)
                self.assertGreater(result.stats["lines"]["native"]["frames"], 1000)
                self.assertEqual(result.stats["lines"]["native"]["failed"], 0)

    def test_lines_from_a_symbol_server(self):
        """The first recording fetches the debug file, and has lines from when it comes. The next one has it in the cache."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            path = shutil.copy(os.path.join(PROGRAMS, "stripped"), folder)
            with open(os.path.join(PROGRAMS, "stripped.debug"), "rb") as file:
                files = {symbol_servers.debuginfod_path(symbol_servers.build_id(path)): file.read()}
            with symbol_servers.Server(files) as server, program("stripped", folder) as target:
                options = ("--symbol-server", "debuginfod+" + server.url, "--symbol-cache", cache)
                first = self.recorded(target, *options)
                self.assertGreater(frames_of(first.profile, "dear")[f"dear:{HOT}"], 100)
                self.check_hot_line(self.recorded(target, *options))

    def test_standing_frames(self):
        with program("plain") as target:
            done = subprocess.run([harness.AGENT, "stacks", "--pid", str(target.host_pid), "--json", "--lines"], capture_output=True, text=True,
                                  timeout=120, check=True)
        frames = {frame["name"]: frame for frame in json.loads(done.stdout)["frames"]}
        self.assertEqual((frames["statements"]["file"], frames["statements"]["line"]), (SOURCE, CALLER))

    def test_lines_are_those_of_addr2line(self):
        """1,000 addresses of an optimised program and 2,000 of clrsampler itself, C++ with inlined code. binutils' addr2line names another
        file for some parts of functions that are in a section of their own, so LLVM's counts as well."""
        chance = random.Random(7)
        with program("optimised") as target, harness.busy_program() as busy:
            agent = harness.Agent(("--pid", str(busy.pid)))
            agent.wait_until_sampling()
            for path, pid, count in ((os.path.join(PROGRAMS, "optimised"), target.host_pid, 1000), (harness.AGENT, agent.process.pid, 2000)):
                with self.subTest(os.path.basename(path)):
                    self.compare(os.path.realpath(path), pid, count, chance)
            agent.interrupt()
            agent.finish(120)

    def test_damaged_debug_information_costs_its_lines_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "damaged")
            damaged(os.path.join(PROGRAMS, "plain"), path)
            with program("damaged", folder) as target:
                result = self.recorded(target)
        self.assertEqual(set(frames_of(result.profile, "dear")), {"dear"})
        self.assertIn(f"no lines of native code from {path}: ", result.err)
        self.assertEqual(result.stats["lines"]["native"]["failed"], 1)

    def test_a_reader_that_is_killed_costs_nothing_else(self):
        """One between two questions is replaced; with its keeper the lines end, and the recording goes on."""
        def kill_reader(agent):
            os.kill(readers_of(agent)[1], signal.SIGKILL)

        with program("plain") as target:
            self.check_hot_line(self.recorded(target, during=kill_reader))

        def kill_both(agent):
            for pid in readers_of(agent):
                os.kill(pid, signal.SIGKILL)

        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(PROGRAMS, "plain"), folder)
            target = program("plain", folder)
            target.freeze()
            agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", "499", "--lines"))
            agent.wait_until_sampling()
            kill_both(agent)
            target.signal(signal.SIGCONT)
            target.use_cpu(3)
            agent.interrupt()
            result = agent.finish(120)
            target.stop()
        self.check_result(result, minimum_samples=200)
        self.assertEqual(set(frames_of(result.profile, "dear")), {"dear"})
        self.assertIn("native code has no lines from here on: the processes that read it have ended", result.err)

    def test_nobody_reads_lines_where_they_are_not_asked_for(self):
        with program("plain") as target:
            agent = harness.Agent(("--pid", str(target.host_pid),))
            agent.wait_until_sampling()
            self.assertNotIn(agent.process.pid, {parent for _, parent in helpers()})
            target.use_cpu(1)
            agent.interrupt()
            result = agent.finish(120)
        self.assertEqual(set(frames_of(result.profile, "dear")), {"dear"})

    def test_the_service_has_them_too(self):
        with Service("--frequency", 199, "--lines") as service, program("plain") as target:
            service.wait_for_windows(1)
            since = time.time()
            target.use_cpu(4)
            service.wait_for_windows(1)
            status, text = service.get("/api/profile", **{"from": since, "to": time.time(), "pid": target.host_pid, "format": "folded"})
            self.assertEqual(status, 200, text[:500])
            self.assertIn(f"dear:{HOT} ", text.decode())
            metrics = service.metrics()
            self.assertGreater(service.sum("clrsampler_native_frames_with_line_total", metrics), 500)
            self.assertGreaterEqual(service.sum("clrsampler_native_line_files_total", metrics, result="opened"), 1)


class AheadOfTimeTest(LinesTestCase):
    """Methods of NativeAOT programs: the compiler has written their lines into the debug file beside the program."""

    NEEDS = (*LinesTestCase.NEEDS, "dotnet")
    VERSIONS = ("8.0.30", "9.0.19")  # for those the feed has what NativeAOT takes
    PROJECT = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "lines.csproj")
    # Measured: 1. The code is optimised, so samples at a loop's end may be on a line beside.
    ON_LINE = 0.98

    def published(self, version):
        try:
            (path,) = deployments.publish("native-aot", version, self.PROJECT)
        except runtimes.Missing as reason:
            self.unavailable(str(reason))
        return path

    def test_hot_lines(self):
        for version in self.VERSIONS:
            with self.subTest(version), harness.Target([self.published(version), "kinds", "600"]) as target:
                result = self.recorded(target, cpu_seconds=8)
                for method in ("Ordinary", "Among", "Mapped"):
                    lines = collections.Counter()
                    for frames, count in result.profile.stacks:
                        if found := re.fullmatch(rf"Lines\.Kinds\.{method}(?::(\d+))?_\[j\]", frames[-1]):
                            lines[found[1]] += count
                    total, on_line = sum(lines.values()), lines[str(hot_lines_live_test.hot_line(method).number)]
                    print(f"  {version} {method}: {on_line} of {total} samples on the hot line", flush=True)
                    self.assertGreater(total, 100, lines)
                    self.assertLessEqual(total - on_line, stack_truth.allowed_faults(total, self.ON_LINE), lines)

    def test_lines_are_those_of_addr2line(self):
        chance = random.Random(7)
        for version in self.VERSIONS:
            path = self.published(version)
            with self.subTest(version), harness.Target([path, "kinds", "600"]) as target:
                self.compare(path, target.host_pid, 2000, chance, path + ".dbg")


if __name__ == "__main__":
    harness.main()
