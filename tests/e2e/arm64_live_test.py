#!/usr/bin/env python3
"""The agent for arm64 with real runtimes, in a virtual machine: names, stacks, pauses, compilations, and what `ps` and `doctor` say.

One start of one machine for each case. Each name is judged against the target's own jitdump and against ClrMD, and each stack against what
tests/apps/shapes says that there can be. Collections, compilations and allocated bytes are judged against what the runtime counts.

  arm64_live_test.py                        .NET 10.0.15: a minute
  CLRSAMPLER_MATRIX=full arm64_live_test.py  all versions, all modes, kernels, signed return addresses, published programs
"""
import collections
import json
import os
import re
import shutil
import subprocess
import tempfile

import arm64_frames
import async_callers_live_test as async_callers
import culprits
import deployments
import event_counts
import exception_lines
import harness
import il_maps_r2r_oracle_test as il_maps_r2r
import line_truth
import lock_holders_live_test as lock_holders
import names_oracle
import runtimes
import stack_truth
import thread_pool_live_test as thread_pool
import vm_programs
import wait_sites

BUILD = os.environ.get("CLRSAMPLER_ARM64_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64"))
AGENT = os.path.join(BUILD, "clrsampler")
VERSION = runtimes.ARM64_VERSIONS[1]
SUITE = "bookworm"
SUITES = ("bullseye", SUITE, "trixie", "trixie-16k", "sid")  # 16k: pages of 16 KiB
SHAPES = ("chains", "tiny", "localloc", "exceptions", "osr", "tail-calls", "interfaces", "generics")
# Mode -> the share of managed frames that must be named. zoo has collectible assemblies and emitted ones
# (docs/measurements/2026-11-28-names-without-preparation.md has its figures).
# jit frees each method after its one call, as on x64: what is gone before it is read has no name.
WORKLOADS = {"json": 0.999, "linq": 0.999, "regex": 0.999, "async": 0.999, "zoo": 0.999, "jit": 0.99}
# Modes whose recordings also write a jitdump. Others compile code that is gone soon, so nothing else is to be read at that time.
WITH_CODE = ("json", "linq", "async")
ADDRESSES = 8000
STACKS_EXACT = 0.999
LINES_COMPARED = 2000
ALLOCATED = {"rate": 20, "seconds": 3}  # megabytes a second
SIGNED = "DOTNET_JitPacEnabled=1"
# How the program is published -> its mode, and the share of stacks that must be whole. The collector inside NativeAOT programs has no unwind
# data, and its leaves no frame record.
FORMS = {"single-file": ("startup", STACKS_EXACT), "composite": ("startup", STACKS_EXACT), "native-aot": ("linq", 0.98)}
# Where a thread is between the end of its native call and the moment in which it stands still. In this machine, which is slow, up to 5 % of
# the delay is there.
POLLING = ("System.Threading.Thread.PollGC", "[stub ")

