#!/usr/bin/env python3
"""Do the two witnesses of managed frames, unwind data and code bytes, agree: in every ready-to-run function, in every JIT method?

Each check is one run of tools/unwind_check, the program that reads both with the profiler's own code. It is found through UNWIND_CHECK
or CLRSAMPLER_BUILD_DIR.
"""
import glob
import os
import re
import subprocess

import check_program
import harness
import r2r_names_test
import runtimes

BUILD_DIR = os.environ.get("CLRSAMPLER_BUILD_DIR", os.path.join(runtimes.SOURCE, "build", "release"))
PROGRAM = os.environ.get("UNWIND_CHECK", os.path.join(BUILD_DIR, "tools", "unwind_check", "unwind_check"))

FUNCTIONS = r2r_names_test.FUNCTIONS  # of all images of a runtime pack


def check(*arguments):
    """Runs unwind_check; (exit status, output)."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def total(output, name):
    return sum(int(number) for number in re.findall(rf"(?:^|\s){name} (\d+)", output))


class UnwindData(check_program.CheckProgramTest):
    def assert_images_agree(self, what, folder):
        status, output = check("images", *sorted(glob.glob(os.path.join(folder, "*.dll"))))
        self.assertEqual(status, 0, output[-3000:])
        print(f"  {what}: {total(output, 'functions')} functions, {total(output, 'differences')} differences, "
              f"{total(output, 'funclets')} funclets, {total(output, 'epilogues')} end in a known epilogue", flush=True)
        self.assertEqual(total(output, "missing") + total(output, "differences") + total(output, "wrong-funclets"), 0)
        # Two thirds and more end in a return; epilogues that lead where the codes lead must be found in most of them.
        self.assertGreater(total(output, "epilogues"), total(output, "functions") // 2)
        return total(output, "functions")

    def test_every_function_of_the_runtime_packs(self):
        for version, expected in FUNCTIONS.items():
            with self.subTest(version):
                folder = os.path.join(self.need(runtimes.root, version), "shared", "Microsoft.NETCore.App", version)
                self.assertEqual(self.assert_images_agree(version, folder), expected)

    def test_every_function_of_the_installed_frameworks(self):
        text = subprocess.run([self.need(runtimes.dotnet), "--list-runtimes"], capture_output=True, text=True, timeout=300).stdout
        for line in text.splitlines():
            name, version = line.split()[:2]
            with self.subTest(f"{name} {version}"):
                folder = os.path.join(line[line.index("[") + 1:-1], version)
                self.assertGreater(self.assert_images_agree(f"{name} {version}", folder), 1000)

    def test_every_method_of_running_processes(self):
        for version in runtimes.selected():
            self.need(runtimes.command, version, "mix")
            replaced = 0
            for mode in ("mix", "linq", "gc", "expr"):
                with self.subTest(f"{version} {mode}"):
                    with harness.workload(version, mode, "--seconds", 120, "--threads", 2) as target:
                        target.use_cpu(4)  # until methods of all tiers are there
                        target.freeze()    # so that dynamic methods are not freed between two readings
                        status, output = check("process", target.host_pid)
                    print(f"  {version} {mode}: {output.strip()[-400:]}", flush=True)
                    self.assertEqual(status, 0, output[-3000:])
                    self.assertGreater(total(output, "methods"), 50)
                    replaced += total(output, "osr")
            # Methods that were replaced while they ran, judged by the tier that the runtime notes for them.
            self.assertGreater(replaced, 0, version)


if __name__ == "__main__":
    check_program.main(PROGRAM)
