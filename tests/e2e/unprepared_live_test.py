#!/usr/bin/env python3
"""Processes that were started with nothing special are named: every kind of work, every environment, also short lives.

The targets get no environment variable but the one that a test is about. 99.9 % of the managed frames must have a name, JIT-compiled and
precompiled ones each for itself; 99 % where thousands of methods a second are compiled and freed. Nothing may be left behind in the target's
file system, and no perf map or jitdump may be the source.
"""
import glob
import os
import re
import subprocess
import tempfile
import time

import folded
import harness
import runtimes
import stack_truth

VERSIONS = runtimes.selected()
STEADY = 0.999
CHURNING = 0.99
# The share for a process that lives for half a second: what it compiles in its last moments is gone with it, unless it was read before.
SHORT_LIVED = 0.95
FREQUENCY = "499"

# Mode -> (share that must be named, patterns of frames that the work can't do without). Wrong names would not match.
WORKLOADS = {
    "json": (STEADY, (r"^System\.Text\.Json\.", r"^Workload\.Loops\.(Json|Orders)")),
    "regex": (STEADY, (r"^System\.Text\.RegularExpressions\.", r"^Workload\.Loops\.RegexMatch", r"^\[dynamic\] .*Regex")),
    "linq": (STEADY, (r"^System\.Linq\.Enumerable", r"^Workload\.Loops\.(Linq|Orders)")),
    "async": (STEADY, (r"^Workload\.Loops\..*AsyncInner", r"^System\.Threading\.ThreadPoolWorkQueue\.")),
    "web": (STEADY, (r"^Microsoft\.AspNetCore\.Server\.Kestrel\.", r"^System\.Net\.Http\.", r"^Web\.")),
    "zoo": (STEADY,  # loads and emits collectible assemblies in a loop
             (r"^Zoo\.Exhibits\.Round", r"^Zoo\.Generics\.Same", r"^Zoo\.Shapes\.LongLoop")),
    "mix": (STEADY, (r"^System\.Text\.Json\.", r"^System\.Linq\.", r"^Workload\.Loops\.")),
    "methods": (STEADY, (r"^Workload\.MethodsMode\.Step",)),
    "expr": (CHURNING, (r"^System\.Linq\.Expressions\.", r"^\[dynamic\] Polynomial")),
    "jit": (CHURNING, (r"^\[dynamic\] Emitted\d+$", r"^Workload\.Loops\.JitMethods")),
}

# The workloads that differ most: in kinds of code, and in how fast it comes and goes.
CHOSEN_WORKLOADS = ("regex", "async", "web", "zoo", "mix", "jit")

# Name -> (version, environment). Each is a reason for which other ways of getting names fail or change.
ENVIRONMENTS = {
    "TieredCompilation=0": ("8.0.30", {"DOTNET_TieredCompilation": "0"}),
    "TieredPGO=0": ("9.0.19", {"DOTNET_TieredPGO": "0"}),
    "EnableWriteXorExecute=0": ("10.0.14", {"DOTNET_EnableWriteXorExecute": "0"}),
    "ReadyToRun=0": ("9.0.19", {"DOTNET_ReadyToRun": "0"}),
    "EnableDiagnostics=0, 8": ("8.0.30", {"DOTNET_EnableDiagnostics": "0"}),
    "EnableDiagnostics=0, 10": ("10.0.14", {"DOTNET_EnableDiagnostics": "0"}),
    "gcServer=1": ("8.0.30", {"DOTNET_gcServer": "1"}),
    "gcServer=1, 10": ("10.0.14", {"DOTNET_gcServer": "1"}),
    "GCName=libclrgc.so": ("9.0.19", {"DOTNET_GCName": "libclrgc.so"}),
    "gcConcurrent=1": ("10.0.14", {"DOTNET_gcConcurrent": "1"}),
}
CHOSEN_ENVIRONMENTS = ("EnableWriteXorExecute=0", "EnableDiagnostics=0, 10")

