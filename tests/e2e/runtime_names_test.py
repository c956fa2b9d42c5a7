#!/usr/bin/env python3
"""Names that the real runtimes' images hold of their own functions: as another reader finds them, as the managed side declares them, and as
running processes have them.

Each check is one run of tools/runtime_names_check, the program that asks the profiler's own code. It is found through RUNTIME_NAMES_CHECK
or CLRSAMPLER_BUILD_DIR. Nothing is sampled here.
"""
import collections
import glob
import os
import re
import shutil
import struct
import subprocess

import check_program
import harness
import helper_cells
import runtimes
import vm_programs
from metadata import Metadata

BUILD_DIR = os.environ.get("CLRSAMPLER_BUILD_DIR", os.path.join(runtimes.SOURCE, "build", "release"))
PROGRAM = os.environ.get("RUNTIME_NAMES_CHECK", os.path.join(BUILD_DIR, "tools", "runtime_names_check", "runtime_names_check"))

# Names by table: entry points, FCalls, JIT helpers, what is set at the start, assembly. The first three are counted by the reader below.
KINDS = ("entry-points", "fcalls", "jit-helpers", "startup", "assembly")
COUNTS = {"8.0.30": (246, 369, 134, 5, 15), "9.0.19": (331, 275, 99, 6, 15), "10.0.14": (405, 203, 55, 6, 19), "11.0.0": (372, 195, 51, 5, 19)}
HELPER = "CORINFO_HELP_"
# By its code: what the FCall BulkMoveWithWriteBarrierInternal jumps to.
MOVES = "InlinedMemmoveGCRefsHelper"
# Functions that InitJITHelpers1 sets, by helper.
ALLOCATORS = {"NEWSFAST": ("JIT_NewS_MP_FastPortable", "RhpNewFast"), "NEWARR_1_VC": ("JIT_NewArr1VC_MP_FastPortable", "RhpNewArrayFast"),
              "NEWARR_1_OBJ": ("JIT_NewArr1OBJ_MP_FastPortable", None), "NEWARR_1_PTR": (None, "RhpNewPtrArrayFast")}
# Write barriers of arm64. .NET 10 and 11 copy their barriers also then.
BARRIERS = {"ASSIGN_REF": "JIT_WriteBarrier", "CHECKED_ASSIGN_REF": "JIT_CheckedWriteBarrier", "ASSIGN_BYREF": "JIT_ByRefWriteBarrier"}
ARM64_COUNTS = {"9.0.23": (6, 19), "10.0.15": (4, 27), "11.0.0": (4, 24)}  # what is set at the start, and assembly that is not


class Image:
    """Relative relocations and data of an ELF image; shares no code with the profiler's readers."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = data = f.read()
        at, size, count, names = struct.unpack_from("<Q", data, 40) + struct.unpack_from("<HHH", data, 58)
        rows = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
        self.code = [(row[3], row[3] + row[5]) for row in rows if row[2] & 4]
        self.places = [(row[3], row[3] + row[5], row[4]) for row in rows if row[2] & 2 and row[1] != 8]
        self.pointers = {}
        for row in rows:
            if row[1] == 4 and row[2] & 2:  # SHT_RELA
                for entry in range(row[4], row[4] + row[5], 24):
                    slot, kind, target = struct.unpack_from("<QQq", data, entry)
                    if kind & 0xffffffff in (8, 1027):
                        self.pointers[slot] = target
        self.led_to = collections.Counter(self.pointers.values())

    def is_code(self, address):
        return any(begin <= address < end for begin, end in self.code)

    def offset(self, address):
        return next((address - begin + offset for begin, end, offset in self.places if begin <= address < end), None)

    def word(self, address):
        return struct.unpack_from("<Q", self.data, self.offset(address))[0]

    def text(self, address, pattern):
        at = self.offset(address)
        if at is None or self.is_code(address):
            return None
        found = re.compile(pattern + rb"\0").match(self.data, at)
        return found.group(0)[:-1].decode() if found else None

    def entry_points(self):
        """[(name, function)] in runs of 24 and more."""
        found, seen = [], set()
        for at in sorted(self.pointers):
            run = []
            while at not in seen and self.is_code(self.pointers.get(at + 8, 0)):
                name = self.text(self.pointers.get(at, 0), rb"[A-Za-z_]\w{2,126}")
                if not name:
                    break
                seen.add(at)
                run.append((name, self.pointers[at + 8]))
                at += 16
            found += run if len(run) >= 24 else []
        return found

    def methods_of(self, at):
        """[(method, function)] of one class, or None where the words are something else."""
        found = []
        for _ in range(600):
            if at in self.pointers or self.offset(at) is None:
                return None
            flags = self.word(at)
            if flags & 1:
                return found if flags == 0xffffffffff000001 else None
            name = self.text(self.pointers.get(at + 16, 0), rb"[\w.`<>]+")
            if not name:
                return None
            if at + 8 in self.pointers:
                found.append((name, self.pointers[at + 8]))
            at += 32 if flags & 2 else 24
        return None

    def fcalls(self):
        """[(name, function)] of the longest array of classes."""
        best, seen = [], set()
        for start in sorted(self.pointers):
            run, at = [], start
            while at not in seen and all(slot in self.pointers for slot in (at, at + 8, at + 16)):
                name, space = self.text(self.pointers[at], rb"[A-Za-z]\w*"), self.text(self.pointers[at + 8], rb"[A-Za-z][\w.]*")
                methods = self.methods_of(self.pointers[at + 16]) if name and space else None
                if methods is None:
                    break
                seen.add(at)
                run += [(f"{space}.{name}.{method}", function) for method, function in methods]
                at += 24
            best = max(best, run, key=len)
        return best

    def helper_names(self):
        """The JIT's names of helpers, in the order of its own table."""
        names = {slot: self.text(target, rb"CORINFO_HELP_\w+") for slot, target in self.pointers.items()}
        slots = sorted(slot for slot, name in names.items() if name)
        assert slots == list(range(slots[0], slots[0] + 8 * len(slots), 8)), "they stand in one table"
        return [names[slot][len(HELPER):] for slot in slots]


