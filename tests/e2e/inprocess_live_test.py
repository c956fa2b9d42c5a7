#!/usr/bin/env python3
"""The profiler library in running programs: what it tells against what the program knows, the runtime's own event stream and our IL maps;
and that nothing is left of it, however its agent ends. CLRSAMPLER_LIBRARY_ROUNDS: how often it goes in and out (10)."""
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import emulated
import harness
import library_agent
import musl
import runtimes
from events_live_test import AS_NOBODY, Events, program
from il_maps_oracle_test import as_told, ask
from watcher import truth_of

COUNT, THREADS = 200, 4
ROUNDS = int(os.environ.get("CLRSAMPLER_LIBRARY_ROUNDS", "10"))
# Events that a busy machine leaves unread for seconds stay in the runtime, so that nothing of the stream is lost.
ROOM = ("--buffer", "256")
LIBRARY = os.path.join(os.path.dirname(harness.AGENT), "libclrsampler_profiler.so")
ARM64_LIBRARY = os.path.join(os.environ.get("CLRSAMPLER_ARM64_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64")), "libclrsampler_profiler.so")
OTHER_PROFILER = os.environ.get("OTHER_PROFILER", "")
# Pages that the program itself takes between two looks, in KB; the ring alone has 16 MB.
RSS_SLACK_KB = 8 << 10
# The runtime sleeps 0.3 s before it looks whether its calls have returned; the machine may be busy.
UNLOAD_SECONDS = 30
SAME_IN_BOTH = ("ExceptionThrown", "ExceptionSearchFilterEnter", "ExceptionSearchFilterLeave", "ExceptionUnwindFinallyEnter",
                "ExceptionUnwindFinallyLeave", "ExceptionCatcherEnter", "ThreadCreated", "AssemblyLoadFinished", "AssemblyUnloadFinished",
                "ModuleLoadFinished", "ModuleUnloadFinished", "RuntimeSuspendStarted", "RuntimeSuspendFinished", "RuntimeResumeStarted",
                "RuntimeResumeFinished", "GarbageCollectionStarted", "GarbageCollectionFinished", "JITCompilationFinished")


def threads_of_library(pid):
    names = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/comm") as f:
            names.append(f.read().strip())
    return names.count("clrsampler")


