"""Runs the profiler and its targets for the live tests. Standard library only."""
import contextlib
import ctypes
import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import folded
import runtimes
import stack_truth

AGENT = os.environ.get("CLRSAMPLER", os.path.join(runtimes.SOURCE, "build", "release", "clrsampler"))
MINIJIT = os.environ.get("MINIJIT", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps", "minijit"))
REQUIRE_LIVE = os.environ.get("CLRSAMPLER_REQUIRE_LIVE") == "1"
SKIP_EXIT = 77  # what CTest shows as "Skipped"
_STARTED = time.monotonic()
QUIET_WORK_NS = 11e6  # slowness(), CPython 3.11 on a CPU of an EPYC

# The beginning of a command line: as a user without rights.
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

Missing = runtimes.Missing


class Result:
    """One run of the profiler."""

    def __init__(self, status, out, err, stats, seconds, stdout=b""):
        self.status, self.out, self.err, self.stats = status, out, err, stats
        self.seconds = seconds
        self.stdout = stdout  # with --output only what a command said
        self._profile = None

    @property
    def profile(self):
        if self._profile is None:
            self._profile = folded.parse(self.out)
        return self._profile

    def __str__(self):
        return f"status {self.status}, {self.seconds:.1f} s, stats {json.dumps(self.stats)}\n--- standard error ---\n{self.err[-4000:]}"


class Agent:
    """The profiler while it runs. Folded text and stats go to a private folder, which `folder` may name. agent: how it is called."""

    def __init__(self, arguments, env=None, agent=None, cwd=None, output=True, folder=None):
        self.dir = tempfile.mkdtemp(prefix="clrsampler-test-")
        if folder:
            shutil.rmtree(self.dir)
            self.dir = tempfile.mkdtemp(dir=folder)
            os.chown(self.dir, os.stat(folder).st_uid, -1)
        self.stats_path = os.path.join(self.dir, "stats.json")
        self.folded_path = os.path.join(self.dir, "out.folded")
        command = [*(agent or [AGENT]), "record"]
        if output:
            command += ["--output", self.folded_path, "--stats", self.stats_path]
        self.command = command + list(arguments)
        self.out_file = open(os.path.join(self.dir, "stdout"), "w+b")
        self.err_file = open(os.path.join(self.dir, "stderr"), "w+b")
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=self.out_file, stderr=self.err_file, stdin=subprocess.DEVNULL,
                                        cwd=cwd, env=dict(os.environ, **(env or {})), preexec_fn=_die_with_parent)

    def interrupt(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def wait_until_sampling(self, timeout=120):
        """Until the program waits for its first samples."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            # It says what it does just before it begins, and has begun when it waits.
            with contextlib.suppress(OSError), open(f"/proc/{self.process.pid}/wchan") as f:
                if re.search("sampling |following |counting ", self.stderr_so_far()) and "poll" in f.read():
                    return
            time.sleep(0.01)
        self.process.kill()
        self.finish(60)
        raise AssertionError(f"the profiler did not begin to sample: {' '.join(self.command)}")

    def stderr_so_far(self):
        with open(os.path.join(self.dir, "stderr"), "rb") as f:
            return f.read().decode("utf-8", "replace")

    def finish(self, timeout):
        """Waits; a run that does not end in time is killed and raises."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the profiler did not end within {timeout} s: {' '.join(self.command)}\n{self.stderr_so_far()[-3000:]}") from None
        finally:
            self.out_file.close()
            self.err_file.close()
        seconds = time.monotonic() - self.began
        err = self.stderr_so_far()
        path = self.folded_path if os.path.exists(self.folded_path) else os.path.join(self.dir, "stdout")
        with open(path, "rb") as f:
            out = f.read()
        with open(os.path.join(self.dir, "stdout"), "rb") as f:
            stdout = f.read().decode("utf-8", "replace")
        stats = None
        if os.path.exists(self.stats_path):
            with open(self.stats_path) as f:
                stats = json.load(f)
        keep = os.environ.get("CLRSAMPLER_KEEP")
        if keep:
            shutil.copytree(self.dir, os.path.join(keep, os.path.basename(self.dir)))
        shutil.rmtree(self.dir, ignore_errors=True)
        return Result(self.process.returncode, out, err, stats, seconds, stdout)