# Variables that the targets are started with besides. A test of this file's own checks may set them.
PREPARATION = {}
MEMORY_SOURCES = ("memory",)
MAP_SOURCES = ("jitdump", "perf-map", "r2rmap")


def start(version, mode, *arguments, env=None, prefix=()):
    command, additions = runtimes.command(version, mode, *map(str, arguments), program="web" if mode == "web" else "workload")
    return harness.Target([*prefix, *command], env={**additions, **PREPARATION, **(env or {})})


class UnpreparedTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Unprepared means unprepared, whatever the shell that runs the tests has set.
        for name in [n for n in os.environ if n.startswith(("DOTNET_", "COMPlus_")) and n not in runtimes.QUIET and n != "DOTNET_ROOT"]:
            del os.environ[name]

    def record(self, target, cpu_seconds=3):
        agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", FREQUENCY))
        agent.wait_until_sampling()
        # Samples follow the CPU time that the target gets; on a crowded machine it takes longer to get enough of them.
        target.use_cpu(cpu_seconds)
        agent.interrupt()
        return agent.finish(120)

    def check_named(self, result, least, version, minimum_frames=1000):
        profile = self.check_result(result, minimum_samples=200)
        sources, reasons = result.stats["frames"]["by_source"], dict(result.stats["frames"]["unnamed_reasons"])
        managed = result.stats["frames"]["managed"]
        total = managed["named"] + managed["unnamed"]
        self.assertGreaterEqual(total, minimum_frames, f"too few managed frames for a statement\n{result}")
        worst = dict(sorted(((r, n) for r, n in reasons.items() if r.startswith(("[jit", "[r2r", "[clr"))), key=lambda x: -x[1])[:10])
        # `least` is the share that it names; a test of a thousand finds more without a name by chance.
        self.assertLessEqual(total - managed["named"], stack_truth.allowed_faults(total, least), f"of {total}: {worst}\n{result.err[-2000:]}")
        for kind, names in (("jit", MEMORY_SOURCES + MAP_SOURCES), ("r2r", ("r2r-image",))):
            named = sum(sources.get(name, 0) for name in names)
            unnamed = sum(count for reason, count in reasons.items() if reason.startswith(f"[{kind}"))
            if named + unnamed >= minimum_frames:
                self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, least), f"{kind}: of {named + unnamed}: {worst}")
        if not PREPARATION:
            self.assertGreater(sum(sources.get(name, 0) for name in MEMORY_SOURCES), 0, result)
            self.assertEqual({n: sources[n] for n in MAP_SOURCES if sources.get(n)}, {}, "a map was read that nobody asked for")
        (process,) = [p for p in result.stats["processes"] if p["runtime"]]
        self.assertEqual(process["runtime"], runtimes.number(version))
        return profile

    def check_expected(self, profile, patterns, result):
        for pattern in patterns:
            # The rarest is in 5 of 1,000 samples of a CPU: of the 3,000 of `zoo` none has it in one of e^15 runs.
            self.assertGreater(profile.with_frame(re.compile(pattern).search), 0, f"no frame matches {pattern}\n{result}\n"
                               + "\n".join(f"{c} {f}" for f, c in profile.frames("j").most_common(25)))

    def check_nothing_left(self, pid, since):
        """since: a wall clock. A process that had this number before, hours ago, may have left its files."""
        files = [file for pattern in ("perf-{}.map", "jit-{}.dump", "perfinfo-{}.map") for file in glob.glob("/tmp/" + pattern.format(pid))]
        if not PREPARATION:
            self.assertEqual([file for file in files if os.stat(file).st_mtime >= since], [])

    def test_workloads(self):
        # One of the versions for each kind of work, and all of them in the matrix.
        for number, mode in enumerate(WORKLOADS if runtimes.MATRIX else CHOSEN_WORKLOADS):
            least, patterns = WORKLOADS[mode]
            for version in VERSIONS if runtimes.MATRIX else (VERSIONS[number % len(VERSIONS)],):
                with self.subTest(version=version, mode=mode):
                    self.need_runtime(version)
                    since = time.time() - 1  # file times are those of the last clock tick
                    with start(version, mode, "--seconds", 60) as target:
                        result = self.record(target, cpu_seconds=6 if mode == "zoo" else 3)
                        self.check_nothing_left(target.host_pid, since)
                    profile = self.check_named(result, least, version)
                    self.check_expected(profile, patterns, result)

    def test_prepared_and_unprepared_have_the_same_names(self):
        """Methods that a jitdump names and methods that memory names read alike. Stubs are there in each run. Some methods are not: they are
        inlined once their caller is compiled anew, or where its precompiled code could not be used: 0.06 % of the frames of web, 0.1 % of mix."""
        for mode in WORKLOADS if runtimes.MATRIX else ("web",):
            for version in VERSIONS if runtimes.MATRIX else runtimes.newest():
                with self.subTest(version=version, mode=mode):
                    self.need_runtime(version)
                    sides = []
                    for preparation in ({}, {"DOTNET_PerfMapEnabled": "1"}):
                        with start(version, mode, "--seconds", 60, env=preparation) as target:
                            sides.append(self.record(target, cpu_seconds=6))
                    unprepared, prepared = (side.stats["frames"]["by_source"] for side in sides)
                    self.assertGreater(unprepared.get("memory", 0), 1000)
                    self.assertEqual(unprepared.get("jitdump", 0) + unprepared.get("perf-map", 0), 0)
                    self.assertGreater(prepared.get("jitdump", 0) + prepared.get("perf-map", 0), 1000)
                    alone, total = {}, 0
                    for one, other in (sides, reversed(sides)):
                        frames, there = one.profile.frames("j"), other.profile.frames("j")
                        total += sum(frames.values())
                        # A frame that has 30 expected samples has none in one of e^30 runs.
                        least = 30 * one.profile.total / other.profile.total
                        alone.update({f: n for f, n in frames.items() if n >= least and f not in there and not folded.is_unnamed(f)})
                    self.assertEqual({f: n for f, n in alone.items() if f.startswith("[stub ")}, {})
                    self.assertLessEqual(sum(alone.values()), 0.002 * total, alone)

    def test_environments(self):
        for name in ENVIRONMENTS if runtimes.MATRIX else CHOSEN_ENVIRONMENTS:
            version, env = ENVIRONMENTS[name]
            with self.subTest(name, version=version):
                self.need_runtime(version)
                with start(version, "mix", "--seconds", 60, "--threads", 2, env=env) as target:
                    result = self.record(target)
                profile = self.check_named(result, STEADY, version)
                self.check_expected(profile, WORKLOADS["mix"][1], result)

    def test_temporary_folder_elsewhere(self):
        version = runtimes.INSTALLED
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            with start(version, "mix", "--seconds", 60, env={"TMPDIR": folder}) as target:
                result = self.record(target)
            self.check_named(result, STEADY, version)
            self.assertEqual(glob.glob(f"{folder}/perf*") + glob.glob(f"{folder}/jit*"), [])

    def test_read_only_temporary_folder(self):
        # The checkout may itself lie below /tmp, so the whole of /tmp stays visible.
        prefix = ("unshare", "--mount", "sh", "-ec", 'mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp; exec "$@"', "sh")
        for version in runtimes.newest():
            with self.subTest(version), start(version, "mix", "--seconds", 60, prefix=prefix) as target:
                self.check_named(self.record(target), STEADY, version)

    def test_namespaces(self):
        flags = {
            "pid and mount": ["--pid", "--mount", "--fork", "--mount-proc"],
            "user": ["--user", "--map-root-user", "--pid", "--mount", "--fork", "--mount-proc"],
            "time": ["--time", "--monotonic", "100000", "--boottime", "100000", "--fork"],
            "all": ["--user", "--map-root-user", "--pid", "--mount", "--ipc", "--uts", "--net", "--cgroup", "--time", "--monotonic",
                    "5000", "--fork", "--mount-proc"],
        }
        for number, name in enumerate(flags if runtimes.MATRIX else ("user", "all")):
            options = flags[name]
            version = VERSIONS[number % len(VERSIONS)]
            with self.subTest(name, version=version):
                if subprocess.run(["unshare", *options, "true"], capture_output=True, timeout=300).returncode:
                    print(f"SKIPPED {name}: unshare {' '.join(options)} does not work here", flush=True)
                    continue
                with start(version, "mix", "--seconds", 60, prefix=["unshare", *options]) as target:
                    target.host_pid = harness.Target._only_child(target.process.pid)
                    self.check_named(self.record(target), STEADY, version)

    def test_short_lives(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.need_runtime(version)
                command, additions = runtimes.command(version, "startup", "--seconds", "0.4")
                one = " ".join(command)
                # An agent that waits for a CPU comes too late to a process of half a second; not three times in a row.
                for _ in range(3):
                    result = harness.record("--frequency", "999", "--", "sh", "-c", f"{one} && {one} && {one}", env={**additions, **PREPARATION})
                    profile = self.check_result(result, minimum_samples=300)
                    managed = result.stats["frames"]["managed"]
                    frames = managed["named"] + managed["unnamed"]
                    if managed["unnamed"] <= stack_truth.allowed_faults(frames, SHORT_LIVED):
                        break
                self.assertLessEqual(managed["unnamed"], stack_truth.allowed_faults(frames, SHORT_LIVED), result)
                self.check_expected(profile, (r"^System\.", r"^Workload\.(Loops|StartupMode)\."), result)
                self.assertEqual(sum(1 for p in result.stats["processes"] if p["runtime"]), 3, result)

    def test_many_processes_at_once(self):
        with start("8.0.30", "json", "--seconds", 60) as a, start("9.0.19", "linq", "--seconds", 60) as b, \
             start("10.0.14", "expr", "--seconds", 60) as c, start(runtimes.INSTALLED, "async", "--seconds", 60) as d:
            pids = {t.host_pid for t in (a, b, c, d)}
            result = harness.record("--duration", "5s", "--frequency", FREQUENCY)
        profile = self.check_result(result, minimum_samples=500)
        seen = {p["pid"] for p in result.stats["processes"] if p["runtime"]}
        self.assertLessEqual(pids, seen, "not each process was recognised")
        roots = {pid: [0, 0] for pid in pids}
        for frames, count in profile.stacks:
            pid = int(re.search(r"-(\d+)$", frames[0]).group(1)) if re.search(r"-(\d+)$", frames[0]) else None
            if pid in roots:
                for frame in frames[1:]:
                    if frame.endswith("_[j]"):
                        roots[pid][folded.is_unnamed(frame)] += count
        for pid, (named, unnamed) in roots.items():
            self.assertGreater(named + unnamed, 500, f"{pid}: {roots}")
            least = CHURNING if pid == c.host_pid else STEADY
            self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, least), f"{pid}: {roots}\n{result}")

    def test_started_while_the_profiler_runs(self):
        agent = harness.Agent(["--frequency", FREQUENCY])
        agent.wait_until_sampling()
        with start(runtimes.INSTALLED, "mix", "--seconds", 120) as target:
            target.use_cpu(3)
            agent.interrupt()
            result = agent.finish(120)
            pid = target.host_pid
        self.check_result(result, minimum_samples=200)
        (process,) = [p for p in result.stats["processes"] if p["pid"] == pid]
        self.assertEqual(process["runtime"], runtimes.installed_version())
        of_target = [(f, c) for f, c in result.profile.stacks if f[0].endswith(f"-{pid}")]
        frames = [(f, c) for stack, c in of_target for f in stack if f.endswith("_[j]")]
        total, unnamed = sum(c for _, c in frames), sum(c for f, c in frames if folded.is_unnamed(f))
        self.assertGreater(total, 500)
        # Its first moments, in which the runtime is still starting.
        self.assertLessEqual(unnamed, stack_truth.allowed_faults(total, CHURNING), result)


if __name__ == "__main__":
    harness.main()
