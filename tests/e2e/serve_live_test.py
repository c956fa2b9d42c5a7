#!/usr/bin/env python3
"""clrsampler serve on this host: what it says of real .NET processes is what they say themselves; Prometheus and pprof ask it; it survives
being killed, a full disk and bad configuration."""
import collections
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import harness
import runtimes
import stack_truth
from pprof import pprof_tool
from service import Manager, Service
from watcher import truth_of


def leaf_weights(profile):
    """Weight by name of leaf, of our JSON (docs/profile-json.md)."""
    weights, strings, frames, nodes = collections.Counter(), profile["strings"], profile["frames"], profile["nodes"]
    samples = profile["samples"]
    for node, weight in zip(samples["stack"], samples.get("weight") or [1] * len(samples["stack"])):
        if node:
            weights[strings[frames["name"][nodes["frame"][node]]]] += weight
    return weights


def frame_weights(profile, kinds):
    """Weight by name of the frames of these kinds, each as often as it is on a stack."""
    weights, words, frames, nodes = collections.Counter(), profile["frame_kinds"], profile["frames"], profile["nodes"]
    samples = profile["samples"]
    for node, weight in zip(samples["stack"], samples.get("weight") or [1] * len(samples["stack"])):
        while node:
            frame = nodes["frame"][node]
            if words[frames["kind"][frame]] in kinds:
                weights[profile["strings"][frames["name"][frame]]] += weight
            node = nodes["parent"][node]
    return weights


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Bytes that are resident."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        sizes = {key: int(value.split()[0]) << 10 for key, value in re.findall(r"^(Rss\w+):\s+(.*)$", f.read(), re.MULTILINE)}
    return {"own": sizes["RssAnon"], "pages of files": sizes["RssFile"] + sizes["RssShmem"]}


class ServeTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def test_pauses_agree_with_the_runtime_and_prometheus_answers(self):
        for need in ("prometheus", "promtool"):
            if shutil.which(need) is None:
                raise harness.Missing(f"{need} is not installed")
        with Service() as service, tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            with open(f"{folder}/prometheus.yml", "w", encoding="utf-8") as f:
                f.write(f"scrape_configs:\n- job_name: clrsampler\n  scrape_interval: 1s\n  static_configs:\n"
                        f"  - targets: ['{service.address[0]}:{service.address[1]}']\n")
            prometheus, port = harness.start_prometheus(folder)
            try:
                with harness.workload(runtimes.INSTALLED, "pauses", "--seconds", 120) as target:
                    service.wait_for_windows(2)  # the hooks are planted by then
                    process = f"{target.comm()}-{target.host_pid}"

                    def now():
                        """of all metrics; sum of pauses by metrics, by /api/pauses, by /api/timeline"""
                        metrics = service.metrics()
                        timeline = service.json("/api/timeline", pid=target.host_pid)
                        return metrics, (service.sum("clrsampler_gc_suspension_duration_seconds_sum", metrics, process=process),
                                         service.json("/api/pauses", pid=target.host_pid, limit=5)["pause_ms"] / 1000,
                                         sum(map(sum, (s["pause_ms"] for s in timeline["series"]))) / 1000)
                    metrics_before, sums_before = now()
                    target.signal(signal.SIGHUP)
                    truth = truth_of(target)
                    service.wait_for_windows(2)
                    metrics, sums = now()
                    seen, *others = (after - before for before, after in zip(sums_before, sums))
                    told = truth["pause_ns"] / 1e9
                    # The pauses' own ends are those of the runtime's clock; the hooks see a little more (docs/pauses.md).
                    self.assert_within(abs(seen / told - 1), 0.05, f"{seen} s seen, {told} s told by GC.GetTotalPauseDuration")
                    for generation, count in enumerate(truth["counts"]):
                        younger = truth["counts"][generation + 1] if generation < 2 else 0
                        before, after = (service.sum("clrsampler_gc_collections_total", one, process=process, generation=str(generation))
                                         for one in (metrics_before, metrics))
                        self.assertEqual(after - before, count - younger, truth["counts"])
                    for other in others:
                        self.assertAlmostEqual(other, seen, delta=1e-3)
                    longest = service.json("/api/pauses", pid=target.host_pid, limit=5)["pauses"]
                    self.assertEqual(len(longest), 5)
                    self.assertEqual(longest, sorted(longest, key=lambda pause: -pause["pause_ms"]))
                    query = ("histogram_quantile(0.99, sum by (process, le) "
                             "(rate(clrsampler_gc_suspension_duration_seconds_bucket[5m])))")
                    # Prometheus needs two scrapes between which pauses came; on a crowded machine it is late with them.
                    quantiles = {}
                    for _ in range(60):
                        time.sleep(1)
                        with contextlib.suppress(OSError), urllib.request.urlopen(
                                f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=20) as answer:
                            quantiles = {r["metric"]["process"]: float(r["value"][1]) for r in json.load(answer)["data"]["result"]}
                        if quantiles.get(process, 0) > 0:  # false for NaN, too
                            break
                    self.assertIn(process, quantiles)
                    self.assertGreater(quantiles[process], 0)
                checked = subprocess.run(["promtool", "check", "metrics"], input=service.get("/metrics")[1], capture_output=True, timeout=300)
                self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, b"", b""))
            finally:
                prometheus.kill()
                prometheus.wait()

    def test_shares_and_names_in_every_format_and_by_pprof(self):
        pprof = pprof_tool()
        with Service("--frequency", 499) as service, \
                harness.workload(runtimes.INSTALLED, "split", "--seconds", 120) as target:
            service.wait_for_windows(1)
            begin, cpu_begin = time.time(), target.cpu_ns()
            url = f"http://pprof:{service.token}@{service.address[0]}:{service.address[1]}/debug/pprof/profile?seconds=3&pid={target.host_pid}"
            # By itself it waits half as long again as it asked for, and gives up.
            done = subprocess.run([pprof, "-top", "-nodecount=10", "-timeout=60", url], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PPROF_TMPDIR": service.folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"Workload\.SplitMode\.BurnA|BurnA")
            service.wait_for_windows(2)
            end, cpu_end = time.time(), target.cpu_ns()
            profile = service.json("/api/profile", **{"from": begin, "to": end, "pid": target.host_pid, "format": "json"})
            weights = leaf_weights(profile)
            burners = sum(weights[f"Workload.SplitMode.Burn{letter}"] for letter in "ABC")
            total = sum(weights.values())
            self.assertGreater(burners, 0.8 * total, weights.most_common(5))
            # Two windows lie in part before the beginning and behind the end.
            self.assertAlmostEqual(total / (cpu_end - cpu_begin), 1, delta=0.5)
            folded = service.get("/api/profile", **{"from": begin, "to": end, "pid": target.host_pid, "format": "folded"})[1].decode()
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), total)
            processes = {p["pid"]: p for p in service.json("/api/processes")["processes"]}
            self.assertTrue(processes[target.host_pid]["runtime"], processes[target.host_pid])
            managed = frame_weights(profile, ("jit", "r2r"))
            unnamed = {name: weight for name, weight in managed.items() if name.startswith("[")}
            frames, faults = (round(sum(weights.values()) / harness.period_ns(499)) for weights in (managed, unnamed))
            self.assertLessEqual(faults, stack_truth.allowed_faults(frames, 0.999), f"of {frames}: {unnamed}")
            health = service.json("/api/health")
            self.assertGreater(health["own"]["peak_rss_bytes"], 1 << 20, health)
            self.assertLess(sum(health["lost"].values()), 0.01 * health["samples"]["taken"], health)

    def test_samples_of_a_window_are_those_that_were_expected(self):
        with Service("--frequency", 199) as service, harness.workload(runtimes.INSTALLED, "split", "--seconds", 60):
            steal = harness.steal_seconds()
            service.wait_for_windows(6)
            metrics, steal = service.metrics(), harness.steal_seconds() - steal
            expected, taken = (service.sum(f"clrsampler_samples_{what}_total", metrics) for what in ("expected", "taken"))
            self.assert_within(abs(taken - expected), 0.1 * expected + steal * 199, f"{taken} taken, {expected} expected, {steal} s stolen")

    def test_a_pause_leaves_a_flight_recording(self):
        with Service("--trigger", "pause>1us", "--trigger", "cpu>5000% for 1s") as service, \
                harness.workload(runtimes.INSTALLED, "pauses", "--seconds", 120) as target:
            service.wait_for_windows(2)
            target.signal(signal.SIGHUP)
            truth_of(target)
            service.wait_for_windows(1)
            self.assertEqual(service.stop(), 0)  # what was begun is kept
            self.assertIn("flight recording", service.said())
            service.start()
            listed = service.json("/api/recordings")["recordings"]
            self.assertEqual(len(listed), 1, listed)
            self.assertEqual(listed[0]["pid"], target.host_pid)
            self.assertIn("a pause of", listed[0]["value"])
            profile = service.json(f"/api/recordings/{listed[0]['id']}", format="json")
            self.assertGreater(len(profile["samples"]["time_ns"]), 0)
            self.assertEqual(service.get("/api/recordings/../../etc/passwd")[0], 404)
            with open(f"{service.folder}/recordings/{listed[0]['id']}.info.json", encoding="utf-8") as f:
                self.assertGreater(len(json.load(f)["pauses"]), 0)

    def test_a_process_is_one_line_across_a_reload_and_a_restart(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, \
                harness.workload(runtimes.INSTALLED, "split", "--seconds", 120) as target:
            config = f"{folder}/serve.conf"
            open(config, "w", encoding="utf-8").close()
            with Service("--config", config, window="1s") as service:
                service.wait_for_windows(2)
                service.process.send_signal(signal.SIGHUP)
                service.wait_for_log("sampling this host", times=2)
                service.address = ("127.0.0.1", int(re.findall(r"listening on http://\S+:(\d+)/", service.said())[-1]))
                service.wait_for_windows(2)
                self.assertEqual(service.stop(), 0)
                service.start()
                service.wait_for_windows(2)
                lines = service.json("/api/timeline", pid=target.host_pid, series=20)["series"]
                self.assertEqual([line["pid"] for line in lines], [target.host_pid], lines)
                self.assertGreater(sum(cores > 0 for cores in lines[0]["cores"]), 0)

    @harness.in_matrix
    def test_a_program_that_pauses_or_compiles_without_end_has_its_share_and_no_more(self):
        # Without a budget for hooks, what the agent takes of them is bounded all the same. With it there is nothing left to bound.
        for mode, budget in (("flood-gc", 0), ("flood-jit", 0), ("flood-jit", 0.3)):
            with self.subTest(mode, budget=budget), Service("--frequency", 99, "--hook-budget", budget) as service, \
                    harness.workload(runtimes.INSTALLED, "split", "--seconds", 300) as other, \
                    harness.workload(runtimes.INSTALLED, mode, "--seconds", 300) as target:
                service.wait_for_log("compiles so often", seconds=90)  # what it may have at once is used up
                self.assertIn(f"process {target.host_pid} (", service.said())
                service.wait_for_windows(3)
                before, cpu_before = service.metrics(), cpu_seconds(service.process.pid)
                begin = time.monotonic()
                service.wait_for_windows(4)
                seconds, after = time.monotonic() - begin, service.metrics()
                share = (cpu_seconds(service.process.pid) - cpu_before) / seconds
                limited = (service.sum("clrsampler_runtime_events_lost_total", after, source="limit") -
                           service.sum("clrsampler_runtime_events_lost_total", before, source="limit"))
                rested = (service.sum("clrsampler_hooks_detached_seconds_total", after) - service.sum("clrsampler_hooks_detached_seconds_total", before))
                # The record of the program is bounded: 4,000 events a second, five a collection and one or two a compilation.
                recorded = sum(events * (service.sum(metric, after) - service.sum(metric, before))
                               for metric, events in (("clrsampler_gc_collections_total", 5), ("clrsampler_jit_methods_total", 1)))
                print(f"    {mode}, budget {budget}: {recorded / seconds:.0f} events a second are recorded, "
                      f"{limited / seconds:.0f} beyond its share, rested {rested:.1f} of {seconds:.1f} s; "
                      f"the agent takes {100 * share:.1f} % of a CPU", flush=True)
                if budget:
                    self.assertGreater(rested, 0.3 * seconds)
                else:
                    self.assertGreater(limited, 0)
                    self.assertEqual(rested, 0)
                self.assertLess(recorded / (seconds + 1), 4000 * 1.1)  # windows end up to half a second apart from the questions
                # A slow machine takes 80 us for one of the 4,000. Without a limit the agent would have none of its CPU left.
                self.assertLess(share, 0.5)
                self.assertEqual(*(service.sum("clrsampler_runtime_events_lost_total", one, source="ring") for one in (before, after)))
                self.assertEqual(*(service.sum("clrsampler_samples_lost_total", one) for one in (before, after)))
                # The shown part of the program is whole: nothing is put together across what is missing. Others are not touched.
                truth = target.end()
                service.wait_for_windows(1)
                pauses, methods = service.json("/api/pauses", pid=target.host_pid, limit=1), service.json("/api/jit", pid=target.host_pid)
                # FloodMode's own are compiled in the background, where they wait for a CPU.
                shown = pauses["pauses"] if mode == "flood-gc" else [m for m in methods["methods"] if re.search(r"Flood\d", m["method"])]
                self.assertGreater((pauses if mode == "flood-gc" else methods)["count"], 1000)
                for one in shown:
                    self.assertLess(one.get("pause_ms", one.get("longest_ms")), truth["longest_ns"] / 1e6 + 0.1, one)
                profile = service.json("/api/profile", pid=other.host_pid, format="json")
                self.assertGreater(sum(weight for name, weight in leaf_weights(profile).items() if "SplitMode.Burn" in name),
                                   0.8 * sum(leaf_weights(profile).values()))

    def test_only_selected_processes_are_kept(self):
        with harness.workload(runtimes.INSTALLED, "split", "--seconds", 60) as target, \
                Service("--comm", "no such name") as none, Service("--uid", os.getuid(), "--comm", target.comm()) as some:
            none.wait_for_windows(2)
            some.wait_for_windows(1)
            self.assertEqual(none.json("/api/processes")["processes"], [])
            self.assertIn(target.host_pid, {p["pid"] for p in some.json("/api/processes")["processes"]})
            comms = {p["comm"] for p in some.json("/api/processes")["processes"]}
            self.assertEqual(comms, {target.comm()})


class OperationTest(harness.LiveTest):
    def test_a_kill_loses_the_open_window_at_most(self):
        with Service(window="1s") as service:
            service.wait_for_windows(3)
            newest = service.json("/api/status")["newest"]
            killed = time.time() * 1000
            service.stop(signal.SIGKILL)
            service.start()
            timeline = service.json("/api/timeline", **{"from": newest / 1000 - 2.5, "to": newest / 1000})
            self.assertTrue(any(timeline["covered"]), timeline)
            self.assertGreater(newest, killed - 15_000, "windows are kept as they end; a busy machine may be late with some")
            service.wait_for_windows(1)
            span = service.json("/api/status")
            self.assertLess(span["oldest"], newest)
            self.assertGreater(span["newest"], killed)

    def test_sighup_reads_the_file_again_and_a_bad_one_changes_nothing(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            config = f"{folder}/serve.conf"
            manager = Manager(folder)
            self.addCleanup(manager.socket.close)

            def write(text):
                with open(config, "w", encoding="utf-8") as f:
                    f.write(text)
            write('# ours\nfrequency = 7\ntrigger = ["pause>1s", "cpu>90% for 10s"]\n')
            with Service("--config", config, window="1s", env={**manager.env, "WATCHDOG_USEC": "5000000"}) as service:
                manager.wait_for("READY=1")
                manager.wait_for("WATCHDOG=1")
                self.assertEqual(service.json("/api/status")["frequency_hz"], 7)
                write("frequency = 23\n")
                service.process.send_signal(signal.SIGHUP)
                manager.wait_for("RELOADING=1")
                manager.wait_for("READY=1")
                service.wait_for_log("sampling this host at 23 Hz")
                for bad, why in (("frequency = 0\n", "--frequency"), ("colour = 3\n", "'colour' is no key"), ("[a]\nb = 1\n", "no sections"),
                                 ("trigger = 'boredom>1s'\n", "nothing that is watched")):
                    write(bad)
                    times = service.said().count("sampling this host at 23 Hz") + 1
                    service.process.send_signal(signal.SIGHUP)
                    service.wait_for_log("sampling this host at 23 Hz", times=times)
                    self.assertIn("the configuration stays as it was", service.said())
                    self.assertIn(why, service.said())
                self.assertEqual(service.stop(), 0)
                manager.wait_for("STOPPING=1")

    def test_a_reload_waits_for_no_push_and_no_question(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder, contextlib.closing(socket.socket()) as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(8)  # takes connections, and never answers
            silent.settimeout(30)
            config = f"{folder}/serve.conf"
            with open(config, "w", encoding="utf-8") as f:
                f.write(f'push = "http://127.0.0.1:{silent.getsockname()[1]}"\n')
            began = time.monotonic()
            with harness.busy_program(), Service("--config", config, window="1s") as service:
                push = self.enterContext(contextlib.closing(silent.accept()[0]))
                # The time that a reload or an end may take: it waits for none of these, and a start is about as much work.
                patience = 10 + 3 * (time.monotonic() - began)
                push.recv(100)  # the request is under way
                with contextlib.closing(http.client.HTTPConnection(*service.address, timeout=60)) as question:
                    question.request("GET", "/debug/pprof/profile?seconds=300", headers=service.headers)
                    time.sleep(2)  # nothing tells that it has been taken
                    begin = time.monotonic()
                    service.process.send_signal(signal.SIGHUP)
                    service.wait_for_log("sampling this host", times=2, seconds=300)
                    took = time.monotonic() - begin
                    self.assertEqual(question.getresponse().status, 503)
                print(f"    reloaded in {took:.1f} s", flush=True)
                self.assertLess(took, patience, "a push may take 20 s, and this question 300 s")
                self.assertNotIn("can't be sent", service.said())
                begin = time.monotonic()
                self.assertEqual(service.stop(), 0)
                self.assertLess(time.monotonic() - begin, patience)

    @harness.in_matrix
    def test_programs_that_come_and_go_leave_little(self):
        """CLRSAMPLER_PROGRAMS (40): so many different ones of 9 MB, each of which runs four times for a moment."""
        if shutil.which("strip") is None:
            raise harness.Missing("strip is not installed")
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-", dir="/dev/shm") as folder:
            subprocess.run(["strip", "-g", "-o", f"{folder}/one", harness.AGENT], check=True)
            with open(f"{folder}/one", "rb") as f:
                program = f.read()
            paths = [f"{folder}/program{i}" for i in range(int(os.environ.get("CLRSAMPLER_PROGRAMS", "40")))]
            for number, path in enumerate(paths):
                with open(path, "wb") as f:
                    f.write(program + str(number).encode())
                os.chmod(path, 0o755)
            with Service("--frequency", 499) as service:
                service.wait_for_windows(1)
                before, peak, over = memory(service.process.pid), collections.Counter(), threading.Event()

                def watch():
                    while not over.wait(0.05):
                        for kind, size in memory(service.process.pid).items():
                            peak[kind] = max(peak[kind], size)
                watching = threading.Thread(target=watch)
                watching.start()
                for _ in range(2):
                    for path in paths:
                        for arguments in (["serve", "--help"], ["ps"]):
                            subprocess.run([path, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                service.wait_for_windows(1)
                over.set()
                watching.join()
                print(f"    {len(paths)} programs: {', '.join(f'{k} {before[k] >> 20} -> {peak[k] >> 20} MiB' for k in before)}", flush=True)
                self.assertLess(peak["pages of files"] - before["pages of files"], 100 << 20)  # 32 MiB, and what comes in a quarter of a second
                self.assertLess(peak["own"] - before["own"], 60 << 20)
                self.assertEqual(service.stop(), 0)

    def test_a_full_disk_is_said_and_survived(self):
        if os.geteuid() != 0:
            self.skipTest("mounting needs root")
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", folder], check=True)
            try:
                with Service(folder=folder, window="1s") as service:
                    service.wait_for_windows(2)
                    newest = service.json("/api/status")["newest"]
                    # Without a buffer: what is left in one is written once more when the file is closed, and fails there.
                    with open(f"{folder}/filler", "wb", buffering=0) as f, contextlib.suppress(OSError):
                        while True:
                            f.write(b"x" * 65536)
                    service.wait_for_log("error: .*history")
                    self.assertIn("hint: ", service.said())
                    end = time.monotonic() + 60  # what is said is counted a moment later
                    while service.sum("clrsampler_windows_total", result="failed") == 0:
                        self.assertLess(time.monotonic(), end, "no window is counted as failed")
                        time.sleep(0.2)
                    self.assertGreaterEqual(service.json("/api/status")["newest"], newest)
                    os.unlink(f"{folder}/filler")
                    service.wait_for_windows(2)
                    self.assertEqual(service.stop(), 0)
            finally:
                subprocess.run(["umount", "-l", folder], check=True)

    def test_a_damaged_history_is_set_aside(self):
        with Service(window="1s") as service:
            service.wait_for_windows(1)
            service.stop()
            for name, begin in (("history.db", 4096), ("history.db-wal", 0)):  # but for what says that it is ours
                with contextlib.suppress(FileNotFoundError), open(f"{service.folder}/{name}", "r+b") as f:
                    f.seek(begin)
                    f.write(os.urandom(os.fstat(f.fileno()).st_size - begin))
            service.start()
            service.wait_for_windows(1)
            self.assertTrue([name for name in os.listdir(service.folder) if "damaged" in name], os.listdir(service.folder))
            self.assertRegex(service.said(), "damaged")

    def test_two_at_a_time_are_refused(self):
        with Service(window="1s") as service:
            second = subprocess.run([harness.AGENT, "serve", *service.arguments], capture_output=True, text=True, timeout=120)
            self.assertEqual(second.returncode, 1, second.stderr)
            self.assertRegex(second.stderr, r"error: .*history.*\n(hint: .*\n)")
            other = subprocess.run([harness.AGENT, "serve", "--no-history", "--listen", f"127.0.0.1:{service.address[1]}"],
                                   capture_output=True, text=True, timeout=120)
            self.assertEqual(other.returncode, 1, other.stderr)
            self.assertIn("hint: ", other.stderr)

    def test_wrong_options_are_said(self):
        for arguments, why in ((["--window", "1h"], "--window 1h"), (["--cgroup", "x"], "--cgroup x"), (["--listen", "everywhere"], "everywhere"),
                               (["--trigger", "pause"], "--trigger pause"), (["--config", "/nonexistent"], "/nonexistent"),
                               (["--memory-limit", "1KiB"], "--memory-limit"), (["--nonsense"], "nonsense"), (["stray"], "stray")):
            done = subprocess.run([harness.AGENT, "serve", *arguments], capture_output=True, text=True, timeout=120)
            self.assertIn(done.returncode, (1, 2), arguments)
            self.assertRegex(done.stderr, "^error: .*" + re.escape(why), arguments)
            self.assertIn("hint: ", done.stderr, arguments)
        done = subprocess.run([harness.AGENT, "serve", "--help"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0)
        self.assertIn("--trigger", done.stdout)

    def test_memory_only_and_a_file_for_node_exporter(self):
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            with Service("--no-history", "--textfile", folder, window="1s", listen="none") as service:
                path, end = f"{folder}/clrsampler.prom", time.monotonic() + 90
                while not os.path.exists(path) and time.monotonic() < end:
                    time.sleep(0.1)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                self.assertIn("clrsampler_host_cpu_seconds_total", text)
                self.assertNotIn("\nprocess_", text)
                self.assertEqual(service.stop(), 0)
                self.assertFalse(os.path.exists(path))
                self.assertFalse(os.path.exists(f"{service.folder}/history.db"))


if __name__ == "__main__":
    harness.main()