def record(*arguments, timeout=150, **options):
    return Agent(arguments, **options).finish(timeout)


@contextlib.contextmanager
def busy_program():
    """So that there is something to sample: on an idle host there may be none for a while."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=_die_with_parent) as program:
        try:
            yield program
        finally:
            program.kill()


def bound_port():
    """(socket, port): nobody listens there, and nobody else gets it as long as the socket is open."""
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    return one, one.getsockname()[1]


def start_prometheus(folder):
    """(process, port), once it listens. Another one may be faster with a port that was free."""
    for _ in range(5):
        free, port = bound_port()
        free.close()
        process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=_die_with_parent)
        end = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=20):
                return process, port
            time.sleep(0.1)
        process.kill()
        process.wait()
    raise AssertionError("prometheus does not start")


def is_running(pid):
    """False too for a process that has ended and is not waited for: the process that inherits it may never do that."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def slowness():
    """How much slower this machine is now than where bounds on times were set; at least 1. CPU time is compared: waiting for a CPU is none of it."""
    def work():
        begin = time.thread_time_ns()
        sum(i * i % 7 for i in range(200_000))
        return time.thread_time_ns() - begin
    return max(1.0, min(work() for _ in range(5)) / QUIET_WORK_NS)


def in_namespace(command):
    """Runs a command in a pid and a mount namespace with a /tmp of its own. A checkout that lies below /tmp is carried over."""
    script = """
        kept=$1; shift
        case $kept in /tmp/*) mount --bind "$kept" /mnt ;; esac
        mount -t tmpfs tmpfs /tmp
        case $kept in /tmp/*) mkdir -p "$kept" && mount --bind /mnt "$kept" ;; esac
        exec "$@" """
    return ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", script, "sh", runtimes.SOURCE, *command]