# Functions of the guest's shell. `begin NAME COMMAND...` starts a program and waits until it is ready.
PRELUDE = """
# said PATTERN FILE PID [COUNT]: waits until the file has so many lines with the pattern, while the process lives.
said() {
  until [ $(grep -c "$1" $2) -ge ${4:-1} ]; do sleep 0.1; [ -d /proc/$3 ] || { cat $2; exit 1; }; done
}
begin() {
  name=$1; shift
  : >/out/$name.target
  "$@" --seconds 900 >/out/$name.target 2>&1 &
  pid=$!
  said ^ready /out/$name.target $pid
}
# converse NAME READY COMMAND...: starts a program that does what it is told, and says then what that was.
converse() {
  name=$1 ready=$2; shift 2
  mkfifo /tmp/tasks
  : >/out/$name.target
  "$@" </tmp/tasks >/out/$name.target 2>&1 &
  pid=$!
  exec 9>/tmp/tasks
  said "$ready" /out/$name.target $pid
}
tell() { echo "$@" >&9; }
hang_up() { exec 9>&-; end; rm /tmp/tasks; }
# observe BEGUN COMMAND...: watches the program of the last `converse`, and goes on when the agent has begun.
observe() {
  begun=$1; shift
  : >/out/$name.err
  clrsampler "$@" --pid $pid 2>/out/$name.err &
  watcher=$!
  said "$begun" /out/$name.err $watcher
}
observed() {
  kill -INT $watcher; wait $watcher
  echo $? >/out/$name.status
}
waits() { for task in /proc/$pid/task/*; do echo "${task##*/} $(cut -d' ' -f2 $task/schedstat)"; done; }
end() { kill -9 $pid; wait $pid 2>/dev/null || true; }
watch() {
  name=$1 command=$2; shift 2
  : >/out/$name.err
  clrsampler $command --pid $pid --json "$@" >/out/$name.events 2>/out/$name.err &
  watched $name
}
watched() {
  name=$1 watcher=$!
  said 'watching process' /out/$name.err $watcher
  sleep ${2:-0}
  kill -HUP $pid
  said ^truth /out/$name.target $pid
  sleep 1
  observed
}
record() {
  name=$1; shift
  clrsampler --pid $pid --frequency 199 --output /out/$name.folded --stats /out/$name.stats "$@" 2>/out/$name.err
  echo $? >/out/$name.status
}
"""
# Names of a stopped process from its memory. The addresses: the first of each method that the perf map has, and random ones.
NAMES = """
rm -f /tmp/perf-* /tmp/jit-*
export DOTNET_PerfMapEnabled=1 DOTNET_PerfMapStubGranularity=2 DOTNET_PerfMapShowOptimizationTiers=1
begin names {workload} zoo
unset DOTNET_PerfMapEnabled DOTNET_PerfMapStubGranularity DOTNET_PerfMapShowOptimizationTiers
sleep 3; kill -STOP $pid; sleep 0.5
awk '$1 ~ /^(0x)?[0-9a-fA-F]+$/ && $2 ~ /^[0-9a-fA-F]+$/ && !/dynamicClass| stub/ {{print $1}}' /tmp/perf-$pid.map >/tmp/addresses
clrsampler names --pid $pid --without files --addresses /tmp/addresses >/out/names.starts 2>/out/names.err
clrsampler names --pid $pid --without files --random {addresses} >/out/names.random 2>>/out/names.err
cp /tmp/jit-$pid.dump /out/names.dump
end; rm -f /tmp/perf-* /tmp/jit-*
"""
# Addresses that ClrMD draws out of the JIT's code, and precompiled ones that the agent draws, as both name them. Stopped as well.
CLRMD = """
begin clrmd {workload} zoo
sleep 3; kill -STOP $pid; sleep 0.5
{oracle} $pid draw {addresses} 7 >/tmp/addresses
clrsampler names --pid $pid --without files --random {addresses} >/tmp/random 2>/out/clrmd.err
awk -F'\t' '$2 == "r2r" {{ print $1 }}' /tmp/random >>/tmp/addresses
clrsampler names --pid $pid --without files --addresses /tmp/addresses >/out/clrmd.names 2>>/out/clrmd.err
{oracle} $pid </tmp/addresses >/out/clrmd.truths
end
"""
# Commands that need nothing but a process; the last ones show the code of a method whose hot line is known.
LOOK = """
begin look {program}
clrsampler ps >/out/look.ps 2>&1
clrsampler doctor --pid $pid >/out/look.doctor 2>&1; echo $? >/out/look.status
clrsampler stacks --pid $pid >/out/look.stacks 2>&1
clrsampler --quiet --pid $pid --duration 1s --frequency 499 --code --output /out/look.json 2>/out/look.err
end
clrsampler annotate Hot.Dear /out/look.json >/out/look.text 2>>/out/look.err
"""
# Lines of the frames of threads that stand still.
LINES = """
begin lines-{number} env {environment} {program}
clrsampler stacks --pid $pid --json --names raw --lines >/out/lines-{number}.stacks 2>/out/lines-{number}.err
end
"""
# IL maps of precompiled methods, as ClrMD has them.
IMAGES = """
export DOTNET_TieredCompilation=0
begin images {workload} {mode}
unset DOTNET_TieredCompilation
sleep 3
{oracle} $pid il-maps >/out/images.{mode}
end
"""
# Allocations of a program in a time that it is told to, and says afterwards. A trap in an emulated processor costs many times what it costs
# elsewhere, so most are recorded without a limit.
ALLOCATIONS = """
converse {name} ^ready env {settings} {program} {rate}
observe "allocations of process" record --event alloc --hook-budget {budget} --output /out/{name}.folded --stats /out/{name}.stats
tell {seconds}
said total /out/{name}.target $pid
observed; hang_up
"""
# Exceptions that a program throws, as it is told to. --hook-budget 0 as above.
EXCEPTIONS = """
converse thrown rethrown {program}
observe "watching process" exceptions --json --hook-budget 0 --lines --rows 1000 >/out/thrown.json
tell throw {count} 200
tell kind null 5
tell kind rethrown 5
said ^ /out/thrown.target $pid 4
observed; hang_up
"""
THROWN = 400
# Events of the runtime's event stream. Without tiers nothing is compiled in the background, at the edge of the program's time.
EVENTS = """
export DOTNET_TieredCompilation=0
begin events {workload} events --count {count} --threads 4 --megabytes {megabytes}
unset DOTNET_TieredCompilation
echo $pid >/out/events.pid
clrsampler events --pid $pid --format json >/out/events.events 2>/out/events.err &
watched events {wait}
end
"""
TOLD = {"count": 100, "megabytes": 16}
# Waits for monitors of .NET 11 are not told at first. After so long all are, in this guest.
MANAGED_SOURCE_SECONDS = 30
# Waits of the threads of a program, for seconds that it is told to, and says afterwards. The first second is for what they compile.
WAITS = """
converse waits ^ready {program}
tell 1
said Waits.Program /out/waits.target $pid
observe . record --event off-cpu --wakers --output /out/waits.folded --stats /out/waits.stats
sleep 1
tell {seconds}
said Waits.Program /out/waits.target $pid 2
observed; hang_up
"""
WAITED_SECONDS = 5
# Threads that wait for each other for good. They stand where they will stay after some seconds.
LOCKS = """
converse locks ^ready {program} deadlock
sleep 10
clrsampler stacks --pid $pid --json >/out/locks.stacks 2>/out/locks.err
hang_up
"""
# A pool whose workers wait for tasks that need one, and one that has little to do.
POOLS = """
for mode in starved calm; do
  converse $mode ^ready {program} pool $mode
  sleep 20
  clrsampler threadpool --pid $pid -d 6s --json >/out/$mode.pool 2>/out/$mode.err
  hang_up
done
"""
# Chains of async methods. Their first calls are over when the recording begins.
CHAINS = """
begin {name} {program} 900 {mode}
kill -HUP $pid; sleep 8
record {name} --duration {seconds}s --async-stacks {options}
end
"""
# Kind of event -> mode of the program, seconds, options.
CHAIN_EVENTS = {"cpu": ("burn", 8, "--mark-suspension"), "alloc": ("burn", 4, "--event alloc --hook-budget 0"),
                "off-cpu": ("sleep", 12, "--event off-cpu --hook-budget 0")}


