#!/usr/bin/env python3
"""Machine IR Profiles of a real program: built with gcc and counters as docs/mip.md says, run, merged, shown. No root, no .NET.

The expected output is known from the program's text and its arguments, from `nm` and from the line numbers of the text.
"""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import runtimes

AGENT = os.environ.get("CLRSAMPLER", os.path.join(runtimes.SOURCE, "build", "release", "clrsampler"))
SOURCE = os.path.join(runtimes.SOURCE, "tests", "apps", "mip_counters", "mip_counters.c")
SKIP_EXIT = 77  # what CTest shows as "Skipped"
MODULE_HASH = struct.unpack("<I", hashlib.md5(b"mip_counters").digest()[:4])[0]


def run(*arguments, check=True, **options):
    done = subprocess.run(arguments, capture_output=True, timeout=300, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}")
    return done


def mip(*arguments, check=True, **options):
    return run(AGENT, "mip", *arguments, check=check, **options)


def lines(*arguments):
    return mip(*arguments).stdout.decode().splitlines()


def content(path):
    with open(path, "rb") as f:
        return f.read()


class MipTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="clrsampler-mip-")
        cls.program = cls.build("counts")
        cls.coverage = cls.build("coverage", "-DCOVERAGE")
        with open(SOURCE, encoding="utf-8") as f:
            text = f.read().splitlines()
        cls.first_lines = {name: 1 + next(i for i, line in enumerate(text) if line.startswith(f"int {name}("))
                           for name in ("alpha", "beta", "gamma_of_x", "never", "main")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def build(cls, name, *options, module_hash=MODULE_HASH):
        program = os.path.join(cls.folder.name, name)
        run("gcc", "-g", "-O0", "-fno-toplevel-reorder", f"-DMODULE_HASH={module_hash:#x}", *options, SOURCE, "-o", program)
        return program

    def setUp(self):
        self.made = 0

    def path(self, name):
        return os.path.join(self.folder.name, f"{self.id()}-{name}")

    def counters(self, program, *words):
        self.made += 1
        path = self.path(f"{self.made}.mipraw")
        run(program, path, *words)
        return path

    def profile(self, program, *runs):
        path = self.path("profile.mip")
        mip("create", "-p", path, program)
        if runs:
            mip("merge", "-p", path, "--strict", *(self.counters(program, *words) for words in runs))
        return path

    def functions(self, path, *options):
        document = json.loads(mip("show", "-p", path, "--json", *options).stdout)
        return {f["Function Name"]: f for f in document["Profiles"]}

    # Two runs: main 1st, alpha 2nd, beta 3rd; and main 1st, gamma 2nd, beta 3rd (called by gamma), alpha 4th.
    RUNS = (("a", "b", "a"), ("g", "b", "A"))

    def test_counts_times_and_blocks_of_two_runs(self):
        shown = self.functions(self.profile(self.program, *self.RUNS))
        expected = {  # runs, calls, sum of the ordinals of first calls, blocks: entry, and those marked in the text
            "alpha": (2, 3, 2 + 4, [True, True, True]),
            "beta": (2, 3, 3 + 3, [True]),
            "gamma_of_x": (1, 1, 2, [True, False]),
            "never": (0, 0, 0, [False, False]),
            "main": (2, 2, 2, [True]),
        }
        self.assertEqual(list(shown), list(expected))
        for name, function in shown.items():
            blocks = [block["Covered"] for block in function["Basic Block Profiles"]]
            self.assertEqual((function["Raw Profile Count"], function["Function Call Count"], function["Function Order Sum"], blocks),
                             expected[name], name)

    def test_order_is_by_average_first_call(self):
        path = self.profile(self.program, *self.RUNS)
        # Averages: main 1, gamma 2, alpha 3, beta 3; of equal ones the order of the program.
        self.assertEqual(lines("order", "-p", path), ["main", "gamma_of_x", "alpha", "beta"])
        self.assertEqual(lines("order", path, "--regex", "^(a|b)"), ["alpha", "beta"])
        self.assertEqual(json.loads(mip("order", path, "--json").stdout), {"functions": ["main", "gamma_of_x", "alpha", "beta"]})
        self.assertEqual(lines("covered", path), ["alpha", "beta", "gamma_of_x", "main"])

    def test_order_names_static_functions_of_one_name_once(self):
        path = self.path("twice.mip")
        functions = "".join(f"- {{Function Name: {name}, Raw Profile Count: 1, Function Order Sum: {first}}}\n"
                            for name, first in (("helper", 5), ("main", 1), ("helper", 2), ("last", 9)))
        mip("from-yaml", "-p", path, input=b"Header: {File Type: [.mip], Profile Type: [Function Timestamp], Module Hash: 0x1}\nProfiles:\n" +
            functions.encode())
        self.assertEqual(lines("order", path), ["main", "helper", "last"])
        self.assertEqual(lines("covered", path), ["helper", "main", "helper", "last"])

    def test_addresses_and_sizes_are_those_of_the_symbol_table(self):
        for program in (self.program, self.coverage):
            shown = self.functions(self.profile(program))
            symbols = {}
            for line in run("nm", "-S", program).stdout.decode().splitlines():
                fields = line.split()
                symbols[fields[-1]] = [int(field, 16) for field in fields[:-2]]
            begin = symbols["__start___llvm_mipraw"][0]
            for name, function in shown.items():
                address, size = symbols[name]
                self.assertEqual(int(function["Encoded Function Address"], 16), (address - begin) % 2**64, name)
                self.assertEqual(int(function["Function Size"], 16), size, name)
                self.assertEqual(int(function["Raw Profile Data Address"], 16), symbols["raw_" + name][0] - begin, name)

    def test_source_lines_are_those_of_the_text(self):
        path = self.profile(self.program, *self.RUNS)
        shown = self.functions(path, "--debug", self.program)
        for name, function in shown.items():
            self.assertEqual(function["Source Info"], f"{SOURCE}:{self.first_lines[name]}", name)
        self.assertIn(f"  Source Info: {SOURCE}:{self.first_lines['alpha']}", lines("show", path, "--debug", self.program))
        self.assertEqual(lines("covered", path, "--debug", self.program, "--paths"), [SOURCE])
        self.assertEqual(len(lines("covered", path, "--debug", self.program, "--lines")), 4)

    def test_source_lines_come_from_a_separate_debug_file(self):
        stripped = self.path("stripped")
        run("objcopy", "--only-keep-debug", self.program, stripped + ".debug")
        run("objcopy", "--strip-debug", f"--add-gnu-debuglink={stripped}.debug", self.program, stripped)
        shown = self.functions(self.profile(self.program), "--debug", stripped)
        self.assertEqual(shown["beta"]["Source Info"], f"{SOURCE}:{self.first_lines['beta']}")

    def test_coverage_of_functions_and_blocks(self):
        path = self.profile(self.coverage, ("a",), ("g", "A"))
        shown = self.functions(path)
        covered = {name: (f["Raw Profile Count"], f["Function Call Count"], [b["Covered"] for b in f["Basic Block Profiles"]])
                   for name, f in shown.items()}
        self.assertEqual(covered, {"alpha": (2, 1, [True, True, True]), "beta": (1, 1, [True]), "gamma_of_x": (1, 1, [True, False]),
                                   "never": (0, 0, [False, False]), "main": (2, 1, [True])})
        self.assertEqual(json.loads(mip("info", path, "--json").stdout),
                         {"layout": "documented", "version": 8, "profile_type": "Function Coverage, Block Coverage",
                          "module_hash": f"0x{MODULE_HASH:08X}", "raw_profiles": 2, "functions": 5, "functions_ran": 4, "blocks": 9,
                          "blocks_ran": 6, "call_edges": 0, "calls": 4, "nameless": 0})

    def test_the_text_is_that_of_the_first_tool(self):
        shown = mip("show", "-p", self.profile(self.program, *self.RUNS), "-r", "alpha|main").stdout.decode()
        self.assertEqual(shown, "alpha\n  Call Count: 3\n  Order Sum: 6\n  Block Coverage:\n     HOT  HOT  HOT \n\n"
                                "main\n  Call Count: 2\n  Order Sum: 2\n\n")

    def test_the_map_as_a_file_makes_the_same_profile(self):
        section, of_section = self.path("x.mipmap"), self.path("x.mip")
        run("objcopy", f"--dump-section=__llvm_mipmap={section}", self.program, "/dev/null")
        mip("create", "-p", of_section, section)
        self.assertEqual(content(of_section), content(self.profile(self.program)))

    def test_yaml_json_and_both_layouts_give_the_same_bytes_again(self):
        path = self.profile(self.program, *self.RUNS)
        again, text = self.path("again.mip"), self.path("text")
        for to, options, back in (("to-yaml", (), "from-yaml"), ("mip2yaml", ("--json",), "yaml2mip")):
            mip(to, "-p", path, "-o", text, *options)
            mip(back, "-p", again, text)
            self.assertEqual(content(again), content(path))
        mip("from-yaml", "-p", again, "--mip-layout=llvm", input=content(text))
        self.assertEqual(len(content(again)), len(content(path)) + 5 * 8)
        self.assertEqual(mip("to-yaml", "-p", again).stdout, mip("to-yaml", "-p", path).stdout)
        # A profile that is changed keeps its layout.
        mip("merge", "-p", again, self.counters(self.program, "a"))
        self.assertEqual(json.loads(mip("info", again, "--json").stdout)["layout"], "llvm")

    def test_profiles_of_two_hosts_add_up_to_that_of_one(self):
        whole = content(self.profile(self.program, *self.RUNS))
        hosts = []
        for i, words in enumerate(self.RUNS):
            hosts.append(self.path(f"host{i}.mip"))
            os.rename(self.profile(self.program, words), hosts[-1])
        total = self.path("total.mip")
        for order in (hosts, hosts[::-1]):
            mip("merge", "-p", total, *order)
            self.assertEqual(content(total), whole)
            os.unlink(total)

    def test_counters_and_profiles_are_added_in_one_go(self):
        other = self.path("other.mip")
        os.rename(self.profile(self.program, self.RUNS[0]), other)
        path = self.profile(self.program)
        runs = [self.counters(self.program, *words) for words in (*self.RUNS, self.RUNS[1])]
        mip("merge", "-p", path, "--strict", runs[1], other, runs[2])
        self.assertEqual(self.functions(path)["alpha"]["Function Call Count"], 2 + 1 + 1)
        expected = content(path)
        mip("create", "-p", path, self.program)
        mip("merge", "-p", path, *runs)
        self.assertEqual(content(path), expected)

    def test_counters_of_another_program_are_left_out_and_said(self):
        other = self.build("other", module_hash=0x42)
        good, bad = self.counters(self.program, "a"), self.counters(other, "a")
        path = self.profile(self.program)
        before = content(path)
        strict = mip("merge", "-p", path, "--strict", good, bad, check=False)
        self.assertEqual((strict.returncode, content(path)), (1, before))
        self.assertIn(b"module hash is 0x00000042", strict.stderr)
        alone = mip("merge", "-p", path, bad, check=False)
        self.assertEqual((alone.returncode, content(path)), (1, before))
        both = mip("merge", "-p", path, bad, good)
        self.assertIn(b"merged 1 of 2 files", both.stderr)
        self.assertIn(b"note: ignored " + bad.encode(), both.stderr)
        self.assertEqual(self.functions(path)["alpha"]["Function Call Count"], 1)

    def test_files_cut_anywhere_are_errors_and_change_nothing(self):
        path, raw = self.profile(self.program), self.counters(self.program, "a")
        before, whole, cut = content(path), content(raw), self.path("cut")
        for length in range(0, len(whole) - 3):  # the last record's padding is nobody's
            with open(cut, "wb") as f:
                f.write(whole[:length])
            done = mip("merge", "-p", path, cut, check=False)
            self.assertEqual(done.returncode, 1, (length, done))
            self.assertTrue(done.stderr.startswith(b"error: ") and b"\nhint: " in done.stderr, done)
        self.assertEqual(content(path), before)
        for name in os.listdir(self.folder.name):
            self.assertFalse(name.startswith("."), "what was written beside the profile is left")

    def test_errors_say_what_to_do(self):
        path, raw = self.profile(self.program), self.counters(self.program)
        for arguments, status, words in (
                (("show", "-p", raw), 2, "is a .mipraw file, not a .mip file\nhint: counters of a run go into a profile"),
                (("show", "-p", self.program), 1, "not a MIP file"),
                (("create", "-p", self.path("x"), AGENT), 1, "it has no section __llvm_mipmap"),
                (("create", "-p", "/nowhere/x.mip", self.program), 1, "hint: give a file in a folder that exists"),
                (("merge", "-p", self.path("none.mip"), raw), 1, "make an empty one of the program's map: clrsampler mip create"),
                (("show", "-p", path, "-r", "("), 2, "--regex (: missing )"),
                (("covered", path, "--lines"), 2, "name the program: --debug PROGRAM"),
                (("show", path, "--debug", path), 1, "--debug takes the program or library"),
                (("show",), 2, "hint: clrsampler mip show --help"),
                (("shov",), 2, "hint: clrsampler mip --help"),
                (("from-yaml", "-p", path, "/dev/null"), 1, "not a profile")):
            done = mip(*arguments, check=False)
            self.assertEqual(done.returncode, status, (arguments, done.stderr))
            self.assertIn(words, done.stderr.decode(), arguments)

    def test_no_name_reaches_a_terminal_as_a_control_sequence(self):
        path = self.path("names.mip")
        header = "Header: {File Type: [.mip], Profile Type: [Function Coverage], Module Hash: 0x1}\nProfiles:\n"
        functions = "".join(f'- {{Function Name: "{name}", Raw Profile Count: 1, Function Call Count: 1}}\n'
                            for name in ("good", "red\\e[31m", "two\\nlines", "c1\\N"))
        mip("from-yaml", "-p", path, input=(header + functions).encode())
        for command in ("order", "covered"):
            done = mip(command, path)
            self.assertEqual(done.stdout, b"good\n")
            self.assertIn(b"left out 3 names with control characters", done.stderr)
            self.assertEqual(json.loads(mip(command, path, "--json").stdout)["functions"], ["good", "red\x1b[31m", "two\nlines", "c1\x85"])
        shown = mip("show", path).stdout
        self.assertIn(b"red?[31m\n", shown)
        self.assertNotIn(b"\x1b", shown)
        damaged = mip("merge", "-p", path, self.counters(self.program), check=False)
        self.assertNotIn(b"\x1b", damaged.stderr)

    def test_a_device_is_written_to_and_not_replaced(self):
        done = mip("create", "-p", "/dev/stdout", self.program)
        self.assertEqual(done.stdout, content(self.profile(self.program)))
        self.assertFalse(os.path.isfile("/dev/stdout") and not os.path.islink("/dev/stdout"))

    def test_help_of_every_command_has_an_example(self):
        for command in ("create", "merge", "show", "order", "covered", "info", "to-yaml", "from-yaml"):
            self.assertIn(f"clrsampler mip {command} -p", mip(command, "--help").stdout.decode())


if __name__ == "__main__":
    for tool in ("gcc", "nm", "objcopy"):
        if shutil.which(tool) is None:
            print(f"skipped: no {tool}: apt-get install gcc binutils", flush=True)
            sys.exit(1 if os.environ.get("CLRSAMPLER_REQUIRE_LIVE") == "1" else SKIP_EXIT)
    unittest.main(verbosity=2)