class RuntimeNamesTest(check_program.CheckProgramTest):
    def folder(self, version):
        return os.path.join(self.need(runtimes.pack, "microsoft.netcore.app.runtime.linux-x64", version), "runtimes", "linux-x64", "native")

    def check(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def names_in(self, path):
        """({kind: {address: name}}, addresses of the tables of helpers: the fixed and the dynamic one)"""
        output = self.check(path)
        names = collections.defaultdict(dict)
        for kind, address, name in re.findall(rf"^({'|'.join(KINDS)}) 0x([0-9a-f]+) (\S+)$", output, re.M):
            names[kind][int(address, 16)] = name
        return names, [int(address, 16) for address in re.findall(r"^table jit-helpers 0x([0-9a-f]+) ", output, re.M)]

    def test_another_reader_finds_the_same(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version):
                path = os.path.join(self.folder(version), "libcoreclr.so")
                names, (helpers_at, dynamic_at) = self.names_in(path)
                image = Image(path)
                helpers = [line.split() for line in self.check("--helpers", version.split(".")[0], "x64").splitlines()]
                dynamic = [row for row in helpers if row[1].startswith("dynamic")]
                places = [(row, helpers_at + 8 * i) for i, row in enumerate(helpers) if row[1] == "function"]
                places += [(row, dynamic_at + 8 * i) for i, row in enumerate(dynamic) if row[1] == "dynamic-function"]
                proven = {function: name for kind in ("startup", "assembly") for function, name in names.pop(kind).items()}
                moves = {function for function, name in names["fcalls"].items() if name == MOVES}
                claims, leads, by_helper = collections.defaultdict(set), collections.Counter(), collections.defaultdict(list)
                for kind, pairs in (("entry-points", image.entry_points()), ("fcalls", image.fcalls()),
                                    ("jit-helpers", [(row[2] if len(row) > 2 else "", image.pointers[at]) for row, at in places])):
                    for name, function in pairs:
                        claims[function].add((kind, name))
                        leads[function] += 1
                for row, at in places:
                    by_helper[image.pointers[at]].append(row[0])
                expected = collections.defaultdict(dict)
                for function, said in claims.items():
                    (kind, name), *others = sorted(said, reverse=True)
                    if function in proven:
                        self.assertIn(name, ("", proven[function]))
                        continue
                    if not name and len(by_helper[function]) <= 3:
                        name = HELPER + "|".join(by_helper[function])
                    if name and not others and image.led_to[function] == leads[function]:
                        expected[kind][function] = name
                for function in moves:
                    expected["fcalls"][function] = MOVES
                self.assertEqual(dict(names), dict(expected))
                proven_names, _ = self.names_in(path)
                counts = tuple(len(proven_names[kind]) for kind in KINDS)
                print(f"  {version}: {counts}", flush=True)
                self.assertEqual(counts, COUNTS[version])

    def helpers_in(self, pid, folder, version, machine):
        """The memory of a process under our names: ({name: address} of precompiled code's cells, {dynamic helper: name or None})"""
        path = os.path.join(folder, "libcoreclr.so")
        names, (_, dynamic_at) = self.names_in(path)
        named = {function: name for of_kind in names.values() for function, name in of_kind.items()}
        helpers = [line.split() for line in self.check("--helpers", version.split(".")[0], machine).splitlines()]
        dynamic = [row[0] for row in helpers if row[1].startswith("dynamic")]
        cells = helper_cells.helpers_of(pid, os.path.join(folder, "System.Private.CoreLib.dll"), path)
        with open(f"/proc/{pid}/maps") as f:
            base = min(int(line.split("-")[0], 16) for line in f if line.rstrip().endswith(" " + path))
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(base + dynamic_at)
            words = struct.unpack(f"<{len(dynamic)}Q", memory.read(8 * len(dynamic)))
        self.assertEqual({name: named.get(address) for name, address in cells.items()}, {name: name for name in cells})
        return cells, {helper: named.get(word - base) for helper, word in zip(dynamic, words, strict=True)}

    def test_processes_have_the_same(self):
        """In memory: what the runtime wrote into precompiled code's cells and into its table of dynamic helpers."""
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version):
                # The process knows its files by their own paths.
                root = os.path.realpath(self.need(runtimes.root, version))
                (folder,) = glob.glob(os.path.join(root, "shared", "Microsoft.NETCore.App", "*"))
                self.need(runtimes.workload)
                with harness.workload(version, "idle", "--seconds", 60) as target:
                    cells, set_now = self.helpers_in(target.pid, folder, version, "x64")
                self.assertGreaterEqual(len(cells), 6, cells)
                number = int(version.split(".")[0])
                for helper, (before_10, since_10) in ALLOCATORS.items():
                    expected = before_10 if number < 10 else since_10
                    if expected:
                        self.assertEqual(set_now[helper], expected, helper)
                print(f"  {version}: {sorted(cells)}", flush=True)

    def test_arm64_processes_have_the_same(self):
        """The same of arm64, whose user mode is emulated. Without a second mapping of code the barriers stand in the image, and not in a copy."""
        if not shutil.which("qemu-aarch64-static"):
            self.need(self.no_emulator)
        libraries = self.need(vm_programs.arm64_libraries)
        for version, count in ARM64_COUNTS.items():
            with self.subTest(version):
                root = os.path.realpath(self.need(runtimes.root, version, "linux-arm64"))
                program = os.path.join(self.need(runtimes.with_app_host, "workload", version, "linux-arm64"), "workload")
                (folder,) = glob.glob(os.path.join(root, "shared", "Microsoft.NETCore.App", "*"))
                names, _ = self.names_in(os.path.join(folder, "libcoreclr.so"))
                self.assertEqual((len(names["startup"]), len(names["assembly"])), count)
                env = {"DOTNET_ROOT": root, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "DOTNET_EnableWriteXorExecute": "0",
                       "DOTNET_gcHeapHardLimit": "0x10000000"}  # the emulator refuses the reservation of a whole heap
                with harness.Target(["qemu-aarch64-static", "-L", libraries, program, "idle", "--seconds", "120"], env=env) as target:
                    cells, set_now = self.helpers_in(target.pid, folder, version, "arm64")
                self.assertGreaterEqual(len(cells), 5, cells)
                before_10 = version.startswith("9.")
                expected = {helper: names[0 if before_10 else 1] for helper, names in ALLOCATORS.items()}
                expected = {helper: name for helper, name in {**expected, **(BARRIERS if before_10 else {})}.items() if name}
                self.assertEqual({helper: set_now[helper] for helper in expected}, expected)
                print(f"  {version} arm64: {sorted(cells)}, {expected}", flush=True)

    @staticmethod
    def no_emulator():
        raise runtimes.Missing("no `qemu-aarch64-static` on PATH")

    def test_helpers_stand_in_the_order_of_the_jit(self):
        for version in runtimes.PACKED_VERSIONS:
            for machine in ("x64", "arm64"):
                with self.subTest(version, machine=machine):
                    rows = [line.split()[0] for line in self.check("--helpers", version.split(".")[0], machine).splitlines()]
                    self.assertEqual(rows, Image(os.path.join(self.folder(version), "libclrjit.so")).helper_names())

    def test_the_managed_side_declares_them(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version):
                names, _ = self.names_in(os.path.join(self.folder(version), "libcoreclr.so"))
                root = self.need(runtimes.root, version)
                (path,) = glob.glob(os.path.join(root, "shared", "Microsoft.NETCore.App", "*", "System.Private.CoreLib.dll"))
                declared = Metadata(path)
                imports = {entry for methods in declared.imports.values() for entries in methods.values() for library, entry in entries
                           if library in ("QCall", "libSystem.Globalization.Native")}
                ours, calls = set(names["entry-points"].values()), set(names["fcalls"].values())
                # In doubt, or cut away from the runtime or from the assembly.
                self.assertLessEqual(len(imports - ours), 3, imports - ours)
                self.assertLessEqual(len(ours - imports), 20, ours - imports)
                self.assertLessEqual(len(calls - declared.calls), 10, calls - declared.calls)
                print(f"  {version}: {len(ours & imports)} entry points and {len(calls & declared.calls)} calls are declared", flush=True)

    def test_single_file_hosts_have_those_and_more(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version):
                pack = self.need(runtimes.pack, "microsoft.netcore.app.host.linux-x64", version)
                host, _ = self.names_in(os.path.join(pack, "runtimes", "linux-x64", "native", "singlefilehost"))
                runtime, _ = self.names_in(os.path.join(self.folder(version), "libcoreclr.so"))
                for kind, names in runtime.items():
                    missing = set(names.values()) - set(host[kind].values())
                    self.assertLessEqual(len(missing), 6, missing)


if __name__ == "__main__":
    check_program.main(PROGRAM)
