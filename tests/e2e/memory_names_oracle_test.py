#!/usr/bin/env python3
"""Names of running processes, read from outside, against a reader that is not ours: 10,000 addresses of live code a case.

A case is a runtime version, a mode of a test program, a deployment form and an oracle. The target runs without any environment variable.
(With oracle `jitdump` it writes one, which clrsampler is told not to use.) It works for some seconds and is stopped with SIGSTOP. Then
addresses are drawn, and clrsampler and the oracle name them. JIT-compiled code is drawn by the oracle, so that clrsampler can't leave out what
it can't name. Precompiled code, of which few methods are in use, is drawn by clrsampler (with oracle `jitdump` by the oracle too). No type,
method or generic argument may differ, at most 0.1 % may be unnamed, and each reason must be one of EXPLAINED.

  memory_names_oracle_test.py                       a selection, a minute
  CLRSAMPLER_ORACLE=full memory_names_oracle_test.py     everything
  CLRSAMPLER_ORACLE_CASES=REGEX                     only cases whose name (`8.0.30 zoo framework-dependent clrmd`) matches
"""
import collections
import contextlib
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import zlib

import deployments
import harness
import names_oracle
import runtimes

FULL = os.environ.get("CLRSAMPLER_ORACLE") == "full"
ADDRESSES = 10_000
MAX_UNNAMED = 0.001
# An oracle that says nothing proves nothing.
MAX_SILENT = 0.01
# The IL of methods in `zoo` is often in no file, and the compiler may have optimised others at once (docs/frame-names.md).
MAX_TIERS_NOT_TOLD = 0.15
WARM_UP_SECONDS = 3.0
VERSIONS = (*runtimes.PACKED_VERSIONS, *runtimes.LATER_VERSIONS, runtimes.INSTALLED)
DEPENDENT = "framework-dependent"

# Why a live method may have no name: (pattern of the text in brackets, sentence). A reason that is not here fails the test.
EXPLAINED = (
    (r"changed while read", "the stop caught the runtime in the middle of a change"),
    (r"not (yet )?prepared|no entry point", "a precompiled instantiation that no one has called: it can't be in a sample"),
)
# Facts that a runtime does not hold at all. Counted apart, printed, and only accepted where the oracle confirms the owner.
LIMITS = (
    ("8.", re.compile(r"^Emitted\."), ".NET 8 keeps no readable copy of the metadata of assemblies made by Reflection.Emit"),
)

# Modes of tests/apps/workload, and `web`, a program of its own.
MODES = ("zoo", "json", "regex", "linq", "async", "web", "expr", "jit", "startup", "methods")
# The linker would remove what the others load, emit or reflect on at run time (`json` ends at once).
TRIMMED_MODES = ("regex", "linq", "async")
SINGLE_FILE = ("single-file", "single-file-compressed", "single-file-r2r", "single-file-r2r-compressed")
FORMS = ("self-contained", "r2r", "composite", "single-file-framework-dependent", *SINGLE_FILE)
TRIMMED = ("trimmed", "trimmed-r2r")


class Case(collections.namedtuple("Case", "version mode form oracle")):
    def __str__(self):
        return " ".join(self)


def full_matrix():
    for version in VERSIONS:
        for mode in MODES:
            yield Case(version, mode, DEPENDENT, "clrmd")
        for mode in ("zoo", "json"):
            yield Case(version, mode, DEPENDENT, "jitdump")
        for form in FORMS:
            # ClrMD finds no runtime inside a single-file host.
            oracle = "jitdump" if form in SINGLE_FILE else "clrmd"
            for mode in ("zoo", "json", "linq", "expr"):
                yield Case(version, mode, form, oracle)
        for form in TRIMMED:
            if (form, version) in deployments.KNOWN_MISSING:
                print(f"  {version} {form} can't be built: {deployments.KNOWN_MISSING[form, version]}", flush=True)
                continue
            for mode in TRIMMED_MODES:
                yield Case(version, mode, form, "clrmd")


# The zoo has every kind of type and method, so each version meets it.
def selection():
    for version in runtimes.PACKED_VERSIONS:
        yield Case(version, "zoo", DEPENDENT, "clrmd")
    for version, mode in (("8.0.30", "expr"), (runtimes.INSTALLED, "web")):
        yield Case(version, mode, DEPENDENT, "clrmd")
    yield Case("10.0.14", "zoo", DEPENDENT, "jitdump")
    yield Case("9.0.19", "zoo", "single-file-compressed", "jitdump")