def _die_with_parent():
    """In a new child: a test that is killed leaves nothing behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Target:
    """A process to profile. `host_pid` is its pid as this test sees it, `pid` the one it has for itself."""

    def __init__(self, command, env=None, namespace=False, ready=True):
        self.command = command
        if namespace:
            command = in_namespace(command)
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.err, stdin=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, **(env or {})), start_new_session=True, preexec_fn=_die_with_parent)
        self.pid = self.host_pid = self.process.pid
        self.output = []
        if ready:
            for line in self.process.stdout:
                self.output.append(line)
                if line.startswith("ready "):
                    self.pid = int(line.split()[1])
                    break
            else:
                said = self._stderr()
                self.stop()
                raise AssertionError(f"target ended before it was ready: {' '.join(command)}: {said}")
        if namespace:
            self.host_pid = self._only_child(self.process.pid)

    def _stderr(self):
        self.err.seek(0)
        return self.err.read().decode("utf-8", "replace")[-2000:]

    @staticmethod
    def _only_child(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            (child,) = f.read().split()
        return int(child)

    def signal(self, number):
        os.kill(self.host_pid, number)

    def end(self):
        """Asks the modes that end on SIGTERM to end as if their time were over; what it says it did."""
        self.signal(signal.SIGTERM)
        return self.truth()

    def comm(self):
        with open(f"/proc/{self.host_pid}/comm") as f:
            return f.read().strip()

    def freeze(self):
        """Stops it. From when this returns until `signal(SIGCONT)` it uses no CPU time."""
        self.signal(signal.SIGSTOP)
        while any(state not in "Tt" for state in self._thread_fields("State")):
            time.sleep(0.001)

    def cpu_ns(self):
        """The time that its own CLOCK_PROCESS_CPUTIME_ID shows."""
        return time.clock_gettime_ns((~self.host_pid << 3) | 2)

    def use_cpu(self, seconds, timeout=120):
        """Waits until it has used that much more CPU time: a fixed number of samples, on a crowded machine too."""
        begin, deadline = self.cpu_ns(), time.monotonic() + timeout
        while self.cpu_ns() - begin < seconds * 1e9 and time.monotonic() < deadline:
            time.sleep(0.01)

    def outrank(self):
        """Gets it three times the CPU time of tests and builds beside this one: what must happen so many times a second then does, and the agent
        is not kept from its own work. Kernels that group tasks by session rank groups first, and a target has one of its own."""
        with contextlib.suppress(OSError), open(f"/proc/{self.host_pid}/autogroup", "w") as f:
            f.write("-5")
        for thread in os.listdir(f"/proc/{self.host_pid}/task"):
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, int(thread), -5)
        return self

    def stays(self):
        """How often its threads came off a CPU so far; of those that live."""
        fields = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
        return sum(int(count) for field in fields for count in self._thread_fields(field))

    def _thread_fields(self, field):
        for thread in os.listdir(f"/proc/{self.host_pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{self.host_pid}/task/{thread}/status") as f:
                yield re.search(rf"^{field}:\s+(\w+)", f.read(), re.MULTILINE).group(1)

    def truth(self, timeout=180):
        """Waits for the target's own end; what it says it did."""
        try:
            rest, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError(f"target did not end: {' '.join(self.command)}") from None
        self.output += rest.splitlines(keepends=True)
        if self.process.returncode != 0:
            raise AssertionError(f"target ended with status {self.process.returncode}: {self._stderr()}")
        for line in self.output:
            if line.startswith("truth "):
                return json.loads(line[6:])
        return None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.host_pid, signal.SIGKILL)

    def stop(self):
        if self.process.poll() is None:
            self.kill()
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.err.close()
        for name in ("perf-{}.map", "jit-{}.dump", "perfinfo-{}.map"):
            for pid in {self.pid, self.process.pid}:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join("/tmp", name.format(pid)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def workload(version, mode, *arguments, perf_map=None, namespace=False, ready=True, env=None):
    """Starts a mode of tests/apps/workload on a runtime. perf_map: value of DOTNET_PerfMapEnabled."""
    command, additions = runtimes.command(version, mode, *map(str, arguments))
    if perf_map is not None:
        additions["DOTNET_PerfMapEnabled"] = str(perf_map)
    if mode == "gc":
        # 4 MiB between two collections. Else the size of the machine's cache decides: 2 or 25 of them a second were seen.
        additions["DOTNET_GCgen0size"] = "400000"
    return Target(command, env={**additions, **(env or {})}, namespace=namespace, ready=ready)


def steal_seconds():
    """Time that a hypervisor has taken from this machine's CPUs. A timer that comes due meanwhile fires afterwards, so each such moment
    may count a sample that belongs to no CPU time: 110 of 2,500 were seen."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def period_ns(frequency):
    """Between two samples of a CPU: a little more than the rate's fraction of a second, for the sake of programs with a beat
    (capture/sampling_period.h)."""
    return 1_006_180_340 // frequency


def python_with(module):
    """The interpreter of the tests, or the system's, which Debian's packages are for; None: neither has that module."""
    for program in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([program, "-c", f"import {module}"], capture_output=True, timeout=120, check=False).returncode == 0:
                return program
    return None


class Window:
    """The work of a target while it was sampled: `cpu_ns` CPU time in `stays` stays of its threads on a CPU, between two monotonic times."""

    def __init__(self, cpu_ns, stays, begin_ns, end_ns, steal_seconds):
        self.cpu_ns, self.stays, self.steal_seconds = cpu_ns, stays, steal_seconds
        self.begin_ns, self.end_ns = begin_ns, end_ns

    def samples(self, frequency):
        return self.cpu_ns / period_ns(frequency)

    def noise(self):
        """5 sigma of the samples. A CPU is sampled at fixed intervals, so each stay counts less than one sample too many or too few,
        with a variance of at most 1/4."""
        return 2 + 5 * (self.stays / 4) ** 0.5


def record_window(target, cpu_seconds, frequency, *arguments, during=None):
    """Samples the target from standstill to standstill, so that its CPU clock tells exactly what was sampled: (result, window).
    Ends when it has used that much CPU time, on a crowded machine too, and `during(agent)`, called then, has returned. The target
    runs on afterwards."""
    target.freeze()
    agent = Agent(("--pid", str(target.host_pid), "--frequency", str(frequency), *arguments))
    agent.wait_until_sampling()
    cpu, stays, steal = target.cpu_ns(), target.stays(), steal_seconds()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    target.signal(signal.SIGCONT)
    target.use_cpu(cpu_seconds)
    if during:
        during(agent)
    target.freeze()
    window = Window(target.cpu_ns() - cpu, target.stays() - stays + 1, begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                    steal_seconds() - steal)
    agent.interrupt()
    result = agent.finish(120)
    target.signal(signal.SIGCONT)
    return result, window


def record_to_end(target, frequency, *arguments):
    """Samples the target from now, where it stands still, to its own end. `unsampled_ns` of the result: the CPU time that it had used before."""
    target.freeze()
    unsampled_ns = target.cpu_ns()
    agent = Agent(("--pid", str(target.host_pid), "--frequency", str(frequency), *arguments))
    agent.wait_until_sampling()
    target.signal(signal.SIGCONT)
    result = agent.finish(120)
    result.unsampled_ns = unsampled_ns
    return result


def sigma(share, samples):
    """Standard deviation of a share that is estimated from this many samples."""
    return (max(share * (1 - share), 1 / max(samples, 1)) / max(samples, 1)) ** 0.5


def remove_leftovers(since):
    """Removes what .NET and JIT compilers have left in /tmp since then (a wall clock) for processes that are gone. A test much later may take it
    for that of a process with the same number."""
    for pattern in ("perf-*.map", "perfinfo-*.map", "jit-*.dump", "dotnet-diagnostic-*-socket", "clr-debug-pipe-*"):
        for path in glob.glob(os.path.join("/tmp", pattern)):
            pid = re.search(r"-(\d+)", os.path.basename(path))
            with contextlib.suppress(OSError):
                if pid and not os.path.exists(f"/proc/{pid.group(1)}") and os.lstat(path).st_mtime >= since:
                    os.unlink(path)


class LiveTest(unittest.TestCase):
    """Base of tests that load BPF. NEEDS: what else must be there: "dotnet", "minijit", or a program on PATH."""

    NEEDS = ()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(remove_leftovers, time.time() - 1)  # times of files are those of the last clock tick
        try:
            cls.check_needs()
        except Missing as reason:
            cls.unavailable(str(reason))

    @classmethod
    def check_needs(cls):
        if not os.access(AGENT, os.X_OK):
            raise Missing(f"no program at {AGENT}; build it, or name it in CLRSAMPLER")
        if os.geteuid() != 0:
            raise Missing("sampling needs root")
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            raise Missing("the kernel has no BTF (/sys/kernel/btf/vmlinux)")
        for need in cls.NEEDS:
            if need == "dotnet":
                runtimes.dotnet()
                runtimes.workload()
            elif need == "minijit":
                if not os.access(MINIJIT, os.X_OK):
                    raise Missing(f"no mini-JIT at {MINIJIT}; build it, or name it in MINIJIT")
            elif not shutil.which(need):
                raise Missing(f"no `{need}` on PATH")

    @classmethod
    def unavailable(cls, reason):
        """Skips loudly; a failure where live tests are required."""
        print(f"SKIPPED {cls.__name__}: {reason}", file=sys.stderr, flush=True)
        if REQUIRE_LIVE:
            raise AssertionError(f"CLRSAMPLER_REQUIRE_LIVE=1, but: {reason}")
        raise unittest.SkipTest(reason)

    def need_runtime(self, version):
        try:
            runtimes.command(version, "idle")
        except Missing as reason:
            self.unavailable(str(reason))

    @contextlib.contextmanager
    def agent_for_nobody(self):
        """A copy of the program, which AS_NOBODY can run: the build folder may be closed to others."""
        if not shutil.which(AS_NOBODY[0]):
            self.unavailable(f"no `{AS_NOBODY[0]}` on PATH")
        with tempfile.TemporaryDirectory(prefix="clrsampler-test-") as folder:
            os.chmod(folder, 0o755)
            agent = shutil.copy(AGENT, folder)
            os.chmod(agent, 0o755)
            yield agent

    def margin(self, difference, allowed):
        """CLRSAMPLER_MARGINS: a file that receives `test difference allowed` of each statistical bound, to see how close chance comes."""
        if "CLRSAMPLER_MARGINS" in os.environ:
            with open(os.environ["CLRSAMPLER_MARGINS"], "a") as f:
                f.write(f"{self.id()} {difference:.6g} {allowed:.6g}\n")

    def assert_within(self, difference, allowed, message):
        """A statistical bound."""
        self.margin(difference, allowed)
        self.assertLessEqual(difference, allowed, message)

    # Checks what holds for every run, whatever was profiled.
    def check_result(self, result, minimum_samples=1, status=0):
        self.assertEqual(result.status, status, result)
        faults = folded.check(result.out)
        self.assertEqual(faults[:20], [], f"{len(faults)} faults in the folded text")
        self.check_stats(result)
        # `expected` comes from the kernel's account of CPU time: on a crowded machine the target may not have got its share.
        self.assertGreaterEqual(result.profile.total, min(minimum_samples, 0.8 * result.stats["samples"]["expected"]), result)
        self.assertGreater(result.profile.total, 0, result)
        return result.profile

    def check_stats(self, result):
        stats = result.stats
        self.assertIsNotNone(stats, result)
        samples, lost = stats["samples"], stats["samples"]["lost"]
        for count in [samples["expected"], samples["taken"], samples["written"], *lost.values()]:
            self.assertIsInstance(count, int, stats)
            self.assertGreaterEqual(count, 0, stats)
        self.assertEqual(samples["written"], result.profile.total, "stats and folded text disagree")
        # Taken is what reached the program; all other losses happen before that, where the kernel side can't hand a sample over.
        left_out = lost.get("damaged_record", 0) + lost.get("queue_full", 0)
        self.assertEqual(samples["taken"] - samples["written"], left_out, f"samples vanished uncounted: {stats}")
        stacks = stats["stacks"]
        self.assertEqual(stacks["complete"] + stacks["truncated"] + stacks["broken"], samples["written"], stats)
        for kind in ("managed", "native", "kernel"):
            self.assertGreaterEqual(min(stats["frames"][kind]["named"], stats["frames"][kind]["unnamed"]), 0, stats)
        named, unnamed = result.profile.managed_unnamed()
        self.assertEqual((stats["frames"]["managed"]["named"], stats["frames"]["managed"]["unnamed"]), (named, unnamed),
                         "managed frames: stats and folded text disagree")
        self.assertGreaterEqual(stats["self"]["cpu_seconds"], 0)
        self.assertGreater(stats["self"]["peak_rss_bytes"], 0)
        for process in stats["processes"]:
            self.assertIsInstance(process["pid"], int)
            self.assertIsInstance(process["comm"], str)
            self.assertIsInstance(process["symbol_sources"], list)

    def check_window(self, result, window, frequency):
        """The account against the target's own clock."""
        samples, true = result.stats["samples"], window.samples(frequency)
        # User and system time come in ticks of 10 ms, at the beginning and at the end.
        self.assert_within(abs(samples["expected"] - true), 0.04 * frequency + 1, f"{true} by the target's clock: {samples}")
        # A hypervisor that takes the CPU away also takes and gives samples: 1 % beside the noise, and what /proc/stat knows of.
        said, told = f"{true} by the target's clock, {window.stays} stays: {samples}", samples["taken"] + sum(samples["lost"].values())
        noise = 0.01 * true + window.noise() + window.steal_seconds * frequency
        self.assert_within(told - true, noise, said)
        # Some hypervisors do not say what they take. The account does: the sampling clock did not run then.
        clock = samples.get("clock") or {"due": 0, "ran": 0}
        self.assert_within(true - told, noise + max(0, clock["due"] - clock["ran"]), said)
        self.assertGreater(told, 0.9 * true, said)

    def check_managed_named(self, result, minimum=0.99, minimum_frames=200):
        named, unnamed = result.profile.managed_unnamed()
        self.assertGreaterEqual(named + unnamed, minimum_frames, f"too few managed frames for a statement\n{result}")
        worst = [f"{c} {f}" for f, c in result.profile.frames("j").most_common() if folded.is_unnamed(f)][:10]
        # `minimum` is the share that it names; among few frames there may be more without a name by chance.
        self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, minimum),
                             f"of {named + unnamed} managed frames are unnamed: " + "; ".join(worst) + f"\n{result.err[-2000:]}")
        # And each kind for itself: compiled code is often so frequent that precompiled code could hide behind it.
        sources, reasons = result.stats["frames"]["by_source"], result.stats["frames"]["unnamed_reasons"]
        for kind, names in (("jit", ("jitdump", "perf-map")), ("r2r", ("r2r-image", "r2rmap"))):
            named = sum(sources[name] for name in names)
            unnamed = sum(count for reason, count in reasons.items() if reason.startswith(f"[{kind}"))
            if named + unnamed >= minimum_frames:
                self.assertLessEqual(unnamed, stack_truth.allowed_faults(named + unnamed, minimum), f"{kind}: of {named + unnamed}: {reasons}")

    def check_account_text(self, result):
        """No crash text, whatever happened."""
        self.assertNotRegex(result.err, re.compile("terminate called|Segmentation|AddressSanitizer|runtime error:|Check failed|Aborted"))


