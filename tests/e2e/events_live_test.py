#!/usr/bin/env python3
"""`clrsampler events` against what a program says it did: all of it is counted, with the right types, without root and without BPF."""
import collections
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

import event_counts
import harness
import runtimes
from event_counts import COUNT, MEGABYTES
from watcher import truth_of

THREADS = 4
AS_NOBODY = harness.AS_NOBODY
EXCEPTION_KINDS = ("ExceptionThrown,ExceptionCatcherEnter,ExceptionCatcherLeave,ExceptionSearchFilterEnter,ExceptionSearchFilterLeave,"
                   "ExceptionUnwindFinallyEnter,ExceptionUnwindFinallyLeave")


class Events:
    """The command while it watches; `finish` ends it and gives its events."""

    def __init__(self, pid, *arguments, agent=None, prefix=()):
        self.command = [*prefix, agent or harness.AGENT, "events", "--pid", str(pid), "--format", "json", *arguments]
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        # A group of its own in the session of this test, as a shell makes it: Ctrl-Z stops no others.
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.err, stdin=subprocess.DEVNULL, process_group=0)
        deadline = time.monotonic() + 60
        while "watching process" not in self.said():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"it does not watch: {' '.join(self.command)}\n{self.said()}")
            time.sleep(0.01)

    def said(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def finish(self, number=signal.SIGINT):
        if number:
            self.process.send_signal(number)
        status = self.process.wait(60)
        if status != 0:
            raise AssertionError(f"status {status}: {self.said()}")
        return [json.loads(line) for line in os.pread(self.out.fileno(), 1 << 28, 0).decode().splitlines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()


def program(version, count=COUNT, megabytes=MEGABYTES, **options):
    return harness.workload(version, "events", "--seconds", 120, "--count", count, "--threads", THREADS, "--megabytes", megabytes, **options)


class EventsLiveTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def watch(self, version, *arguments, **options):
        """(truth, events in its time, what was said on standard error)"""
        with program(version, **options) as target, Events(target.host_pid, *arguments) as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            events = watcher.finish()
            during = [event for event in events if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
            self.assertEqual([event["time_ns"] for event in events], sorted(event["time_ns"] for event in events))
            return truth, during, watcher.said(), target.host_pid

    def test_all_is_counted(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                # Without tiers nothing is compiled in the background, at the edge of the program's time.
                event_counts.check(self, version, *self.watch(version, env={"DOTNET_TieredCompilation": "0"}))

    def test_only_kinds_that_were_asked_for(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        _, events, _, _ = self.watch(version, "--kind", "ThreadCreated,ExceptionThrown")
        self.assertEqual({event["event"] for event in events}, {"ThreadCreated", "ExceptionThrown"})

    def test_losses_are_counted(self):
        """A runtime with little room: what came and what was lost is what the program did."""
        version = runtimes.PACKED_VERSIONS[0]
        self.need_runtime(version)
        with program(version, count=60_000, megabytes=1) as target, \
                Events(target.host_pid, "--kind", EXCEPTION_KINDS, "--buffer", "1") as watcher:
            watcher.process.send_signal(signal.SIGSTOP)
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            watcher.process.send_signal(signal.SIGCONT)
            events = watcher.finish()
            said = watcher.said()
        seen = sum(event["event"] == "ExceptionThrown" for event in events)
        self.assertLess(seen, truth["exceptions"])
        lost = int(said.split("note: ")[1].split()[0])
        # For each round of two exceptions: two are thrown, two catches begin, one ends, a filter and a finally begin and end, and one throw stops.
        # A stop has no kind of ours. There is one for each catch that ends, and where a piece of the stream ends between the two, one
        # more or less.
        stops = sum(event["event"] == "ExceptionCatcherLeave" for event in events)
        self.assertAlmostEqual(len(events) + stops + lost, 5 * truth["exceptions"], delta=10, msg=said)

    def test_works_without_root(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        command, env = runtimes.command(version, "events", "--seconds", "60", "--count", "20", "--threads", "2", "--megabytes", "1")
        with self.agent_for_nobody() as agent, harness.Target([*AS_NOBODY, *command], env=env) as target, \
                Events(target.host_pid, agent=agent, prefix=AS_NOBODY) as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            events = watcher.finish()
            said = f"{len(events)} events; {watcher.said()}"
        self.assertEqual(sum(event["event"] == "ExceptionThrown" for event in events), truth["exceptions"], said)

    def test_another_users_process_is_refused(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with self.agent_for_nobody() as agent, program(version) as target:
            done = subprocess.run([*AS_NOBODY, agent, "events", "--pid", str(target.host_pid), "--duration", "1s"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to another user", done.stderr)
        self.assertIn("hint: run it as the user of that process", done.stderr)

    def test_in_a_pid_namespace(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1, namespace=True) as target, Events(target.host_pid, "--kind", "ExceptionThrown") as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            events = watcher.finish()
        self.assertEqual(len(events), truth["exceptions"])
        self.assertEqual({event["pid"] for event in events}, {target.host_pid})
        self.assertEqual({event["thread"] for event in events}, {target.pid})

    def test_the_end_of_the_process_is_the_end(self):
        version = runtimes.PACKED_VERSIONS[0]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1) as target, Events(target.host_pid, "--kind", "ExceptionThrown") as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            target.end()
            self.assertEqual(len(watcher.finish(number=None)), truth["exceptions"])
            self.assertNotIn("note", watcher.said())
        with program(version) as target, Events(target.host_pid) as watcher:
            target.kill()
            watcher.finish(number=None)
            self.assertIn("note: the process ended before its last events had come", watcher.said())

    def test_a_watcher_in_the_background_does_not_hold_up_the_end(self):
        """Ctrl-Z goes to all processes of the command, and the program ends with more events than the socket holds."""
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)

        def group_of(pid):
            for process in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as f:
                    state, _, group = f.read().rpartition(")")[2].split()[:3]
                    if int(group) == pid:
                        yield int(process), state

        with program(version, count=30_000, megabytes=1) as target, Events(target.host_pid, "--kind", EXCEPTION_KINDS) as watcher:
            os.killpg(watcher.process.pid, signal.SIGTSTP)
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            states = dict(group_of(watcher.process.pid))
            self.assertGreater(len(states), 1, "it has helpers")
            self.assertNotIn("T", states.values())
            target.signal(signal.SIGTERM)
            target.truth(timeout=60)
            events = watcher.finish(number=None)
            lost = "lost" in watcher.said()
        self.assertTrue(lost or sum(event["event"] == "ExceptionThrown" for event in events) == truth["exceptions"])

    def test_a_killed_watcher_leaves_no_session(self):
        """The runtime's thread that sends events ends with the session."""
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)

        def senders(pid):
            names = []
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/comm") as f:
                    names.append(f.read().strip())
            return names.count(".NET EventPipe")

        with program(version) as target:
            before = senders(target.host_pid)
            with Events(target.host_pid) as watcher:
                self.assertEqual(senders(target.host_pid), before + 1)
                watcher.process.kill()
                watcher.process.wait()
            target.signal(signal.SIGHUP)
            truth_of(target)
            deadline = time.monotonic() + 30
            while senders(target.host_pid) > before and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(senders(target.host_pid), before)


class ProbeTest(harness.LiveTest):
    """`--source probe`: what is seen from outside is what the program says, and what its own stream says."""
    NEEDS = ("dotnet",)

    def test_both_sources_agree(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version=version):
                self.need_runtime(version)
                with program(version, count=20, env={"DOTNET_TieredCompilation": "0"}) as target, \
                        Events(target.host_pid) as stream, Events(target.host_pid, "--source", "probe") as probe:
                    target.signal(signal.SIGHUP)
                    truth = truth_of(target)
                    seen = [[event for event in watcher.finish() if truth["begin_ns"] <= event["time_ns"] <= truth["end_ns"]]
                            for watcher in (stream, probe)]
                self.check(version, truth, *seen)

    def check(self, version, truth, streamed, probed):
        def of(events, kind):
            return [event for event in events if event["event"] == kind]
        self.assertEqual([event["time_ns"] for event in probed], sorted(event["time_ns"] for event in probed))
        for kind in ("GarbageCollectionStarted", "GarbageCollectionFinished"):
            for field in ("generation", "thread"):
                self.assertEqual(*([event[field] for event in of(events, kind)] for events in (streamed, probed)), kind)
        numbers = [[event["number"] for event in of(events, "GarbageCollectionFinished")] for events in (streamed, probed)]
        self.assertEqual(*numbers)
        self.assertEqual(len(numbers[1]), truth["collections"])
        for kind in ("RuntimeSuspendStarted", "RuntimeSuspendFinished", "RuntimeResumeStarted", "RuntimeResumeFinished"):
            self.assertEqual(*(len(of(events, kind)) for events in (streamed, probed)), kind)
        self.assertEqual(*([event["reason"] for event in of(events, "RuntimeSuspendStarted")] for events in (streamed, probed)))
        # Addresses are those of the code: the same methods, by whatever name.
        compiled = [collections.Counter(event["address"] for event in of(events, "JITCompilationFinished")) for events in (streamed, probed)]
        self.assertEqual(*compiled)
        self.assertEqual(compiled[1].total(), truth["compiled"])
        created = collections.Counter(event["tid"] for event in of(probed, "ThreadCreated"))
        self.assertEqual({tid: created[tid] for tid in truth["threads"]}, {tid: 1 for tid in truth["threads"]})
        self.check_creators(truth, of(probed, "ThreadCreated"))
        by_runtime = {event["tid"] for event in of(streamed, "ThreadCreated")}
        self.assertLessEqual(by_runtime & set(truth["threads"]), set(created))
        # The program waits for its threads, so that all of them have ended.
        ended = collections.Counter(event["tid"] for event in of(probed, "ThreadDestroyed"))
        self.assertEqual({tid: ended[tid] for tid in truth["threads"]}, {tid: 1 for tid in truth["threads"]})
        sources = {kind: {event["source"] for event in of(probed, kind)} for kind in {event["event"] for event in probed}}
        self.assertEqual(sources["ThreadCreated"], {"kernel"})
        self.assertEqual(sources["GarbageCollectionStarted"], {"probe"})
        # One that is loaded from memory again and again, each time by the same name: told when its first method is compiled.
        loaded = [event for event in of(probed, "ModuleLoadFinished") if event["path"].startswith("zoo")]
        self.assertLessEqual(len(loaded), 1)
        self.assertLessEqual(sources.get("ModuleLoadFinished", set()), {"memory", "kernel"})
        print(f"    {version}: {dict(collections.Counter((event['event'], event['source']) for event in probed))}", flush=True)

    def check_creators(self, truth, created):
        """The program makes its threads in one method, which its stack leads to from the process's first thread."""
        for event in created:
            if event["tid"] not in truth["threads"]:
                continue
            self.assertEqual(event["method"], "Workload.EventsMode.Block", event)
            stack = event["stack"]
            self.assertIn("Workload.Program.Main", stack)
            self.assertLess(stack.index("Workload.Program.Main"), stack.index("Workload.EventsMode.Block"))
            self.assertLess(stack.index("Workload.EventsMode.Block"), stack.index("System.Threading.Thread.StartCore"))
            self.assertIn("pthread_create", stack)

    def test_threads_alone_take_no_probes(self):
        version = runtimes.PACKED_VERSIONS[-1]
        self.need_runtime(version)
        with program(version, count=20, megabytes=1) as target, \
                Events(target.host_pid, "--source", "probe", "--kind", "ThreadCreated,ThreadDestroyed") as watcher:
            target.signal(signal.SIGHUP)
            truth = truth_of(target)
            events = watcher.finish()
        self.assertEqual({event["event"] for event in events}, {"ThreadCreated", "ThreadDestroyed"})
        self.assertLessEqual(set(truth["threads"]), {event["tid"] for event in events})
        self.check_creators(truth, [event for event in events if event["event"] == "ThreadCreated"])

    def test_a_kind_of_the_other_source_is_said(self):
        for source, kind, hint in (("probe", "ExceptionThrown", "--source eventpipe has it"), ("eventpipe", "ThreadDestroyed", "--source probe sees it")):
            done = subprocess.run([harness.AGENT, "events", "--pid", str(os.getpid()), "--source", source, "--kind", kind, "--duration", "1s"],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"hint: {hint}", done.stderr)


class HostileTest(harness.LiveTest):
    """A program with the socket of a runtime that is none: it answers in every way but the right one."""

    def answer(self, *replies):
        """The command's answer about a process that answers so, as (status, standard error)."""
        pid = os.getpid()
        with open("/proc/self/stat") as f:
            ticks = f.read().rpartition(")")[2].split()[19]
        path = f"/tmp/dotnet-diagnostic-{pid}-{ticks}-socket"
        with socket.socket(socket.AF_UNIX) as listener:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            listener.bind(path)
            self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
            listener.listen(4)
            process = subprocess.Popen([harness.AGENT, "events", "--pid", str(pid), "--duration", "1s"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                for reply in replies:
                    with contextlib.suppress(OSError):
                        connection.sendall(reply)
            _, err = process.communicate(timeout=60)
        return process.returncode, err

    @staticmethod
    def reply(identifier, payload):
        return b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 0xFF, identifier, 0) + payload

    def test_each_has_a_sentence_and_a_hint(self):
        session = self.reply(0, struct.pack("<Q", 1))
        for replies, sentence in (
                ((b"HTTP/1.1 200 OK\r\n\r\n",), "does not speak the .NET diagnostics protocol"),
                ((self.reply(0xFF, struct.pack("<I", 0x80070057)),), "refused the argument"),
                ((), "closed the connection without a reply"),
                ((session, b"Nettrash" * 100), "no stream of events"),
                ((session, b"Nettrace" + bytes(100)), "version 6 or newer"),
                ((session, b"Nettrace\x14\0\0\0!FastSerialization.1" + b"\5\5\1" + bytes(200)), "unknown kind")):
            with self.subTest(sentence=sentence):
                status, err = self.answer(*replies)
                self.assertEqual(status, 1, err)
                self.assertIn(sentence, err)
                self.assertIn("hint: ", err)


if __name__ == "__main__":
    harness.main()