def cases():
    chosen = full_matrix() if FULL else selection()
    pattern = re.compile(os.environ.get("CLRSAMPLER_ORACLE_CASES", ""))
    return [case for case in chosen if pattern.search(str(case))]


def command(case):
    """(argv, environment) of a case's program, without the program's arguments."""
    if case.form == DEPENDENT:
        return runtimes.command(case.version, program="web" if case.mode == "web" else "workload")
    return deployments.publish(case.form, case.version), {}


def stop(pid):
    """Stops a process and waits until each of its threads stands still."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 60
    while True:
        states = []
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/stat") as f:  # one that has just ended stands still, too
                states.append(f.read().rsplit(")", 1)[1].split()[0])
        if set(states) == {"T"}:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"process {pid} does not stop: {states}")
        time.sleep(0.01)


def run(arguments, text=None, timeout=180):
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, encoding="utf-8", timeout=timeout)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout


def names(pid, *arguments):
    return run([harness.AGENT, "names", "--pid", str(pid), "--without", "jitdump,perf-map", *map(str, arguments)])


def oracle_names(pid, *arguments, text=None):
    return run([runtimes.dotnet(), runtimes.app("oracle_names"), str(pid), *map(str, arguments)], text)


def hexadecimal(addresses):
    return "".join(f"{address:x}\n" for address in addresses)


class OracleTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Unprepared means unprepared, whatever the shell that runs the tests has set.
        for name in [n for n in os.environ if n.startswith(("DOTNET_PerfMap", "COMPlus_PerfMap"))]:
            del os.environ[name]

    def start(self, case, folder):
        argv, env = command(case)
        if case.oracle == "jitdump":
            env = {**env, "DOTNET_PerfMapEnabled": "2", "DOTNET_PerfMapJitDumpPath": folder}
            if runtimes.jitdump_is_broken(case.version):
                env["DOTNET_PerfMapStubGranularity"] = "2"  # with it the file is written to its end
        return harness.Target([*argv, case.mode, "--seconds", "120"], env=env)

    def draw(self, case, pid, truths):
        """The case's addresses, the same for the same process."""
        seed = zlib.crc32(str(case).encode()) >> 1
        if truths is not None:
            return truths.draw(ADDRESSES, random.Random(seed))
        rows = names_oracle.parse_rows(names(pid, "--random", ADDRESSES + ADDRESSES // 5, "--seed", seed))
        precompiled = [row.address for row in rows if row.kind == "r2r"][:ADDRESSES // 2]
        wanted = ADDRESSES - len(precompiled)  # all of them in a trimmed program without precompiled code
        compiled = [int(line, 16) for line in oracle_names(pid, "draw", wanted, seed).split()]
        self.assertEqual(len(compiled), wanted)
        return compiled + precompiled

    def compare(self, case):
        with tempfile.TemporaryDirectory(prefix="clrsampler-oracle-") as folder, self.start(case, folder) as target:
            time.sleep(WARM_UP_SECONDS)
            target.use_cpu(1, timeout=60)  # on a crowded machine that is longer
            pid = target.host_pid
            stop(pid)
            truths = None
            if case.oracle == "jitdump":
                with open(os.path.join(folder, f"jit-{pid}.dump"), "rb") as f:
                    truths = names_oracle.JitdumpTruths(f.read())
            path = os.path.join(folder, "addresses")
            with open(path, "w") as f:
                f.write(hexadecimal(self.draw(case, pid, truths)))
            rows = names_oracle.parse_rows(names(pid, "--addresses", path))
            # The process stands still, so asking again must give the same answer.
            self.assertEqual(names_oracle.parse_rows(names(pid, "--addresses", path)), rows)
            if truths is None:
                truths = names_oracle.clrmd_truths(oracle_names(pid, text=hexadecimal(row.address for row in rows)))
            return rows, names_oracle.Comparison(rows, truths)

    def limits(self, case, comparison):
        """(count, sentence) of unnamed rows that the runtime itself has no name for."""
        found = collections.Counter()
        for _, truth in comparison.unnamed_rows:
            for prefix, owner, sentence in LIMITS:
                if runtimes.number(case.version).startswith(prefix) and truth is not None and owner.search(truth.type):
                    found[sentence] += 1
        return found

    def check(self, case, rows, comparison):
        limits = self.limits(case, comparison)
        print(f"  {case}: {comparison.summary()}", flush=True)
        for reason, count in comparison.unnamed.most_common():
            why = [sentence for pattern, sentence in EXPLAINED if re.search(pattern, reason)]
            print(f"    unnamed: {count} x {reason}: {'; '.join(why) or 'not explained by this text'}", flush=True)
        for sentence, count in limits.items():
            print(f"    of these {count}: {sentence}", flush=True)
        self.assertEqual(len(rows), ADDRESSES)
        # A process of one method would satisfy any count.
        self.assertGreater(len({(row.type, row.method) for row in rows if row.method}), 150)
        self.assertEqual(comparison.findings(), [])
        if case.form == DEPENDENT:
            self.assertLessEqual(comparison.tiers[""], MAX_TIERS_NOT_TOLD * max(1, sum(comparison.tiers.values())), comparison.tiers)
        # Single-file programs and trimmed ones have little precompiled code, but all compile some.
        self.assertGreater(comparison.kinds["jit"], 0.2 * ADDRESSES)
        self.assertLessEqual(sum(comparison.silent.values()), MAX_SILENT * ADDRESSES,
                             [f"{r.address:x} {r.kind} {r.text}" for r in comparison.silent_rows[:10]])
        unnamed = sum(comparison.unnamed.values()) - sum(limits.values())
        self.assertLessEqual(unnamed, MAX_UNNAMED * ADDRESSES, comparison.unnamed)
        for row, truth in comparison.unnamed_rows:
            explained = any(re.search(pattern, row.text) for pattern, _ in EXPLAINED) or (truth is not None and any(
                runtimes.number(case.version).startswith(prefix) and owner.search(truth.type) for prefix, owner, _ in LIMITS))
            self.assertTrue(explained, f"{row.address:x} {row.text}: the oracle says {truth}")

    def test_names_agree(self):
        chosen = cases()
        self.assertTrue(chosen, "CLRSAMPLER_ORACLE_CASES matches no case")
        compared = 0
        for case in chosen:
            with self.subTest(str(case)):
                try:
                    command(case)
                except runtimes.Missing as reason:
                    if harness.REQUIRE_LIVE:
                        raise
                    print(f"SKIPPED {case}: {reason}", flush=True)
                    continue
                # A stop in the middle of a change is bad luck, and not three times in a row.
                for _ in range(3):
                    rows, comparison = self.compare(case)
                    if sum(count for reason, count in comparison.unnamed.items() if "changed while read" in reason) <= MAX_UNNAMED * ADDRESSES:
                        break
                self.check(case, rows, comparison)
                compared += comparison.equal
        print(f"  {compared} names equal", flush=True)

    def test_stubs_without_a_range(self):
        """The stubs that our reader tells by instructions, against the runtime's own perf map, which has such stubs since .NET 10."""
        kinds = {"DelegateShuffleThunk", "InstantiatingStub", "UnboxingStub"}
        for version in [v for v in VERSIONS if runtimes.number(v).startswith("10.")] if FULL else ("10.0.15",):
            with self.subTest(version):
                self.need_runtime(version)
                argv, env = command(Case(version, "mix", DEPENDENT, "perf-map"))
                with tempfile.TemporaryDirectory(prefix="clrsampler-oracle-") as folder, harness.Target(
                        [*argv, "mix", "--seconds", "120"], env={**env, "DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapJitDumpPath": folder}) as target:
                    target.use_cpu(3, timeout=60)
                    stop(target.host_pid)
                    with open(os.path.join(folder, f"perf-{target.host_pid}.map"), encoding="utf-8", errors="replace") as f:
                        lines = re.findall(r"^(?:0x)?([0-9a-f]+) ([0-9a-f]+) stub(?:<\d+>)? Link<(\w+)>$", f.read(), re.MULTILINE)
                    truths = {int(begin, 16): kind for begin, _, kind in lines if kind in kinds}
                    path = os.path.join(folder, "addresses")
                    with open(path, "w") as f:
                        f.write(hexadecimal(truths))
                    rows = names_oracle.parse_rows(names(target.host_pid, "--addresses", path))
                self.assertEqual(set(truths.values()), kinds)
                self.assertEqual({row.address: (row.kind, row.method) for row in rows}, {a: ("stub", f"stub {kind}") for a, kind in truths.items()})
                print(f"  {version}: {dict(collections.Counter(truths.values()))}: 0 differ", flush=True)


if __name__ == "__main__":
    harness.main()