class Guest:
    """The files that one start of the machine has left."""

    def __init__(self, folder):
        self.folder = folder

    def bytes(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def text(self, name):
        return self.bytes(name).decode("utf-8", "replace")

    def result(self, name):
        # The machine's libc has no symbols.
        start = re.compile(rb"(?m)^((?:[^;\n]*;)?)libc\.so\.6!0x[0-9a-f]+;libc\.so\.6!0x[0-9a-f]+;")
        out = b"".join(sorted(start.sub(rb"\1clone;start_thread;", self.bytes(f"{name}.folded")).splitlines(keepends=True)))
        status, err, stats = int(self.text(f"{name}.status")), self.text(f"{name}.err"), self.text(f"{name}.stats")
        if not stats:
            raise AssertionError(f"{name} ended with status {status} and without statistics: {err}")
        return harness.Result(status, out, err, json.loads(stats), 0)

    def events(self, name):
        return [json.loads(line) for line in self.text(f"{name}.events").splitlines()]

    def waited_ns(self, name):
        """How long threads of the target waited for a CPU meanwhile."""
        before, after = ({int(tid): int(ns) for tid, ns in (line.split() for line in self.text(f"{name}.{when}").splitlines())}
                         for when in ("before", "after"))
        return sum(ns - before.get(tid, 0) for tid, ns in after.items())

    def truth(self, name, word="truth "):
        (line,) = [line for line in self.text(f"{name}.target").splitlines() if line.startswith(word)]
        return json.loads(line.removeprefix(word))


class Arm64LiveTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        if not os.access(AGENT, os.X_OK):
            raise harness.Missing(f"no {AGENT}: cmake --preset aarch64 && cmake --build --preset aarch64")
        for program in ("qemu-system-aarch64", "aarch64-linux-gnu-gcc"):
            if not shutil.which(program):
                raise harness.Missing(f"no `{program}` on PATH")

    def run_guest(self, version, script, suite=SUITE, env="", cpu=(), timeout=240, form=None):
        """`form`: the program as deployments publishes it, at /app/FORM; without it the programs of vm_programs, which share a runtime."""
        folder = tempfile.mkdtemp(prefix="clrsampler-test-")
        self.addCleanup(shutil.rmtree, folder)
        library = os.path.join(folder, "libshapes_native.so")
        subprocess.run(["aarch64-linux-gnu-gcc", "-O2", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-pthread",
                        os.path.join(runtimes.SOURCE, "tests", "apps", "shapes_native", "shapes_native.c"), "-o", library], check=True, timeout=60)
        try:
            if form:
                published = deployments.publish_folder(form, version, system="linux-arm64")
                parts = [*vm_programs.library_parts(), "--add", f"{published}:/app/{form}"]
            else:
                parts = vm_programs.parts(["workload", "shapes", "lines", "allocations", "exceptions", "waits", "oracle_names", "async_chains"],
                                          "aarch64", version)
                if version == async_callers.RUNTIME_ASYNC:
                    parts += self.runtime_async_parts(version, folder)
        except runtimes.Missing as reason:
            self.unavailable(str(reason))
        out = os.environ.get("CLRSAMPLER_VM_KEEP", folder)
        done = subprocess.run([os.path.join(runtimes.SOURCE, "tools", "kernel_matrix", "run_vm"), suite, "aarch64", *cpu, "--add", f"{AGENT}:/bin/clrsampler",
                               "--add", f"{library}:/app/libshapes_native.so", *parts, "--out", out, "--timeout", str(timeout), "--",
                               f"export {vm_programs.ENVIRONMENT} {env}\n{PRELUDE}{script}"], capture_output=True, text=True, timeout=timeout + 100)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-2000:])
        return Guest(out)

    @staticmethod
    def runtime_async_parts(version, folder):
        """async_chains with async methods of the runtime's, at /app/runtime_async."""
        copy = os.path.join(folder, "runtime_async")
        shutil.copytree(runtimes.with_app_host("async_chains", version, "linux-arm64"), copy)
        shutil.copy(runtimes.runtime_async_app(version, "async_chains"), copy)
        return ["--add", f"{copy}:/app/runtime_async"]

    @staticmethod
    def workload(mode=""):
        return " ".join([*vm_programs.command("workload", "aarch64"), mode]).strip()

    @staticmethod
    def culprit_script(seconds=3):
        """Compilations in the background would take the emulated processors' time: there are none, and the first ones are over."""
        program = " ".join(vm_programs.command("workload", "aarch64"))
        return ("export DOTNET_TieredCompilation=0\n"
                f"begin culprit {program} delay-suppress --native /app/libshapes_native.so\nunset DOTNET_TieredCompilation\nsleep {seconds}\n"
                "waits >/out/culprit.before\nwatch culprit pauses\nwaits >/out/culprit.after\nend\n")

    @staticmethod
    def look_script():
        return LOOK.format(program=" ".join(vm_programs.command("lines", "aarch64")))

    def names_script(self, program=None):
        return NAMES.format(workload=program or self.workload(), addresses=ADDRESSES)

    def clrmd_script(self):
        return CLRMD.format(workload=self.workload(), oracle=" ".join(vm_programs.command("oracle_names", "aarch64")), addresses=ADDRESSES // 2)

    def images_script(self, mode):
        return IMAGES.format(workload=self.workload(), mode=mode, oracle=" ".join(vm_programs.command("oracle_names", "aarch64")))

    def record_script(self, mode, seconds=6, *options, program=None):
        return f"begin {mode} {program or self.workload()} {mode}\nrecord {mode} --duration {seconds}s {' '.join(options)}\nend\n"

    @staticmethod
    def stacks_script(mode, seconds=4, options=""):
        program = " ".join(vm_programs.command("shapes", "aarch64"))
        return f"begin {mode} {program} {mode} --native /app/libshapes_native.so\nrecord {mode} --duration {seconds}s --max-frames 1024 {options}\nend\n"

    @staticmethod
    def lines_script():
        return "".join(LINES.format(number=number, environment=" ".join(f"{name}={value}" for name, value in environment.items()),
                                    program=" ".join(vm_programs.command("lines", "aarch64")))
                       for number, environment in enumerate(line_truth.WAYS.values()))

    def check_code(self, guest, what):
        """`annotate` has the samples of a method that is not optimised on its hot line, and on arm64 instructions below it."""
        text, hot = guest.text("look.text"), f"Program.cs:{line_truth.line_of('the hot line')}"
        self.assertEqual(guest.text("look.err"), "")
        head, *bodies = text.split("\n\n")[1:]
        total = sum(int(n) for n in re.findall(r"^ *(\d+) +[\d.]+%  \w+\.cs:", head, re.M))
        on_line = sum(int(n) for n in re.findall(rf"^ *(\d+) +[\d.]+%  {hot}\b", head, re.M))
        self.assertGreater(total, 20, text)
        self.assertLessEqual(total - on_line, stack_truth.allowed_faults(total, 0.99), head)
        instructions, line = [], None
        for row in "\n".join(bodies).splitlines():
            if found := re.match(r" +(\w+\.cs:\d+)", row):
                line = found[1]
            elif found := re.match(r" *(\d+) +[\d.]+%  [0-9a-f]{6}  (\w+)", row):
                instructions.append((line, int(found[1]), found[2]))
        self.assertEqual(sum(samples for _, samples, _ in instructions), total, text)
        self.assertEqual(sum(samples for at, samples, _ in instructions if at == hot), on_line, text)
        self.assertIn(", arm64, ", bodies[0])
        self.assertRegex(text, r"(?m)^ .{17}[0-9a-f]{6}  fdiv ")
        print(f"  {what}: {on_line} of {total} samples on the hot line, at {len(instructions)} instructions", flush=True)

    def check_unwinding(self, guest, name, what, least):
        """The unwind data in our jitdump says of each prologue what its instructions do. A method that replaces another one while it runs begins
        with that one's frame, of which its own instructions say nothing."""
        counts = collections.Counter()
        for method, code, frame in arm64_frames.jitdump_bodies(guest.bytes(f"{name}.jitdump")):
            self.assertIsNotNone(frame, method)
            counts["methods"] += 1
            for begin, end, rows in arm64_frames.eh_frame_functions(frame, len(code)):
                kept = rows[0][1][1] if begin == 0 and "OSR" in method else 0
                wrong, compared = arm64_frames.difference(code[begin:end], rows, kept)
                self.assertEqual(wrong, "", f"{method} {begin} {code[begin:end].hex()}")
                counts.update(functions=1, instructions=compared, replaces_another=kept > 0, signed=rows[-1][1][-1])
        print(f"  {what} {name}: unwind data in the jitdump is what the instructions do: {dict(counts)}", flush=True)
        self.assertGreater(counts["methods"], least)
        return counts

    def check_lines(self, guest, what):
        total = 0
        for number, way in enumerate(line_truth.WAYS):
            ours = {thread["tid"]: thread["frames"] for thread in map(json.loads, guest.text(f"lines-{number}.stacks").splitlines())}
            equal, silent, wrong = line_truth.compare(line_truth.told(guest.text(f"lines-{number}.target").splitlines()), ours)
            print(f"  {what} {way}: {equal} frames equal, {silent} without a line", flush=True)
            self.assertEqual(wrong, [])
            self.assertGreater(equal, 500, guest.text(f"lines-{number}.err"))
            self.assertLessEqual(silent, equal * 0.01)
            total += equal
        self.assertGreaterEqual(total, LINES_COMPARED)

    def check_images(self, guest, version):
        """The maps of precompiled methods are those that ClrMD has of the running program. Ours are read here: the images are the same files."""
        root = runtimes.root(version, "linux-arm64")
        pairs = 0
        for mode in il_maps_r2r.MODES:
            methods = il_maps_r2r.parse(guest.text(f"images.{mode}"))
            pairs += il_maps_r2r.compare(self, f"{version} {mode}", methods, lambda path: il_maps_r2r.read(path.replace(vm_programs.ROOT, root, 1)))["pairs"]
        self.assertGreaterEqual(pairs, il_maps_r2r.LEAST_PAIRS)

    @staticmethod
    def allocations_script(name="alloc", settings="", budget=0):
        return ALLOCATIONS.format(name=name, settings=settings, budget=budget, program=" ".join(vm_programs.command("allocations", "aarch64")), **ALLOCATED)

    def check_allocations(self, guest, what, name="alloc", within=0.02):
        """The bytes of a recording are those that the runtime counts, and most have a method and a type."""
        truth = json.loads(next(line for line in guest.text(f"{name}.target").splitlines() if "total" in line))
        self.assertEqual(guest.text(f"{name}.status").strip(), "0", guest.text(f"{name}.err"))
        stacks = [line.rsplit(" ", 1) for line in guest.text(f"{name}.folded").splitlines()]
        total = sum(int(count) for _, count in stacks)
        of_methods = sum(int(count) for stack, count in stacks if "Allocations.Program." in stack)
        typed = sum(int(count) for stack, count in stacks if not stack.endswith("[type not seen]"))
        print(f"  {what}: {total / 1e6:.2f} MB, the runtime counts {truth['total'] / 1e6:.2f} MB in {truth['took']:.1f} s; "
              f"{of_methods / total:.1%} in its methods, {typed / total:.1%} with a type", flush=True)
        # A report is of 100 KB, some of which may have been taken before; measured: 0.2 to 0.5 % too many.
        self.assertLess(abs(total / truth["total"] - 1), within, guest.text(f"{name}.err"))
        self.assertGreater(of_methods, 0.95 * total, guest.text(f"{name}.folded")[:3000])
        self.assertGreater(typed, 0.9 * total, guest.text(f"{name}.stats"))

    @staticmethod
    def exceptions_script():
        return EXCEPTIONS.format(program=" ".join(vm_programs.command("exceptions", "aarch64")), count=THROWN)

    def check_exceptions(self, guest, what):
        """All are counted, with their types and the methods that threw them, those of signals too."""
        self.assertEqual(guest.text("thrown.status").strip(), "0", guest.text("thrown.err"))
        told = json.loads(guest.text("thrown.json"))
        print(f"  {what}: {told['exceptions']} exceptions, {told['rethrown']} thrown again", flush=True)
        quarter = THROWN // 4
        self.assertEqual({row["name"]: row["count"] for row in told["types"]},
                         {"System.InvalidOperationException": quarter, "Exceptions.OutOfStock": quarter + 5, "Exceptions.Rejected<int>": quarter,
                          "System.TimeoutException": quarter, "System.NullReferenceException": 5})
        self.assertEqual({row["name"]: row["count"] for row in told["methods"]},
                         {"Exceptions.Program.Order": 2 * quarter, "Exceptions.Program.Pay": quarter, "Exceptions.Program.Ship": quarter,
                          "Exceptions.Program.NullReference": 5, "Exceptions.Program.Rethrown": 5})
        self.assertEqual((told["exceptions_seen"], told["rethrown"]), (THROWN + 10, 5))
        marked, seen = exception_lines.lines(), collections.Counter()
        for method, kind, line, file, _, count in exception_lines.throwers(told["stacks"]):
            if method in ("Order", "Pay", "Ship"):
                self.assertEqual((line, file), (exception_lines.line_of(marked, method, kind), "Program.cs"), (method, kind))
                seen[method] += count
        self.assertEqual(seen, {"Order": 2 * quarter, "Pay": quarter, "Ship": quarter})

    def events_script(self):
        return EVENTS.format(workload=self.workload(), wait=MANAGED_SOURCE_SECONDS, **TOLD)

    def check_events(self, guest, what):
        """Each kind as often as the program did it, with the types, the threads and the bytes."""
        self.assertEqual(guest.text("events.status").strip(), "0", guest.text("events.err"))
        truth = guest.truth("events")
        during = [event for event in guest.events("events") if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
        event_counts.check(self, what, truth, during, guest.text("events.err"), int(guest.text("events.pid")),
                           **TOLD)

    @staticmethod
    def waits_script():
        return WAITS.format(program=" ".join(vm_programs.command("waits", "aarch64")), seconds=WAITED_SECONDS)

    def check_waits(self, guest, what):
        """Each site has its time, the kind of its waits and who ends them."""
        self.assertEqual(guest.text("waits.status").strip(), "0", guest.text("waits.err"))
        _, truth = [json.loads(line) for line in guest.text("waits.target").splitlines() if line.startswith("[")]
        stacks = [(stack.split(";"), int(number)) for stack, _, number in (line.rpartition(" ") for line in guest.text("waits.folded").splitlines())]
        waits = json.loads(guest.text("waits.stats"))["waits"]
        print(f"  {what}: {waits}", flush=True)
        # Measured: 0.987 and more.
        wait_sites.check_sites(self, truth, stacks, waits, least=0.95)
        self.assertEqual(waits["records_lost"], 0)

    @staticmethod
    def locks_script():
        return LOCKS.format(program=" ".join(vm_programs.command("waits", "aarch64")))

    @staticmethod
    def pools_script():
        return POOLS.format(program=" ".join(vm_programs.command("waits", "aarch64")))

    def check_pools(self, guest, what):
        """The verdict is right, and so are the numbers that the pool keeps of itself."""
        starved, calm = (json.loads(guest.text(f"{mode}.pool") or guest.text(f"{mode}.err")) for mode in ("starved", "calm"))
        print(f"  {what}: {starved} {calm}", flush=True)
        self.assertEqual((starved["starved"], calm["starved"]), (True, False))
        site = starved["sites"][0]
        self.assertEqual((site["kind"], site["method"]), ("task wait", "Waits.Program.AnswersRequest"))
        self.assertGreaterEqual(site["workers"], 0.8 * starved["workers"])
        self.assertGreater(starved["pool"]["queued"], 0)
        self.assertEqual((calm["idle"], calm["pool"]["queued"]), (calm["workers"], 0))
        for pool in (starved, calm):
            self.assertEqual((pool["pool"]["min_workers"], pool["pool"]["max_workers"]), (2, thread_pool.UNLIMITED))

    def check_locks(self, guest, what):
        """Each thread that waits for a lock or a monitor has its holder, and the two that wait for each other are found."""
        threads = [json.loads(line) for line in guest.text("locks.stacks").splitlines()]
        told = lock_holders.told(threads)
        print(f"  {what}: {told}", flush=True)
        self.assertEqual(told, {**lock_holders.WAITS, **lock_holders.LOCK_WAITS}, guest.text("locks.err"))
        self.assertEqual({thread["comm"] for thread in threads if "deadlock" in thread}, set(lock_holders.METHODS))

    @staticmethod
    def chains_script(prefix, program):
        return "".join(CHAINS.format(name=f"{prefix}-{event}", program=program, mode=mode, seconds=seconds, options=options)
                       for event, (mode, seconds, options) in CHAIN_EVENTS.items())

    def check_chains(self, guest, prefix, what, share=async_callers.RIGHT):
        for event, (_, _, options) in CHAIN_EVENTS.items():
            with self.subTest(what, event=event):
                async_callers.check(self, f"{what} {event}", guest.result(f"{prefix}-{event}"), 200, share=share,
                                    stops_are_marked="--mark-suspension" in options)

    def watch_script(self, mode, command):
        return f"begin {mode} {self.workload(mode)}\nwatch {mode} {command}\nend\n"

    def check_names(self, guest, what):
        truths = names_oracle.JitdumpTruths(guest.bytes("names.dump"))
        kinds, unnamed, silent, compared = collections.Counter(), collections.Counter(), 0, 0
        for name in ("names.starts", "names.random"):
            rows = names_oracle.parse_rows(guest.text(name))
            self.assertGreater(len(rows), 500, guest.text("names.err"))
            comparison = names_oracle.Comparison(rows, truths)
            self.assertEqual(comparison.findings(), [], f"{what} {name}")
            self.assertGreater(sum(comparison.tiers.values()) - comparison.tiers[""], 500, comparison.tiers)
            print(f"  {what} {name}: {comparison.summary()}", flush=True)
            kinds += comparison.kinds
            unnamed += comparison.unnamed
            silent += sum(comparison.silent.values())
            compared += len(rows)
            if name == "names.starts":
                self.assertLessEqual(sum(comparison.unnamed.values()), 0.001 * len(rows) + 1, comparison.unnamed)
        self.assertGreater(min(kinds["jit"], kinds["r2r"]), 1000, kinds)
        self.assertLessEqual(silent, 0.01 * compared)
        print(f"  {what}: names of {compared} addresses, {dict(kinds)}; {silent} are not in the jitdump; unnamed {dict(unnamed)}", flush=True)
        return compared

    def check_clrmd(self, guest, what):
        """Type, method, generic arguments, token and module are those that Microsoft's debugger library says."""
        rows = names_oracle.parse_rows(guest.text("clrmd.names"))
        comparison = names_oracle.Comparison(rows, names_oracle.clrmd_truths(guest.text("clrmd.truths")))
        print(f"  {what} beside ClrMD: {comparison.summary()}", flush=True)
        self.assertEqual(comparison.findings(), [])
        self.assertGreater(comparison.kinds["jit"], ADDRESSES // 4, guest.text("clrmd.err"))
        self.assertGreater(comparison.kinds["r2r"], 500)
        self.assertLessEqual(sum(comparison.silent.values()), 0.01 * len(rows), comparison.silent)
        self.assertLessEqual(sum(comparison.unnamed.values()), stack_truth.allowed_faults(len(rows), 0.999), comparison.unnamed)
        return comparison.equal

    def check_named(self, guest, mode, what):
        result = guest.result(mode)
        self.check_result(result, minimum_samples=300)
        managed = result.stats["frames"]["managed"]
        total = managed["named"] + managed["unnamed"]
        print(f"  {what} {mode}: {managed}, {result.stats['frames']['unnamed_reasons']}; stacks {result.stats['stacks']}", flush=True)
        self.assertGreater(total, 1000, result)
        self.assertLessEqual(managed["unnamed"], stack_truth.allowed_faults(total, WORKLOADS[mode]), result.stats["frames"]["unnamed_reasons"])
        sources = result.stats["frames"]["by_source"]
        self.assertGreater(sources["memory"], 0, sources)
        self.assertEqual(sources["jitdump"] + sources["perf-map"], 0, sources)
        return result

    def check_stacks(self, guest, mode, what):
        result = guest.result(mode)
        profile = self.check_result(result, minimum_samples=300)
        verdict = stack_truth.judge(profile, stack_truth.Truth(guest.truth(mode, "chains ")))
        print(f"  {what} {mode}: {verdict}", flush=True)
        self.assertEqual((verdict.counts["invented"], verdict.counts["missing"]), (0, 0), f"{verdict}\n{verdict.worst()}")
        self.assertLessEqual(verdict.faults, stack_truth.allowed_faults(verdict.judged, STACKS_EXACT), f"{verdict}\n{verdict.worst()}")
        # An emulated processor takes its time to compile a program that has just started, in a thread without a chain.
        compiling = sum(count for stack, count in profile.stacks if any(frame.startswith("[jit") for frame in stack))
        self.assertGreater(verdict.judged, 0.9 * (profile.total - compiling), verdict)

    def check_pauses(self, guest, what):
        truth, pauses = guest.truth("pauses"), guest.events("pauses")
        self.assertEqual(guest.text("pauses.status").strip(), "0", guest.text("pauses.err"))
        collections_ = [p["generation"] for p in pauses if p["kind"] in ("blocking", "background-initial")]
        collections_ += [p["younger"]["generation"] for p in pauses if "younger" in p]
        counts = [sum(g >= generation for g in collections_) for generation in range(3)]
        print(f"  {what}: collections by generation {counts}, the runtime counts {truth['counts']}", flush=True)
        self.assertEqual(counts, truth["counts"], "GC.CollectionCount")

    def check_compilations(self, guest, what):
        truth, events = guest.truth("compile"), guest.events("compile")
        self.assertEqual(guest.text("compile.status").strip(), "0", guest.text("compile.err"))
        during = [e for e in events if "refused" not in e and truth["begin_ns"] <= e["time_ns"] <= truth["end_ns"]]
        tiers = collections.Counter(e["tier"] for e in during)
        named = sum(e["name_source"] != "none" for e in during)
        print(f"  {what}: {len(during)} compilations, {named} named, the runtime counts {truth['compiled']}; {dict(tiers)}", flush=True)
        self.assertEqual(len(during), truth["compiled"], "JitInfo.GetCompiledMethodCount")
        self.assertEqual(sum("refused" in e for e in events), truth["thrown"])
        self.assertGreaterEqual(named, 0.99 * len(during), collections.Counter(e["method"] for e in during if e["name_source"] == "none").most_common(5))
        self.assertTrue({"QuickJitted", "OptimizedTier1", "OptimizedTier1OSR", "Optimized"} <= set(tiers), tiers)

    def check_culprit(self, guest, what):
        pauses = guest.events("culprit")
        self.assertEqual(guest.text("culprit.status").strip(), "0", guest.text("culprit.err"))
        truth = {**guest.truth("culprit"), "waited_ns": guest.waited_ns("culprit")}
        print(f"  {what}: {len(pauses)} pauses, waited {truth['waited_ns'] / 1e6:.1f} ms, delays "
              f"{[(who, round(ns / 1e6, 1)) for who, ns in culprits.blame_of(pauses).most_common(5)]}", flush=True)
        self.assertEqual(sum(p["induced"] for p in pauses), truth["collections"])
        culprits.check_native_code_without_transition(self, truth, pauses, POLLING)

    def check_form(self, guest, form, what):
        """The same as check_named where there is no runtime beside the program."""
        mode, whole = FORMS[form]
        result = guest.result(mode)
        profile = self.check_result(result, minimum_samples=100)
        frames, stacks = result.stats["frames"], result.stats["stacks"]
        print(f"  {what} {form}: {frames['managed']}, {frames['by_source']}; stacks {stacks}", flush=True)
        self.check_managed_named(result, minimum=0.999)
        self.assertLessEqual(profile.total - stacks["complete"], stack_truth.allowed_faults(profile.total, whole), stacks)
        if form == "native-aot":
            self.assertGreater(sum(n for name, n in profile.frames("j").items() if name.startswith("Workload.Loops.")), 100)
            # Return probes are not planted there, so that the end of a suspension must be told otherwise.
            self.assertLess(frames.get("roles", {}).get("[suspending threads]", 0), 0.5 * profile.total)
        else:
            self.assertGreater(min(frames["by_source"]["r2r-image"], frames["by_source"]["memory"]), 200)

    def check_look(self, guest, version):
        self.assertRegex(guest.text("look.ps"), rf"lines .*{re.escape(version)}.*arm64")
        doctor = guest.text("look.doctor")
        self.assertEqual(guest.text("look.status").strip(), "0", doctor)
        self.assertIn(f".NET {version}, framework-dependent, arm64", doctor)
        self.assertRegex(doctor, r"(?m)^pass .*names: full \(memory, r2r\)")
        self.assertRegex(doctor, r"(?m)^pass .*pauses: can be seen, with the collections in them")
        stacks = guest.text("look.stacks")
        self.assertIn("Lines.", stacks)
        self.assertNotIn("[jit:", stacks)

    def test_one_start(self):
        script = (self.look_script() + self.names_script() + self.record_script("json", 3, "--no-hooks", "--output /out/json.jitdump") +
                  self.stacks_script("chains", 3) + self.watch_script("pauses", "pauses") + self.watch_script("compile", "jit") +
                  self.allocations_script() + self.exceptions_script())
        guest = self.run_guest(VERSION, script)
        with self.subTest("names"):
            self.assertGreater(self.check_names(guest, VERSION), 5000)
        with self.subTest("named"):
            self.check_named(guest, "json", VERSION)
        with self.subTest("unwind data"):
            self.check_unwinding(guest, "json", VERSION, least=50)
        with self.subTest("code"):
            self.check_code(guest, VERSION)
        with self.subTest("stacks"):
            self.check_stacks(guest, "chains", VERSION)
        with self.subTest("pauses"):
            self.check_pauses(guest, VERSION)
        with self.subTest("compilations"):
            self.check_compilations(guest, VERSION)
        with self.subTest("allocations"):
            self.check_allocations(guest, VERSION)
        with self.subTest("exceptions"):
            self.check_exceptions(guest, VERSION)
        with self.subTest("look"):
            self.check_look(guest, VERSION)


class Arm64MatrixTest(Arm64LiveTest):
    """All versions, each workload and each mode of shapes, signed return addresses, published programs, and all kernels."""

    test_one_start = None

    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not runtimes.MATRIX:
            raise harness.Missing("CLRSAMPLER_MATRIX=full runs this")

    def test_versions(self):
        compared = 0
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                script = (self.look_script() + self.names_script() + self.clrmd_script() + "".join(self.record_script(mode, 6, f"--output /out/{mode}.jitdump" if mode in WITH_CODE else "") for mode in WORKLOADS) +
                          self.watch_script("pauses", "pauses") + self.watch_script("compile", "jit") + self.allocations_script() + self.exceptions_script() +
                          self.culprit_script())
                guest = self.run_guest(version, script, timeout=600)
                compared += self.check_names(guest, version)
                with self.subTest("ClrMD"):
                    compared += self.check_clrmd(guest, version)
                for mode in WORKLOADS:
                    with self.subTest(mode=mode):
                        self.check_named(guest, mode, version)
                        if mode in WITH_CODE:
                            self.check_unwinding(guest, mode, version, least=50)
                with self.subTest("pauses"):
                    self.check_pauses(guest, version)
                with self.subTest("compilations"):
                    self.check_compilations(guest, version)
                with self.subTest("allocations"):
                    self.check_allocations(guest, version)
                with self.subTest("exceptions"):
                    self.check_exceptions(guest, version)
                with self.subTest("culprit"):
                    self.check_culprit(guest, version)
                with self.subTest("look"):
                    self.check_look(guest, version)
                    self.check_code(guest, version)
        self.assertGreaterEqual(compared, 20_000, "addresses that were compared")

    def test_waits_and_events(self):
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                own = not version.startswith("11.")  # its collector in a library of its own reports nothing
                guest = self.run_guest(version, self.waits_script() + self.events_script() + self.locks_script() + self.pools_script() +
                                       self.allocations_script("limited", budget=0.005) +
                                       (self.allocations_script("own", "DOTNET_GCName=libclrgc.so") if own else ""))
                with self.subTest("waits"):
                    self.check_waits(guest, version)
                with self.subTest("locks"):
                    self.check_locks(guest, version)
                with self.subTest("pools"):
                    self.check_pools(guest, version)
                with self.subTest("events"):
                    self.check_events(guest, version)
                with self.subTest("allocations that the probes do not see"):
                    # Some 60 MB are 600 reports, and a process is counted at times that this guest keeps badly. Measured: 0.947 to 1.027.
                    self.check_allocations(guest, f"{version} with a limit", "limited", within=0.1)
                    told = json.loads(guest.text("limited.stats"))["allocations"]
                    print(f"  {version}: probes saw {told['bytes'] / 1e6:.2f} MB, the runtime counted {told['counted_bytes'] / 1e6:.2f} MB", flush=True)
                    self.assertGreater(told["counted_bytes"], 0.3 * told["estimated_bytes"], told)
                if own:
                    with self.subTest("a collector of its own"):
                        self.check_allocations(guest, f"{version} with libclrgc.so", "own")

    def test_async_callers(self):
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                script = self.chains_script("machines", " ".join(vm_programs.command("async_chains", "aarch64")))
                by_runtime = version == async_callers.RUNTIME_ASYNC
                if by_runtime:
                    script += self.chains_script("runtime", "/app/runtime_async/async_chains")
                guest = self.run_guest(version, script, timeout=600)
                self.check_chains(guest, "machines", version)
                if by_runtime:
                    # Measured: 0.9992 and more in four runs, and 0.979 in a fifth. The cause of what is missing there is not known.
                    self.check_chains(guest, "runtime", f"{version} runtime async", share=0.97)

    def test_lines(self):
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                script = self.lines_script() + "".join(map(self.images_script, il_maps_r2r.MODES))
                guest = self.run_guest(version, script, timeout=600)
                self.check_lines(guest, version)
                self.check_images(guest, version)

    def test_stacks(self):
        for version in runtimes.ARM64_VERSIONS:
            for signed in (False, True):
                with self.subTest(version, signed=signed):
                    # pauth-impdef: the machine's own way to sign, which is fast to emulate.
                    script = "".join(self.stacks_script(mode, 6, f"--output /out/{mode}.jitdump") for mode in SHAPES)
                    guest = self.run_guest(version, script, env=SIGNED if signed else "", cpu=("--cpu", "max,pauth-impdef=on") if signed else (), timeout=500)
                    what, counts = f"{version}{' signed' if signed else ''}", collections.Counter()
                    for mode in SHAPES:
                        with self.subTest(mode=mode):
                            self.check_stacks(guest, mode, what)
                            counts += self.check_unwinding(guest, mode, what, least=3)
                    self.assertGreater(counts["replaces_another"], 0, counts)
                    # .NET 9 and 10 have no such setting.
                    self.assertEqual(counts["signed"] > 0, signed and version == runtimes.ARM64_VERSIONS[-1], counts)

    def test_deployments(self):
        """Programs that bring their runtime: in their own file, as one composite image, or as a part of their own code."""
        for form, (mode, _) in FORMS.items():
            with self.subTest(form):
                program = f"/app/{form}/workload"
                script = self.record_script(mode, 6, program=program)
                if form != "native-aot":
                    script += self.names_script(program)
                guest = self.run_guest(VERSION, script, timeout=400, form=form)
                self.check_form(guest, form, VERSION)
                if form != "native-aot":
                    self.check_names(guest, f"{VERSION} {form}")

    def test_kernels(self):
        for suite in SUITES:
            with self.subTest(suite):
                guest = self.run_guest(VERSION, self.record_script("json") + self.stacks_script("chains") + self.watch_script("compile", "jit"), suite=suite)
                self.check_named(guest, "json", suite)
                self.check_stacks(guest, "chains", suite)
                self.check_compilations(guest, suite)


if __name__ == "__main__":
    harness.main()