def mapped(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return [line for line in maps if "libclrsampler_profiler" in line or "clrsampler-ring" in line]


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class LibraryTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def check_gone(self, pid, seconds=UNLOAD_SECONDS):
        self.assertTrue(wait_until(lambda: not mapped(pid), seconds), mapped(pid))
        self.assertEqual(threads_of_library(pid), 0)
        self.assertEqual([name for name in os.listdir(f"/proc/{pid}/root/tmp") if name.startswith("clrsampler-") and len(name) == 27], [])

    def on_each_version(self, check):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                check(version)

    def from_the_start(self, start, kinds=()):
        """(truth, events in its time) of a program that is started with the library."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = os.path.join(folder, "agent")
            command = [harness.AGENT, "events", "--with-library", "--library-socket", path, "--format", "json", "--buffer", "256", *kinds]
            with open(os.path.join(folder, "out"), "w+") as out:
                agent = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
                self.assertTrue(wait_until(lambda: os.path.exists(path), 30))
                with start(path) as target:
                    # Children of the program do not wait there.
                    self.assertTrue(wait_until(lambda: not os.path.exists(path), 30))
                    target.signal(signal.SIGHUP)
                    truth = truth_of(target)
                    agent.send_signal(signal.SIGINT)
                    _, said = agent.communicate(timeout=60)
                    self.assertEqual(agent.returncode, 0, said)
                    self.assertEqual(threads_of_library(target.host_pid), 0)
                out.seek(0)
                events = [json.loads(line) for line in out]
        self.assertNotIn("note", said)
        self.assertEqual({event["pid"] for event in events}, {target.host_pid})
        return truth, [event for event in events if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]


class CountsTest(LibraryTest):
    def test_counts_are_those_of_the_program_and_of_the_stream(self):
        def check(version):
            # Without tiers nothing is compiled in the background, at the edge of the program's time.
            with program(version, count=COUNT, megabytes=4, env={"DOTNET_TieredCompilation": "0"}) as target:
                with Events(target.host_pid, *ROOM) as stream, Events(target.host_pid, "--with-library") as library:
                    target.signal(signal.SIGHUP)
                    truth = truth_of(target)
                    ours, theirs = library.finish(), stream.finish()
                    self.assertNotIn("note", library.said())
                self.check_gone(target.host_pid)
            self.compare(version, truth, ours, theirs)
        self.on_each_version(check)

    def compare(self, version, truth, ours, theirs):
        def within(events):
            return [event for event in events if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
        self.assertTrue(all(a["time_ns"] <= b["time_ns"] for a, b in zip(ours, ours[1:])))
        self.assertEqual({event["source"] for event in ours}, {"library"})
        during = within(ours)
        counts = collections.Counter(event["event"] for event in during)
        stream = collections.Counter(event["event"] for event in within(theirs))
        self.assertEqual({kind: counts[kind] for kind in SAME_IN_BOTH}, {kind: stream[kind] for kind in SAME_IN_BOTH})
        self.assertEqual(counts["ExceptionThrown"], truth["exceptions"])
        self.assertEqual(counts["ExceptionSearchCatcherFound"], truth["exceptions"])
        self.assertEqual(counts["GarbageCollectionStarted"], truth["collections"])
        self.assertEqual(counts["JITCompilationFinished"], truth["compiled"])
        types = collections.Counter(event["type"] for event in during if event["event"] == "ExceptionThrown")
        self.assertEqual(types, {"System.InvalidOperationException": COUNT, "Workload.EventsMode+OutOfStock": COUNT})
        methods = {(event["type"], event["method"]) for event in during if event["event"] == "ExceptionCatcherEnter"}
        self.assertEqual(methods, {("Workload.EventsMode", "Throw")})
        begun = {event["tid"] for event in during if event["event"] == "ThreadAssignedToOSThread"}
        self.assertLessEqual(set(truth["threads"]), begun)
        self.assertGreaterEqual(counts["ThreadDestroyed"], truth["blocked"])
        for kind in ("JITCompilationStarted", "JITCompilationFinished"):
            fresh = [event for event in during if event["event"] == kind and event.get("dynamic")]
            self.assertEqual(sorted(event["method"] for event in fresh if event["method"].startswith("Fresh")),
                             [f"Fresh{i}" for i in range(truth["methods"])], kind)
        paths = [event["path"] for event in during if event["event"] == "ModuleUnloadStarted"]
        self.assertEqual([path.startswith("zoo") for path in paths], [True] * truth["modules"])
        print(f"    {version}: {dict(counts)}", flush=True)

    def test_passes_of_exceptions_are_whole(self):
        """Each function that is searched is left, and so is each that is unwound."""
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        kinds = [f"Exception{which}Function{what}" for which in ("Search", "Unwind") for what in ("Enter", "Leave")]
        with program(version, count=20, megabytes=1) as target, \
                Events(target.host_pid, "--with-library", "--kind", ",".join((*kinds, "ExceptionThrown"))) as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            events = [event for event in watcher.finish() if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
        counts = collections.Counter(event["event"] for event in events)
        self.assertEqual(counts["ExceptionThrown"], truth["exceptions"])
        self.assertEqual(counts["ExceptionSearchFunctionEnter"], counts["ExceptionSearchFunctionLeave"])
        self.assertGreaterEqual(counts["ExceptionSearchFunctionEnter"], truth["exceptions"])
        self.assertIn("Throw", {event.get("method") for event in events})

    def test_what_each_source_lacks_is_said(self):
        for arguments, sentence in ((("--with-library", "--kind", "ThreadBlockedMonitor"), "does not come from the library"),
                                    (("--kind", "ThreadDestroyed"), "does not come from the event stream")):
            done = subprocess.run([harness.AGENT, "events", "--pid", str(os.getpid()), *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(sentence, done.stderr)
            self.assertIn("hint: ", done.stderr)

    def test_attach_counts(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1) as target:
            command = [harness.AGENT, "attach", "--pid", str(target.host_pid), "--json", "--kind", "ExceptionThrown"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertIn("the library is in process", process.stderr.readline())
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        counted = json.loads(out)
        self.assertGreaterEqual(counted["events"]["ExceptionThrown"], truth["exceptions"])
        self.assertEqual((counted["lost"], counted["stayed"]), (0, False))


class MapsTest(LibraryTest):
    def test_maps_are_those_that_we_read(self):
        """GetILToNativeMapping3 of every compiled method against the same read from memory."""
        def check(version):
            # Precompiled code has its maps in the image.
            with harness.workload(version, "linq", "--seconds", "120", env={"DOTNET_ReadyToRun": "0"}) as target:
                target.use_cpu(2)
                with Events(target.host_pid, "--with-library", "--kind", "ILToNativeMap") as watcher:
                    events = watcher.finish()
                bodies = {int(event["address"], 16): event for event in events if event["entries"] == len(event["map"])}
                questions = [f"{start:x} {max(end for _, _, end in event['map']):x}\n" for start, event in bodies.items()]
                ours = {int(fields[0], 16): fields for fields in ask(target.host_pid, version, questions)}
            differ = [(hex(start), event["map"], ours[start]) for start, event in bodies.items()
                      if as_told(ours[start][4:]) != sorted((il & 0xFFFFFFFF, native) for il, native, _ in event["map"])]
            print(f"    {version}: {len(bodies)} bodies, {sum(len(e['map']) for e in bodies.values())} entries, "
                  f"{len(differ)} differ", flush=True)
            self.assertEqual(differ[:3], [])
            self.assertGreater(len(bodies), 100)
        self.on_each_version(check)


class LifeTest(LibraryTest):
    def test_in_and_out_many_times(self):
        def check(version):
            with harness.workload(version, "events", "--seconds", 120 + 3 * ROUNDS, "--count", 20, "--threads", THREADS, "--megabytes", 1) as target:
                sizes = [self.one_round(target.host_pid) for _ in range(ROUNDS)]
                print(f"    {version}: {ROUNDS} rounds, RSS {sizes[0]} KB after the first, {sizes[-1]} KB after the last", flush=True)
                self.assertLess(sizes[-1] - sizes[min(1, len(sizes) - 1)], RSS_SLACK_KB, sizes[::max(1, ROUNDS // 10)])
                target.signal(signal.SIGHUP)
                self.assertEqual(truth_of(target)["exceptions"], 40)
        self.on_each_version(check)

    def one_round(self, pid):
        """A third of the agents is killed at some moment."""
        before = descriptors(pid)
        if random.random() < 1 / 3:
            agent = subprocess.Popen([harness.AGENT, "attach", "--pid", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if random.random() < 0.5:
                agent.stderr.readline()
            time.sleep(random.random() / 10)
            agent.kill()
            agent.communicate()
            # One that was killed before the runtime had its library leaves the folder.
            self.assertTrue(wait_until(lambda: not mapped(pid), UNLOAD_SECONDS), mapped(pid))
            for name in os.listdir("/tmp"):
                if name.startswith("clrsampler-") and len(name) == 27:
                    shutil.rmtree(os.path.join("/tmp", name), ignore_errors=True)
        else:
            with Events(pid, "--with-library") as watcher:
                watcher.finish()
        self.check_gone(pid)
        self.assertTrue(wait_until(lambda: descriptors(pid) <= before, 10), (before, descriptors(pid)))
        return rss_kb(pid)

    def test_a_killed_agent_leaves_silence(self):
        def check(version):
            with program(version, count=20_000, megabytes=1) as target:
                with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
                    target.signal(signal.SIGHUP)
                    self.assertTrue(wait_until(lambda: os.fstat(watcher.out.fileno()).st_size > 0, 30))
                    watcher.process.kill()
                    watcher.process.wait()
                    began = time.monotonic()
                    self.assertTrue(wait_until(lambda: threads_of_library(target.host_pid) == 0, 1))
                    silent = time.monotonic() - began
                self.check_gone(target.host_pid)
                print(f"    {version}: silent after {silent * 1000:.0f} ms, unloaded after {time.monotonic() - began:.1f} s", flush=True)
                self.assertEqual(truth_of(target)["exceptions"], 40_000)
        self.on_each_version(check)

    def test_the_end_of_the_process_is_the_end(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1) as target, Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            target.kill()
            events = [event for event in watcher.finish(number=None) if event["time_ns"] >= truth["begin_ns"]]
            self.assertEqual(len(events), truth["exceptions"])

    def test_an_agent_that_does_not_read_delays_nobody(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=30_000, megabytes=1) as target, \
                Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown", "--buffer", "1") as watcher:
            watcher.process.send_signal(signal.SIGSTOP)
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            watcher.process.send_signal(signal.SIGCONT)
            events = [event for event in watcher.finish() if event["time_ns"] >= truth["begin_ns"]]
            lost = int(watcher.said().split("note: ")[1].split()[0])
        self.assertEqual(len(events) + lost, truth["exceptions"])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class PlacesTest(LibraryTest):
    def check_seen(self, target, watcher):
        target.signal(signal.SIGHUP)
        truth = truth_of(target)
        events = [event for event in watcher.finish() if event["time_ns"] >= truth["begin_ns"]]
        self.assertEqual(len(events), truth["exceptions"])
        self.check_gone(target.host_pid)
        return events

    def test_in_a_container_without_our_network_and_mounts(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "120", "--count", "20", "--threads", "1", "--megabytes", "1")
        with harness.Target(["unshare", "--net", *harness.in_namespace(command)], env=env) as target:
            target.host_pid = target._only_child(target.process.pid)
            with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
                events = self.check_seen(target, watcher)
            self.assertEqual({event["thread"] for event in events}, {target.pid})

    def test_as_the_user_of_the_process(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "60", "--count", "20", "--threads", "1", "--megabytes", "1")
        with self.agent_for_nobody() as agent, harness.Target([*AS_NOBODY, *command], env=env) as target:
            shutil.copy(LIBRARY, os.path.dirname(agent))
            with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown", agent=agent, prefix=AS_NOBODY) as watcher:
                self.check_seen(target, watcher)

    def test_roots_agent_in_another_users_process(self):
        version = runtimes.PACKED_VERSIONS[0]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "60", "--count", "20", "--threads", "1", "--megabytes", "1")
        with harness.Target([*AS_NOBODY, *command], env=env) as target, \
                Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
            self.check_seen(target, watcher)

    def test_from_the_start_and_beside_another_profiler(self):
        """The library twice: once as the profiler that the program is started with, whose agent is this test."""
        def check(version):
            with library_agent.Agent(library_agent.EXCEPTIONS) as first, \
                    program(version, count=20, megabytes=1, env=library_agent.environment(LIBRARY, first.path)) as target:
                first.accept()
                with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as second:
                    target.signal(signal.SIGHUP)
                    truth = truth_of(target)
                    events = [event for event in second.finish() if event["time_ns"] >= truth["begin_ns"]]
                self.assertEqual(len(events), truth["exceptions"])
                # The other one goes on. It has seen the first round of the program too, with one more of each.
                self.assertEqual(first.count(), truth["exceptions"] + 2)
                first.close()
                self.check_gone(target.host_pid)
        self.on_each_version(check)

    def test_beside_the_profiler_of_the_program(self):
        if not os.path.exists(OTHER_PROFILER):
            self.unavailable("no OTHER_PROFILER, the target other_profiler")

        def check(version):
            env = {"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": "{0D1C2B3A-0000-0000-0000-000000000001}", "CORECLR_PROFILER_PATH": OTHER_PROFILER}
            with program(version, count=20, megabytes=1, env=env) as target:
                with open(f"/proc/{target.host_pid}/maps") as maps:
                    self.assertIn(os.path.basename(OTHER_PROFILER), maps.read())
                for _ in range(3):
                    with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
                        watcher.finish()
                    self.check_gone(target.host_pid)
                with Events(target.host_pid, "--with-library", "--kind", "ExceptionThrown") as watcher:
                    self.check_seen(target, watcher)
        self.on_each_version(check)

    def test_every_object_of_a_program_from_its_start(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        truth, during = self.from_the_start(
            lambda path: program(version, count=20, megabytes=1, env=library_agent.environment(LIBRARY, path)),
            ("--kind", "ObjectAllocated,ExceptionThrown"))
        objects = [event for event in during if event["event"] == "ObjectAllocated"]
        self.assertEqual(sum(event["type"] == "Workload.EventsMode+Page" for event in objects), 256)
        self.assertEqual(sum(event["event"] == "ExceptionThrown" for event in during), truth["exceptions"])
        # The runtime's own count, but for what threads have at hand.
        self.assert_within(abs(sum(event["bytes"] for event in objects) - truth["allocated"]) / truth["allocated"], 0.02, "allocated bytes")

    def test_roots_agent_and_another_users_program_from_its_start(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "60", "--count", "20", "--threads", "4", "--megabytes", "1")

        def start(path):
            # Nobody may not read the folder of the build everywhere.
            library = shutil.copy(LIBRARY, os.path.dirname(path))
            return harness.Target([*AS_NOBODY, *command], env={**env, **library_agent.environment(library, path)})
        truth, during = self.from_the_start(start, ("--kind", "ExceptionThrown"))
        self.assertEqual(len(during), truth["exceptions"])

    def test_without_an_agent_a_program_runs_as_ever(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1, env=library_agent.environment(LIBRARY, "/nowhere")) as target:
            self.assertEqual(mapped(target.host_pid), [])
            target.signal(signal.SIGHUP)
            self.assertEqual(truth_of(target)["exceptions"], 40)


class Arm64Test(LibraryTest):
    """Under qemu-user: the library of a cross build, with the agent of this machine."""

    def test_counts_are_those_of_the_program(self):
        if not os.path.exists(ARM64_LIBRARY):
            self.unavailable(f"no {ARM64_LIBRARY}: cmake --preset aarch64 && cmake --build --preset aarch64")
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version=version):
                try:
                    command, env = emulated.command("workload", version, "events", "--seconds", "300", "--count", "20", "--threads", "2", "--megabytes", "1")
                except runtimes.Missing as reason:
                    self.unavailable(str(reason))
                truth, events = self.from_the_start(
                    lambda path, command=command, env=env: harness.Target(command, env={**env, **library_agent.environment(ARM64_LIBRARY, path)}))
                counts = collections.Counter(event["event"] for event in events)
                print(f"    {version} arm64: {dict(counts)}", flush=True)
                self.assertEqual([counts[kind] for kind in ("ExceptionThrown", "GarbageCollectionStarted", "JITCompilationFinished", "ObjectAllocated")],
                                 [truth["exceptions"], truth["collections"], truth["compiled"], 0])


class MuslTest(LibraryTest):
    NEEDS = ("dotnet", "unshare")

    def test_the_same_library_on_musl(self):
        """As many collections, suspensions and compilations as the event stream has between the same two moments, but for those at the edge."""
        for version in musl.SELECTED:
            with self.subTest(version=version), musl.workload(version, "gc", "--seconds", "120") as target:
                with Events(target.host_pid, *ROOM) as stream, Events(target.host_pid, "--with-library") as library:
                    target.use_cpu(1)
                    ours, theirs = library.finish(), stream.finish()
                    self.assertNotIn("lost", stream.said() + library.said())
                begin = max(events[0]["time_ns"] for events in (ours, theirs))
                end = min(events[-1]["time_ns"] for events in (ours, theirs))
                counts, others = (collections.Counter(event["event"] for event in events if begin <= event["time_ns"] <= end)
                                  for events in (ours, theirs))
                print(f"    {version}: {dict(counts)}", flush=True)
                for kind in ("GarbageCollectionStarted", "RuntimeSuspendStarted", "RuntimeResumeFinished", "JITCompilationFinished"):
                    self.assertAlmostEqual(counts[kind], others[kind], delta=2, msg=kind)
                self.assertGreater(counts["GarbageCollectionStarted"], 100)
                # musl unloads no library. Its ring and its thread are gone.
                self.assertEqual([line for line in mapped(target.host_pid) if "clrsampler-ring" in line], [])
                self.assertEqual(threads_of_library(target.host_pid), 0)


if __name__ == "__main__":
    harness.main()
