#!/usr/bin/env python3
"""`record --source eventpipe` against a program that knows what it throws, waits for and allocates; without root and without BPF."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time

import folded
import harness
import runtimes
from watcher import truth_of

COUNT, THREADS, MEGABYTES = 300, 4, 64
PAGE_BYTES = 4096
THROWS, ALLOCATES = "Workload.EventsMode.Throw", "Workload.EventsMode.Round"
AS_NOBODY = harness.AS_NOBODY


def program(version, count=COUNT, megabytes=MEGABYTES, **options):
    return harness.workload(version, "events", "--seconds", 120, "--count", count, "--threads", THREADS, "--megabytes", megabytes, **options)


class Recording:
    """The command while it records; `finish` ends it. Results are files below `folder`."""

    def __init__(self, pid, event, folder, *arguments, agent=None, prefix=(), outputs=("x.folded",)):
        self.folder, self.said = folder, ""
        self.command = [*prefix, agent or harness.AGENT, "record", "--event", event, "--source", "eventpipe", "--pid", str(pid),
                        "--stats", self.path("stats"), *arguments]
        for output in outputs:
            self.command += ["-o", self.path(output)]
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=self.err, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while "watching process" not in self.stderr():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"it does not record: {' '.join(self.command)}\n{self.stderr()}")
            time.sleep(0.01)

    def path(self, name):
        return os.path.join(self.folder, name)

    def stderr(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(60)
        self.said = self.stderr()
        if status != 0:
            raise AssertionError(f"status {status}: {self.said}")
        return self

    def stacks(self):
        """(frames without marks of their kinds, weight)"""
        with open(self.path("x.folded"), "rb") as f:
            return [([folded.bare(frame) for frame in frames], weight) for frames, weight in folded.parse(f.read()).stacks]

    def stats(self):
        with open(self.path("stats")) as f:
            return json.load(f)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.err.close()


class EventProfileLiveTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @contextlib.contextmanager
    def recorded(self, version, event, *arguments, outputs=("x.folded",), **options):
        """(truth, recording) of a program's own time."""
        self.need_runtime(version)
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, program(version, **options) as target, \
                Recording(target.host_pid, event, folder, *arguments, outputs=outputs) as recording:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            yield truth, recording.finish()

    def check_exceptions(self, recording, truth):
        thrown = {(frames[-2], frames[-1]): weight for frames, weight in recording.stacks()}
        stats = recording.stats()
        self.assertEqual(thrown, {(THROWS, "System.InvalidOperationException"): truth["exceptions"] // 2,
                                  (THROWS, "OutOfStock"): truth["exceptions"] // 2}, (stats["events"], recording.said))
        self.assertEqual((stats["events"]["counted"], stats["events"]["lost"]), (truth["exceptions"], 0))
        self.assertEqual(stats["frames"]["managed"]["unnamed"], 0, stats["frames"])
        self.assertEqual(stats["processes"][0]["samples"], truth["exceptions"])
        self.assertIn(f"{truth['exceptions']} exceptions were thrown", recording.said)
        self.assertIn(f"100.0 %  {THROWS}", recording.said)

    def test_all_exceptions_are_counted_with_type_and_method(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version), self.recorded(version, "exception") as (truth, recording):
                self.check_exceptions(recording, truth)
                self.assertEqual(recording.stats()["processes"][0]["runtime"], runtimes.number(version))

    def test_waits_for_locks(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version), self.recorded(version, "contention") as (truth, recording):
                waits = [(frames, weight) for frames, weight in recording.stacks() if frames[-1].startswith("Workload.EventsMode.Block")]
                waited = sum(weight for _, weight in waits)
                # Each of the threads waits for 100 ms, while nothing else happens in the program. The runtime's time may begin later: 6 ms of 20
                # were seen, on a machine with twelve tasks for two CPUs.
                self.assertGreater(waited, THREADS * 50_000_000, recording.stacks())
                self.assertLess(waited, truth["end_ns"] - truth["begin_ns"])
                self.assertIn("waits for locks took", recording.said)
                self.assertGreaterEqual(recording.stats()["events"]["counted"], truth["blocked"])

    def test_allocated_bytes(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version), self.recorded(version, "alloc") as (truth, recording):
                stacks = recording.stacks()
                pages = sum(weight for frames, weight in stacks if frames[-2:] == [ALLOCATES, "Page"])
                self.assert_within(abs(pages / (MEGABYTES * 256 * PAGE_BYTES) - 1), 0.05, "bytes by type and method")
                total = sum(weight for _, weight in stacks)
                # The runtime describes its events when the session begins, which takes some hundred KB.
                self.assertGreater(total, truth["allocated"] - 220_000)
                self.assertLess(total, truth["allocated"] + 4_000_000)
                self.assertIn("MB were allocated", recording.said)

    def test_all_formats_without_root(self):
        with contextlib.suppress(FileNotFoundError), open("/proc/sys/kernel/yama/ptrace_scope") as f:
            if f.read().strip() != "0":
                self.unavailable("kernel.yama.ptrace_scope keeps users from reading the memory of their own processes")
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "60", "--count", "20", "--threads", "2", "--megabytes", "1")
        outputs = ("x.folded", "x.json", "x.pb.gz", "x.speedscope.json", "x.html", "x.svg")
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, self.agent_for_nobody() as agent, \
                harness.Target([*AS_NOBODY, *command], env=env) as target:
            os.chown(folder, harness.NOBODY, harness.NOBODY)
            with Recording(target.host_pid, "exception", folder, agent=agent, prefix=AS_NOBODY, outputs=outputs) as recording:
                target.signal(signal.SIGHUP)
                truth = truth_of(target)
                recording.finish()
            self.check_exceptions(recording, truth)
            for name in outputs:
                self.assertGreater(os.path.getsize(recording.path(name)), 100, name)
            with open(recording.path("x.json")) as f:
                profile = json.load(f)
            meta = profile["meta"]
            self.assertEqual((meta["view"], meta["unit"], meta["pids"]), ("exception", "samples", [target.host_pid]))
            times = [meta["start_monotonic_ns"] + time_ns for time_ns in profile["samples"]["time_ns"]]
            self.assertEqual(len(times), truth["exceptions"])
            self.assertTrue(all(truth["begin_ns"] <= time_ns <= truth["end_ns"] for time_ns in times))
            with open(recording.path("x.folded"), "rb") as f:
                expected = f.read()
            for name in ("x.json", "x.pb.gz"):
                converted = subprocess.run([harness.AGENT, "convert", recording.path(name), "-"], capture_output=True, timeout=60, check=True)
                self.assertEqual(sorted(converted.stdout.splitlines()), sorted(expected.splitlines()), name)

    def test_losses_are_said(self):
        """A runtime with little room, and a recorder that stands still: what came and what was lost is what was thrown."""
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, program(version, count=30_000, megabytes=1) as target, \
                Recording(target.host_pid, "exception", folder, "--event-buffer", "1") as recording:
            recording.process.send_signal(signal.SIGSTOP)
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            recording.process.send_signal(signal.SIGCONT)
            events = recording.finish().stats()["events"]
        self.assertGreater(events["lost"], 0)
        self.assertLess(events["counted"], truth["exceptions"])
        # Events of other kinds come by the same keyword and are lost as well.
        self.assertGreaterEqual(events["counted"] + events["lost"], truth["exceptions"])
        self.assertIn(f"note: {events['lost']} events were lost", recording.said)
        self.assertIn("--event-buffer", recording.said)

    def test_what_does_not_go_together_is_refused(self):
        for arguments, sentence in (
                (("--event", "contention", "--pid", "1"), "--event contention is only in the runtime's own event stream"),
                (("--source", "eventpipe", "--pid", "1"), "--source eventpipe has no samples of CPU time"),
                (("--source", "eventpipe", "--event", "alloc"), "--source eventpipe takes one process"),
                (("--source", "eventpipe", "--event", "alloc", "--", "true"), "and no command"),
                (("--source", "eventpipe", "--event", "alloc", "--pid", "1", "--frequency", "7"), "has no --frequency"),
                (("--source", "eventpipe", "--event", "alloc", "--pid", "1", "-o", "x.jitdump"), "holds machine code")):
            with self.subTest(sentence=sentence), tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
                done = subprocess.run([harness.AGENT, "record", *arguments], capture_output=True, text=True, timeout=60, cwd=folder)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(sentence, done.stderr)
                self.assertIn("hint: ", done.stderr)

    def test_another_users_process_is_refused(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with self.agent_for_nobody() as agent, program(version) as target:
            done = subprocess.run([*AS_NOBODY, agent, "record", "--event", "alloc", "--source", "eventpipe", "--pid", str(target.host_pid)],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to another user", done.stderr)


if __name__ == "__main__":
    harness.main()
