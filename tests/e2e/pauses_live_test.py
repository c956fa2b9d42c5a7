#!/usr/bin/env python3
"""`clrsampler pauses` against the runtime's own word: how many collections there were, of which generation and kind.

The test judges too how long the process stood still for them, and which thread delayed that.
"""
import collections
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import culprits
import deployments
import harness
import runtimes
from watcher import Watcher, changed_code, goes_on, truth_of

VERSIONS = runtimes.selected()
NATIVE = os.environ.get("SHAPES_NATIVE", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps", "libshapes_native.so"))
FIELDS = ("time_ns", "pid", "reason", "kind", "induced", "suspend_ns", "pause_ns", "thread", "culprits")
KINDS = {"blocking": "gc", "background-initial": "gc", "background-final": "gc-preparation", "heap-count-change": "gc-preparation"}
BIAS_NS = 100_000  # measured: 4 to 40 us, and a probe takes 1
COLLECTIONS = ("blocking", "background-initial")  # one pause of these kinds for each collection


class Pauses(Watcher):
    def __init__(self, pid, *arguments):
        super().__init__("pauses", pid, *arguments)


def waits(pid):
    """How long each thread of a process was ready to run while others had the CPU (sched-stats: the second number)."""
    waited = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat") as f:
            waited[int(thread)] = int(f.read().split()[1])
    return waited


def start_target(version, arguments, env):
    return harness.workload(version, *arguments, env=env)


def watched(version, mode, *arguments, env=None, form=None, start=start_target):
    """(the target's truth, and what it and its main thread waited for a CPU; pauses while it ran; its pid)"""
    arguments = [mode, "--seconds", 120, *arguments]
    if form:
        def start(version, arguments, env):
            return harness.Target([*deployments.publish(form, version), *map(str, arguments)], env=env)
    with start(version, arguments, env) as target, Pauses(target.host_pid) as pauses:
        before = waits(target.host_pid)
        target.signal(signal.SIGHUP)
        truth = truth_of(target)
        waited = {thread: ns - before.get(thread, 0) for thread, ns in waits(target.host_pid).items()}
        truth["waited_ns"], truth["main_waited_ns"] = sum(waited.values()), waited[target.host_pid]
        return truth, pauses.finish(), target.host_pid


class PauseTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_lines(self, pauses, pid):
        for pause in pauses:
            for field in FIELDS:
                self.assertIn(field, pause)
            for field in ("time_ns", "suspend_ns", "pause_ns", "thread"):
                self.assertIsInstance(pause[field], int, pause)
            self.assertIsInstance(pause["induced"], bool, pause)
            self.assertEqual(pause["pid"], pid, pause)
            self.assertLessEqual(pause["suspend_ns"], pause["pause_ns"], pause)
            if pause["kind"] in KINDS:
                self.assertEqual(pause["reason"], KINDS[pause["kind"]], pause)
            self.assertEqual("generation" in pause, pause["kind"] in (*COLLECTIONS, "background-final"), pause)
            for culprit in pause["culprits"]:
                self.assertEqual(sorted(culprit), ["delay_ns", "method", "tid"], pause)
                self.assertNotEqual(culprit["tid"], pause["thread"], "who asks does not delay")
            self.assertLessEqual(sum(c["delay_ns"] for c in pause["culprits"]), pause["suspend_ns"], pause)


class TruthTest(PauseTest):
    start_target = staticmethod(start_target)

    def check(self, version, env, server=False, background=True, form=None):
        truth, pauses, pid = watched(version, "pauses", env=env, form=form, start=self.start_target)
        self.assertEqual(truth["server"], server, "the target does not run what this is about")
        told_background = [index for index, _, concurrent, *_ in truth["seen"] if concurrent]
        self.assertEqual(len(told_background) > 0, background, truth)
        self.check_lines(pauses, pid)
        for pause in pauses:
            self.assertIn(pause["kind"], KINDS, "nothing but collections happened")
            self.assertTrue(truth["begin_ns"] <= pause["time_ns"] and pause["time_ns"] + pause["pause_ns"] <= truth["end_ns"] or
                            pause["kind"] == "heap-count-change", pause)
        kinds = collections.Counter(pause["kind"] for pause in pauses)
        # One that goes on in the background may collect a younger generation first.
        younger = [pause["younger"] for pause in pauses if "younger" in pause]
        generations = [p["generation"] for p in pauses if p["kind"] in COLLECTIONS] + [y["generation"] for y in younger]
        self.assertEqual([sum(g >= generation for g in generations) for generation in range(3)], truth["counts"],
                         f"GC.CollectionCount: {kinds}, {len(younger)} before one in the background")
        self.assertEqual(kinds["background-initial"], len(told_background))
        self.assertEqual(kinds["background-final"], len(told_background))

        by_index = {p["gc_index"]: p for p in pauses if "gc_index" in p}
        self.assertEqual(len(by_index), kinds["blocking"], "each index once")
        told = {index: rest for index, generation, concurrent, *rest in truth["seen"] if not concurrent for rest in [(generation, *rest)]}
        self.assertGreater(len(told), truth["collects"] // 2, truth)
        self.assertEqual({generation for generation, *_ in told.values()}, {0, 1, 2})
        differences = []
        for index, (generation, induced, pause_ns) in told.items():
            beside = [y for y in younger if y["gc_index"] == index]
            if beside:
                self.assertEqual([y["generation"] for y in beside], [generation])
                continue
            pause = by_index[index]
            self.assertEqual((pause["kind"], pause["generation"]), ("blocking", generation), pause)
            differences.append(pause["pause_ns"] - pause_ns)
            if induced == 1:
                self.assertTrue(pause["induced"], pause)
                self.assertIn("induced", pause["gc_reason"], pause)
        for index in told_background:
            self.assertNotIn(index, by_index, "a background collection is no blocking one")
        induced = collections.Counter(p["kind"] for p in pauses if p["induced"])
        self.assertEqual(induced["blocking"], truth["collects"] - truth["background"],
                         f"{truth} {[(p['kind'], p.get('gc_index'), p.get('generation'), p['induced']) for p in pauses]}")
        # Why a background collection is made is not always known as it begins.
        self.assertLessEqual(induced["background-initial"], truth["background"])
        self.assertEqual(set(induced) - set(COLLECTIONS), set())
        self.assertGreater(len(generations), truth["collects"], "none came from allocation")

        stood = sum(p["pause_ns"] for p in pauses if p["kind"] != "heap-count-change")
        count = len(pauses) - kinds["heap-count-change"]
        quarter, difference, _ = statistics.quantiles(differences, n=4)
        print(f"    {version} {env}: {dict(kinds)}, {len(younger)} younger, {len(told)} indices; GetTotalPauseDuration {truth['pause_ns'] / 1e6:.1f} ms, "
              f"seen {stood / truth['pause_ns']:.4f} of it ({(stood - truth['pause_ns']) / count / 1e3:+.1f} us a pause, first quarter up to {quarter / 1e3:+.1f}, median {difference / 1e3:+.1f}); "
              f"waited {truth['waited_ns'] / 1e6:.1f} ms", flush=True)
        # The runtime's own figure ends before it lets the threads go. In between a server's threads wait for each other, and on a crowded
        # machine any thread for a CPU. So any number of pauses end one turn of the scheduler later, 2.8 ms. The others tell how exact the probes are.
        waited = truth["waited_ns"] if server else truth["main_waited_ns"]
        bias = BIAS_NS * harness.slowness()
        late = sum(max(0, d - bias) for d in differences)
        exact = (0.05 if server else 0.02) * truth["pause_ns"]
        self.assert_within(abs(stood - late - truth["pause_ns"]), exact + (waited if server else 0), "GC.GetTotalPauseDuration")
        self.assert_within(abs(quarter if server else difference), bias, "GCMemoryInfo.PauseDurations")
        self.assert_within(late, waited + (0 if server else exact), "what only waiting for a CPU may add")

    def each(self, env, versions=VERSIONS, **expected):
        for version in versions:
            with self.subTest(version=version, env=env):
                self.need_runtime(version)
                self.check(version, env, **expected)

    def test_workstation(self):
        self.each({"DOTNET_gcConcurrent": "1"}, versions=dict.fromkeys((*VERSIONS, runtimes.INSTALLED)))

    def test_workstation_not_concurrent(self):
        self.each({"DOTNET_gcConcurrent": "0"}, background=False)

    def test_server(self):
        self.each({"DOTNET_gcServer": "1", "DOTNET_gcConcurrent": "1"}, server=True)

    def test_server_not_concurrent(self):
        self.each({"DOTNET_gcServer": "1", "DOTNET_gcConcurrent": "0"}, server=True, background=False)

    def test_collector_in_a_library_of_its_own(self):
        self.each({"DOTNET_GCName": "libclrgc.so", "DOTNET_gcConcurrent": "1"})

    def test_experimental_collector(self):
        newer = [version for version in VERSIONS if int(runtimes.number(version).split(".")[0]) >= 9]
        self.each({"DOTNET_GCName": "libclrgcexp.so", "DOTNET_gcConcurrent": "1"}, versions=newer)


class SingleFileTest(TruthTest):
    """The same where runtime and collector are in the program's own file. Publishing takes a minute the first time."""

    def each(self, env, versions=VERSIONS, **expected):
        if "DOTNET_GCName" in env:
            return  # a collector of its own would be beside the program
        super().each(env, versions, form="single-file", **expected)


class NativeAotTest(TruthTest):
    """The same in programs without a JIT, whose functions are found by their debug file. Only what a native collector can do."""

    def each(self, env, versions=VERSIONS, **expected):
        if "DOTNET_GCName" in env or "DOTNET_gcServer" in env:
            return  # of such a program a matter of publishing
        super().each(env, [version for version in runtimes.PACKED_VERSIONS if not version.startswith("10.")], form="native-aot", **expected)


class CulpritTest(PauseTest):
    @classmethod
    def check_needs(cls):
        super().check_needs()
        if not os.access(NATIVE, os.R_OK):
            raise harness.Missing(f"no library at {NATIVE}; build it, or name it in SHAPES_NATIVE")

    def run_mode(self, version, mode, induced_only=False):
        self.need_runtime(version)
        truth, pauses, pid = watched(version, mode, "--native", NATIVE)
        self.check_lines(pauses, pid)
        induced = [p for p in pauses if p["induced"]]
        if induced_only:
            # One that is asked for while another is being made is that one.
            self.assertTrue(0.8 * truth["collections"] <= len(induced) <= truth["collections"], len(induced))
            pauses = induced
        else:
            self.assertEqual(len(induced), truth["collections"])
        mean = sum(p["suspend_ns"] for p in pauses) / len(pauses)
        blame = culprits.blame_of(pauses)
        print(f"    {version} {mode}: mean {mean / 1e6:.3f} ms of {len(pauses)}, at most {max(p['suspend_ns'] for p in pauses) / 1e6:.3f} ms; waited {truth['waited_ns'] / 1e6:.1f} ms, who asked {truth['main_waited_ns'] / 1e6:.1f} ms; blamed: " +
              (", ".join(f"{who} ({tid}) {delay / 1e6:.1f} ms" for (who, tid), delay in blame.most_common(5)) or "nobody"), flush=True)
        return truth, pauses, mean, blame

    def test_native_code_without_transition(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                truth, pauses, _, _ = self.run_mode(version, "delay-suppress")
                culprits.check_native_code_without_transition(self, truth, pauses)

    def test_clearing_of_large_arrays(self):
        """The runtime clears them in libc, called by the method that makes them."""
        for version in VERSIONS:
            with self.subTest(version=version):
                # Natural collections come from the allocations themselves: only those that the other thread asks for can be delayed by it.
                self.check_guilty(*self.run_mode(version, "delay-large", induced_only=True), "PauseMode.MakeLargeArrays", least_ns=0.5e6)

    def test_fill_on_net8(self):
        """Native code without a transition again, of the runtime's own: a thread that is always in it is not stopped for up to half a minute."""
        if os.environ.get("CLRSAMPLER_MATRIX") != "full":
            return  # for the minute that it takes
        truth, pauses, mean, blame = self.run_mode("8.0.30", "delay-fill")
        self.check_guilty(truth, pauses, mean, blame, "PauseMode.FillBytes", least_ns=50e6)
        self.assertGreater(max(p["suspend_ns"] for p in pauses), 100e6, "the case did not come up")

    def check_guilty(self, truth, pauses, _mean, _blame, method, least_ns):
        """95 % of the delays of so long and longer, which have samples in them, are that method's on the other thread."""
        total = guilty = 0
        for pause in pauses:
            if pause["suspend_ns"] < least_ns:
                continue
            for culprit in pause["culprits"]:
                total += culprit["delay_ns"]
                if culprit["method"].split("(")[0].endswith(method) and culprit["tid"] == truth["thread"]:
                    guilty += culprit["delay_ns"]
        print(f"    {guilty / 1e6:.1f} of {total / 1e6:.1f} ms are {method}'s", flush=True)
        self.assertGreater(total, 0, "nothing was delayed")
        self.assertGreaterEqual(guilty, 0.95 * total)

    def test_what_delays_nobody(self):
        for mode in ("delay-idle", "delay-sleep", "delay-pinvoke", "delay-copy"):
            for version in runtimes.newest():
                with self.subTest(version=version, mode=mode):
                    truth, pauses, _, _ = self.run_mode(version, mode)
                    # Under a millisecond is scheduling. More is too, where a thread has no CPU: the one that asks, or one that is to stop.
                    delays = [c["delay_ns"] for pause in pauses for c in pause["culprits"] if c["delay_ns"] >= 1e6]
                    self.assert_within(sum(delays), truth["waited_ns"] if delays else 0, f"{delays} of {len(pauses)}")
                    self.assertLessEqual(len(delays), len(pauses) // 10, delays)


class ContainersTest(PauseTest):
    """Containers of one image: each has an overlayfs of its own, with one runtime below them all."""

    def hooked(self, options="", change=None):
        """How many images are hooked for one container, and for it and another one. `change`: what each does to its runtime's files."""
        version = VERSIONS[-1]
        self.need_runtime(version)
        (dotnet, *arguments), env = runtimes.command(version, "gc", "--seconds", "60")
        root = os.path.dirname(dotnet)
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, contextlib.ExitStack() as stack:
            targets, devices = [], set()
            # A file with several names gets another inode where it is copied up. Those of an image have one name.
            lower = shutil.copytree(root, os.path.join(folder, "lower"))
            for name in "ab":
                merged, upper, work = (os.path.join(folder, name + part) for part in ("", "-upper", "-work"))
                for path in (merged, upper, work):
                    os.mkdir(path)
                layers = f"lowerdir={lower},upperdir={upper},workdir={work}{options}"
                subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, merged], check=True)
                stack.callback(subprocess.run, ["umount", "--lazy", merged], check=True)
                devices.add(os.stat(os.path.join(merged, "dotnet")).st_dev)
                if change is not None:
                    subprocess.run([*change, os.path.join(merged, "shared")], check=True)
                targets.append(stack.enter_context(harness.Target([os.path.join(merged, "dotnet"), *arguments],
                                                                  env={**env, "DOTNET_ROOT": merged, "DOTNET_GCgen0size": "400000"})))
            self.assertEqual(len(devices), 2, "the kernel gives both the same device: the check would prove nothing")
            hooked = {}
            for pids in ([targets[0].host_pid], [target.host_pid for target in targets]):
                result = harness.record("--pid", ",".join(map(str, pids)), "--duration", "3s")
                self.check_result(result)
                counts = result.stats["pauses"]
                self.assertGreater(counts["pauses"], 5 * len(pids), counts)
                self.assertEqual(counts["unexpected"], 0, counts)
                hooked[len(pids)] = counts["images_hooked"]
                print(f"    {len(pids)} of them: {counts}", flush=True)
            self.assertGreater(hooked[1], 0)
            return hooked[1], hooked[2]

    def test_probes_are_planted_once_for_all(self):
        one, both = self.hooked()
        self.assertEqual(both, one)

    def test_containers_that_own_their_runtime_have_probes_each(self):
        one, both = self.hooked(change=["chown", "-R", "1:1"])
        self.assertEqual(both, 2 * one)

    def test_copies_without_data_share_their_probes(self):
        one, both = self.hooked(options=",metacopy=on", change=["chown", "-R", "1:1"])
        self.assertEqual(both, one)


class ErrorTest(PauseTest):
    NEEDS = ("dotnet", "minijit")

    def check_error(self, mentions, arguments, prefix=(), agent=harness.AGENT):
        done = subprocess.run([*prefix, agent, "pauses", *arguments], capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL)
        self.assertNotEqual(done.returncode, 0, done)
        self.assertLess(done.returncode, 100, "it crashed")
        lines = done.stderr.strip().splitlines()
        self.assertEqual([line.strip().split(":")[0] for line in lines], ["error", "hint"], done.stderr)
        self.assertIn(mentions, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_native_process(self):
        with harness.Target([harness.MINIJIT, "--seconds", "60"]) as target:
            for json_too in ((), ("--json",)):
                self.check_error(f"process {target.pid}", ("--pid", str(target.pid), "--duration", "1s", *json_too))

    def test_no_such_process(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.check_error(str(process.pid), ("--pid", str(process.pid), "--duration", "1s"))

    def test_not_root(self):
        with self.agent_for_nobody() as agent, harness.workload(VERSIONS[-1], "idle", "--seconds", 60) as target:
            self.check_error("sudo", ("--pid", str(target.host_pid), "--duration", "1s"), agent=agent, prefix=harness.AS_NOBODY)

    def test_killed_while_it_watches(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                with harness.workload(version, "gc", "--seconds", 300, "--ticks") as target:
                    for kill in (True, False):
                        with Pauses(target.host_pid) as pauses:
                            deadline = time.monotonic() + 120
                            while len(pauses.lines()) < 5:
                                self.assertLess(time.monotonic(), deadline, pauses.said())
                                time.sleep(0.02)
                            if not kill:
                                self.assertGreaterEqual(len(pauses.finish()), 5)
                                continue
                            self.assertGreater(changed_code(target.host_pid), 0, "no probe is seen: the check would prove nothing")
                            pauses.kill()
                            while changed_code(target.host_pid) > 0:
                                self.assertLess(time.monotonic(), deadline, "probes are left")
                                time.sleep(0.05)
                            self.assertTrue(goes_on(target), "the target does not go on")


if __name__ == "__main__":
    harness.main()
