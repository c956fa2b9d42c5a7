#!/usr/bin/env python3
"""Are samples on the line that works, and are they where the runtime says that they are?

The program (tests/apps/lines, Kinds.cs) has a thread for each kind of code, and one hot line in each. In code that is not optimised the line has
the samples. In optimised code the judge is the runtime: its own IL map (rundown.py) and System.Reflection.Metadata's sequence points (oracle_pdb).
They say which line each instruction has that perf finds at the same time.
"""
import bisect
import collections
import json
import os
import signal
import subprocess
import tempfile

import harness
import rundown
import runtimes
import stack_truth

VERSIONS = runtimes.NEWEST_OF_EACH if runtimes.MATRIX else runtimes.PACKED_VERSIONS[-1:]
SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "lines", "Kinds.cs")
FREQUENCY = 499
WARM_UP_CPU_SECONDS, CPU_SECONDS = 4, 12 if runtimes.MATRIX else 6
LEAST_SAMPLES = 100
LIFETIME_SECONDS = "900"  # far more than a test takes beside others; it is ended before
# No method is called so often that it is compiled again, and no loop replaces its code.
TIER_0 = {"DOTNET_TC_CallCountingDelayMs": "7FFFFFFF", "DOTNET_TC_OnStackReplacement": "0"}
# A loop without a patchpoint proves no tier, so none is told. This kind has no loop.
WITHOUT_LOOP = "Inlined"
# Kind of code -> what stands in the name of its method. `Inlined` has no code of its own once it is optimised: its work is then in `Inlining`.
METHODS = {"Ordinary": "::Ordinary", "Among": "::Among", "Replaced": "::Replaced", "Awaiting": "<Awaiting>d", "Iterated": "<Iterated>d",
           "Lambda": "<Lambda>b", "Mapped": "::Mapped", "Shared": "::Shared", "OfStruct": "::OfStruct", "Inlined": "::Inlined", "Inlining": "::Inlining"}
NOT_OPTIMISED = [kind for kind in METHODS if kind != "Inlining"]
OPTIMISED = [kind for kind in METHODS if kind != "Inlined"]
# #line says where the hot line of this kind is.
MAPPED = (os.path.join(os.path.dirname(SOURCE), "hot.txt"), 700)
NO_MAPPING, PROLOG, EPILOG = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
OTHER_RULES = {NO_MAPPING: "not mapped", EPILOG: "of epilogs"}

Line = collections.namedtuple("Line", "file number")


def hot_line(kind):
    if kind == "Mapped":
        return Line(*MAPPED)
    with open(SOURCE, encoding="utf-8") as file:
        (number,) = [number for number, text in enumerate(file, 1) if text.rstrip().endswith("// hot: " + kind)]
    return Line(SOURCE, number)


def is_of(name, kind):
    """`name`: in the notation of the runtime."""
    return name.startswith("Lines.") and METHODS[kind] in name


class Truth:
    """The line that an instruction has by the runtime's rule: StackTrace knows its IL map and the sequence points of the PDB."""

    def __init__(self, bodies, pdb_text):
        self.bodies = sorted((body for body in bodies if body.type.startswith("Lines.")), key=lambda body: body.start)
        self.starts = [body.start for body in self.bodies]
        self.files, self.points = {}, collections.defaultdict(list)
        for fields in (line.split("\t") for line in pdb_text.splitlines()):
            if fields[0] == "document":
                self.files[fields[1]] = fields[4]
            elif fields[0] == "point":
                method, il, document, line = fields[1:5]
                self.points[int(method)].append((int(il), Line(self.files[document], int(line)) if line != "0" else None))

    def body_at(self, address):
        place = bisect.bisect_right(self.starts, address) - 1
        return self.bodies[place] if place >= 0 and address < self.starts[place] + self.bodies[place].code_bytes else None

    def every_address(self):
        return [address for body in self.bodies for address in range(body.start, body.start + body.code_bytes)]

    def differs(self, address, ours):
        """Where nothing is mapped the runtime tells the first line, and we tell none. For an epilog it tells the last line, and we the one before."""
        il, line = self.at(address)
        return ours is not None if il == NO_MAPPING else il != EPILOG and ours != line

    def at(self, address):
        """(IL offset or one of the numbers that are none, line)"""
        body = self.body_at(address)
        _, il = max((native, il) for il, native in body.pairs if native <= address - body.start)
        points = self.points[body.token & 0xFFFFFF]
        if not points:
            return il, None
        offset = {NO_MAPPING: 0, PROLOG: 0, EPILOG: points[-1][0]}.get(il, il)
        visible = [line for at, line in points if at <= offset and line]
        return il, visible[-1] if visible else None