def in_matrix(case):
    """A test, or a class of tests, that `ctest -L matrix` alone runs: too long for every change. By its name it runs anywhere."""
    case.in_matrix = True
    return case


class _SelectingLoader(unittest.TestLoader):
    def getTestCaseNames(self, testCaseClass):
        names = super().getTestCaseNames(testCaseClass)
        if runtimes.MATRIX:
            return names
        if getattr(testCaseClass, "in_matrix", False):
            return []
        return [name for name in names if not getattr(getattr(testCaseClass, name), "in_matrix", False)]


class _TimedResult(unittest.TextTestResult):
    """Says of each test how long it took."""

    def startTest(self, test):
        self._began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        self.stream.writeln(f"    {time.monotonic() - self._began:.1f} s")
        super().stopTest(test)


def main():
    """Entry of each test file: unittest, but an all-skipped run ends with CTest's skip status."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=_TimedResult)
    program = unittest.main(module="__main__", exit=False, testRunner=runner, testLoader=_SelectingLoader())
    result = program.result
    # CI runs tests that mostly wait beside more others (tests/e2e/CMakeLists.txt).
    used = sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{used:.1f} s of CPU time in {time.monotonic() - _STARTED:.1f} s", flush=True)
    if result.testsRun == 0 and not result.skipped:
        sys.exit("error: no test was selected")
    if not result.wasSuccessful():
        sys.exit(1)
    # A class whose setUpClass skips counts as one skip and no test.
    sys.exit(SKIP_EXIT if result.skipped and len(result.skipped) >= max(result.testsRun, 1) else 0)
