#!/usr/bin/env python3
"""Are the IL maps that we read from a process's memory those that its runtime tells? Every compiled body of a program on each version,
for x64 and for arm64.

The runtime tells its maps in the rundown at the end of an event session (rundown.py): without entries of call instructions, each IL offset
once in a row, in the order of IL offsets. Ours are brought into that form, and nothing else is changed. IL_MAPS is the program that reads
memory with the profiler's own code. The runtime tells no maps of dynamic methods.
"""
import collections
import functools
import os
import platform
import subprocess
import time
import unittest

import check_program
import emulated
import harness
import rundown
import runtimes

IL_MAPS = os.environ.get("IL_MAPS", os.path.join(runtimes.SOURCE, "build", "release", "tests", "apps", "il_maps"))
VERSIONS = (*runtimes.PACKED_VERSIONS, *runtimes.LATER_VERSIONS)
LEAST_PAIRS = 10_000
MODES = ("zoo", "linq", "async")
WARM_UP_SECONDS = 3.0
CALL_INSTRUCTION = 1


def form_of(version):
    """The form of debug information, as il_maps calls it."""
    return max(form for form in (8, 10, 11) if form <= int(version.split(".")[0]))


def ask(pid, version, questions, *mode):
    """Lines of il_maps, in fields."""
    done = subprocess.run([IL_MAPS, str(pid), str(form_of(version)), *mode], input="".join(questions), capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [line.split(" ") for line in done.stdout.splitlines()]


def read_maps(pid, version, bodies):
    """{start: fields of the line}"""
    return {int(fields[0], 16): fields for fields in ask(pid, version, (f"{body.start:x} {body.code_bytes:x}\n" for body in bodies))}


def as_told(entries):
    """Our entries as the runtime tells its own: (IL, native) in their order."""
    pairs = []
    for native, il, sources in (map(int, entry.split(":")) for entry in entries):
        if not sources & CALL_INSTRUCTION and (not pairs or pairs[-1][0] != il & 0xFFFFFFFF):
            pairs.append((il & 0xFFFFFFFF, native))
    return sorted(pairs)


class IlMapsOracleTest(check_program.CheckProgramTest):
    def compare(self, name, target, version):
        """Pairs of IL and native offset of the bodies of a program that has just begun; all of them are equal."""
        time.sleep(WARM_UP_SECONDS)
        target.use_cpu(1, timeout=60)
        bodies = rundown.bodies(rundown.collect(target.host_pid))
        ours = read_maps(target.host_pid, version, bodies)
        differ = [(hex(body.start), body.pairs, ours[body.start]) for body in bodies if sorted(body.pairs) != as_told(ours[body.start][4:])]
        pairs = sum(len(body.pairs) for body in bodies)
        print(f"  {name}: {len(bodies)} bodies, {pairs} pairs, {len(differ)} differ", flush=True)
        self.assertEqual(differ[:3], [])
        self.assertGreater(len(bodies), 300)
        return pairs

    def test_every_map_is_that_of_the_runtime(self):
        for version in VERSIONS:
            with self.subTest(version):
                pairs = 0
                for mode in MODES:
                    command, environment = self.need(runtimes.command, version, mode, "--seconds", "120")
                    with harness.Target(command, env=environment) as target:
                        pairs += self.compare(f"{version} {mode}", target, version)
                self.assertGreaterEqual(pairs, LEAST_PAIRS)

    @unittest.skipUnless(platform.machine() == "x86_64", "the emulator runs on x64")
    def test_every_map_of_arm64_is_that_of_the_runtime(self):
        """Under qemu-user, which has the program's memory at the program's addresses."""
        for version in runtimes.ARM64_VERSIONS:
            with self.subTest(version):
                command, environment = self.need(emulated.command, "workload", version, "zoo", "--seconds", "300")
                with harness.Target(command, env=environment) as target:
                    self.assertGreaterEqual(self.compare(f"{version} arm64 zoo", target, version), LEAST_PAIRS)

    def test_calls_are_where_stack_traces_have_them(self):
        """Code is compiled once here, so that a token of a type has one body, but for generic ones."""
        for version in VERSIONS:
            with self.subTest(version):
                command, environment = self.need(functools.partial(runtimes.command, version, program="il_offsets"))
                once = {"DOTNET_TieredCompilation": "0", "DOTNET_ReadyToRun": "0"}
                with harness.Target(command, env={**environment, **once}) as target:
                    frames = {tuple(line.split()) for line in target.output if not line.startswith("ready")}
                    bodies = collections.defaultdict(list)
                    for body in rundown.bodies(rundown.collect(target.host_pid)):
                        bodies[body.token, body.type].append(body)
                    known = [(frame, bodies[int(frame[0], 16), frame[3]][0]) for frame in sorted(frames)
                             if len(bodies[int(frame[0], 16), frame[3]]) == 1]
                    answers = ask(target.host_pid, version, (f"{body.start:x} {body.code_bytes:x} {frame[1]}\n" for frame, body in known), "callers")
                equal = [answer for (frame, _), answer in zip(known, answers) if answer[4] == str(int(frame[2], 16))]
                # Where nothing is mapped the runtime says 0, and we say nothing.
                silent = [frame for (frame, _), answer in zip(known, answers) if answer[4] == "-" and frame[2] == "0"]
                wrong = [(frame, answer) for (frame, _), answer in zip(known, answers)
                         if answer[4] != str(int(frame[2], 16)) and (answer[4] != "-" or frame[2] != "0")]
                kinds = dict(collections.Counter(answer[5] for answer in equal))
                print(f"  {version}: {len(frames)} frames, {len(known)} known, {len(equal)} equal {kinds}, {len(silent)} silent", flush=True)
                self.assertEqual(wrong, [])
                self.assertGreater(len(equal), 40)
                self.assertLess(len(silent), 4)


if __name__ == "__main__":
    check_program.main(IL_MAPS)