class HotLinesTest(harness.LiveTest):
    NEEDS = ("dotnet", "perf")

    def record(self, target, folder):
        """Our samples, by (kind's method in the runtime's notation, tier, line), and the addresses that perf finds at the same time."""
        ours, theirs, said = (os.path.join(folder, name) for name in ("ours.json", "perf.data", "perf.err"))
        with open(said, "wb") as err:
            perf = subprocess.Popen(["perf", "record", "-q", "-F", str(FREQUENCY), "-e", "cpu-clock", "-p", str(target.host_pid), "-o", theirs],
                                    stdout=subprocess.DEVNULL, stderr=err)
        agent = harness.Agent(("--pid", str(target.host_pid), "--frequency", str(FREQUENCY), "--lines", "--quiet", "-o", ours), output=False)
        target.use_cpu(CPU_SECONDS)
        agent.interrupt()
        perf.send_signal(signal.SIGINT)
        self.assertEqual(agent.finish(120).status, 0)
        perf.wait(120)
        script = subprocess.run(["perf", "script", "-i", theirs, "-F", "ip"], capture_output=True, text=True, timeout=180)
        text = script.stdout
        with open(said, encoding="utf-8", errors="replace") as err:
            self.assertNotEqual(text, "", f"perf record: status {perf.returncode}: {err.read()}; perf script: {script.stderr}")
        with open(ours, encoding="utf-8") as file:
            return self.leaves(json.load(file)), [int(line, 16) for line in text.split()]

    @staticmethod
    def leaves(profile):
        strings, frames, nodes = profile["strings"], profile["frames"], profile["nodes"]
        counts = collections.Counter()
        for at, node in enumerate(profile["samples"]["stack"]):
            while node and profile["frame_kinds"][frames["kind"][nodes["frame"][node]]] == "kernel":
                node = nodes["parent"][node]
            frame = nodes["frame"][node]
            line = Line(strings[frames["source_file"][frame]], frames["line"][frame]) if frames["line"][frame] else None
            counts[strings[frames["system_name"][frame]], strings[frames["tier"][frame]], line] += profile["samples"].get("weight", {at: 1})[at]
        return counts

    def ours_at(self, target, addresses, folder):
        """{address: (name in the runtime's notation, line)} of our program, as of the leaves of stacks."""
        path = os.path.join(folder, "addresses")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{address:x}\n" for address in addresses)
        done = subprocess.run([harness.AGENT, "names", "--pid", str(target.host_pid), "--names", "raw", "--lines", "--addresses", path],
                              capture_output=True, text=True, timeout=120, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        return {int(row[0], 16): (f"{row[3]}::{row[4]}", Line(row[8], int(row[9])) if row[9] != "0" else None) for row in rows}

    def test_code_that_is_not_optimised(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.need_runtime(version)
                command, environment = runtimes.command(version, "kinds", LIFETIME_SECONDS, program="lines")
                with harness.Target(command, env={**environment, **TIER_0}) as target, tempfile.TemporaryDirectory() as folder:
                    target.use_cpu(WARM_UP_CPU_SECONDS)
                    samples, _ = self.record(target, folder)
                for kind in NOT_OPTIMISED:
                    found = {key: count for key, count in samples.items() if is_of(key[0], kind)}
                    total, on_line = sum(found.values()), sum(count for key, count in found.items() if key[2] == hot_line(kind))
                    print(f"  {version} not optimised | {kind} | {total} | {100 * on_line / max(total, 1):.1f} %", flush=True)
                    # Methods beside the hot one, such as the constructor of an iterator, may have another tier.
                    tiers = {tier for _, tier, line in found if line == hot_line(kind)}
                    self.assertEqual(tiers, {"QuickJitted" if kind == WITHOUT_LOOP else ""}, found)
                    self.assertGreater(total, LEAST_SAMPLES, kind)
                    self.assertLessEqual(total - on_line, stack_truth.allowed_faults(total, 0.99), found)

    def test_optimised_code(self):
        pdb = subprocess.run([runtimes.dotnet(), runtimes.app("oracle_pdb"), runtimes.app("lines").removesuffix("dll") + "pdb"],
                             capture_output=True, text=True, timeout=60, check=True).stdout
        for version in VERSIONS:
            with self.subTest(version):
                self.need_runtime(version)
                command, environment = runtimes.command(version, "kinds", LIFETIME_SECONDS, program="lines")
                with harness.Target(command, env=environment) as target, tempfile.TemporaryDirectory() as folder:
                    target.use_cpu(WARM_UP_CPU_SECONDS)
                    samples, addresses = self.record(target, folder)
                    truth = Truth(rundown.bodies(rundown.collect(target.host_pid)), pdb)
                    ours = self.ours_at(target, truth.every_address(), folder)
                differ = [(hex(address), answer, truth.at(address)) for address, answer in ours.items() if truth.differs(address, answer[1])]
                places = collections.Counter(OTHER_RULES.get(truth.at(address)[0], "by the same rule") for address in ours)
                print(f"  {version}: addresses {dict(places)}, {len(differ)} differ", flush=True)
                self.assertEqual(differ[:3], [])
                self.assertGreater(len(ours), 2000)
                for kind in OPTIMISED:
                    self.check_optimised(version, kind, samples, [address for address in addresses if is_of(ours.get(address, ("",))[0], kind)], truth)

    def check_optimised(self, version, kind, samples, addresses, truth):
        """`addresses`: those of the kind that perf has found, again and again."""
        found = {key: count for key, count in samples.items() if is_of(key[0], kind)}
        total, on_line = sum(found.values()), sum(count for key, count in found.items() if key[2] == hot_line(kind))
        theirs = sum(truth.at(address)[1] == hot_line(kind) for address in addresses)
        print(f"  {version} optimised | {kind} | {total} | {100 * on_line / max(total, 1):.1f} % | {len(addresses)} | "
              f"{100 * theirs / max(len(addresses), 1):.1f} %", flush=True)
        self.assertGreater(min(total, len(addresses)), LEAST_SAMPLES, kind)
        self.assertIn("OptimizedTier1OSR" if kind == "Replaced" else "OptimizedTier1", {key[1] for key in found})


if __name__ == "__main__":
    harness.main()
