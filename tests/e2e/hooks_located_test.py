#!/usr/bin/env python3
"""Does the locator of probes find in the real runtimes what other readers find there, and refuse what is damaged?

Each check is one run of tools/hook_check, the program that asks the profiler's own code. It is found through HOOK_CHECK or
CLRSAMPLER_BUILD_DIR. Nothing is run or probed here.
"""
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

import check_program
import runtimes

BUILD_DIR = os.environ.get("CLRSAMPLER_BUILD_DIR", os.path.join(runtimes.SOURCE, "build", "release"))
PROGRAM = os.environ.get("HOOK_CHECK", os.path.join(BUILD_DIR, "tools", "hook_check", "hook_check"))
NEWEST = runtimes.PACKED_VERSIONS[-1]

HOOKS = ("compileMethod", "SuspendEE", "RestartEE", "DiagGCStart", "DiagGCEnd")
# File offsets in order of HOOKS, then addresses of the collectors' settings. Found by a reader of ELF, unwind tables and code in another
# language that shares no code with ours, and confirmed for 8.0.30, 9.0.19, 10.0.12 and 10.0.14 by counting hits in running processes.
FOLDERS = {
    "8.0.0": (0xf01f0, 0x3b05d0, 0x3b0260, (0x316d60, 0x3c7430), (0x316f90, 0x3c7510), (0x6a4ce0, 0x6aa9e0)),
    "8.0.30": (0xea170, 0x3ae0d0, 0x3add60, (0x315740, 0x3c4d60), (0x315970, 0x3c4e40), (0x6a2760, 0x6a8470)),
    "8.0.31": (0xea170, 0x3ae0d0, 0x3add60, (0x315740, 0x3c4d60), (0x315970, 0x3c4e40), (0x6a2760, 0x6a8470)),
    "9.0.19": (0xa8ec0, 0x3cffb0, 0x3cfb10, (0x33e890,), (0x33eac0,), (0x71be60, 0x7215e0)),
    "9.0.20": (0xa8ec0, 0x3cffb0, 0x3cfb10, (0x33e890,), (0x33eac0,), (0x71be60, 0x7215e0)),
    "10.0.11": (0xc55c0, 0x5161b0, 0x515d10, (0x493de0,), (0x494010,), (0x6d4ce0, 0x6da410)),
    "10.0.12": (0xc58c0, 0x516540, 0x5160a0, (0x494120,), (0x494350,), (0x6d50e0, 0x6d9810)),
    "10.0.13": (0xc5c20, 0x515da0, 0x515900, (0x493980,), (0x493bb0,), (0x6d5ce0, 0x6da410)),
    "10.0.14": (0xc5c20, 0x515da0, 0x515900, (0x493980,), (0x493bb0,), (0x6d5ce0, 0x6da410)),
    "11.0.0": (0xa2380, 0x1dc6c0, 0x1d8430, (0x1e4550,), (0x1c6e60,), (0x55b890, 0x55e630)),
}
MUSL = {
    "8.0.34": (0xeaa70, 0x3aea80, 0x3ae710, (0x3160e0, 0x3c5710), (0x316310, 0x3c57f0), (0x6a7060, 0x6acd70)),
    "10.0.15": (0xc5b20, 0x518e60, 0x5189c0, (0x496a40,), (0x496c70,), (0x6d95e0, 0x6ddd10)),
    "11.0.0": (0xa2130, 0x1df360, 0x1db0d0, (0x1e71f0,), (0x1c9b20,), (0x55e460, 0x5611b0)),
}
HOSTS = {
    "8.0.30": (0x76d030, 0x52b800, 0x52b490, (0x492e70, 0x5424e0), (0x4930a0, 0x5425c0), (0xa84260, 0xa89f70)),
    "8.0.31": (0x76d030, 0x52b800, 0x52b490, (0x492e70, 0x5424e0), (0x4930a0, 0x5425c0), (0xa84260, 0xa89f70)),
    "9.0.19": (0x79bb00, 0x554740, 0x5542a0, (0x4c3020,), (0x4c3250,), (0xb563e0, 0xb5bb60)),
    "10.0.12": (0x7b3a50, 0x6a3220, 0x6a2d80, (0x611870,), (0x611aa0,), (0xb6fd60, 0xb74520)),
    "10.0.14": (0x7b3a10, 0x6a3270, 0x6a2dd0, (0x6118c0,), (0x611af0,), (0xb78d60, 0xb7d520)),
    "11.0.0": (0x2edf80, 0x3ee340, 0x3e9370, (0x3f8560,), (0x3dd100,), (0xa5f4f8, 0xa62258)),
}
# Functions by a reader that shares no code with ours. The settings, and all of the hosts, are as this program found them: a change is seen.
ARM64 = {
    "9.0.23": (0xb0984, 0x3c3820, 0x3c3314, (0x33b34c,), (0x33b5d8,), (0x6fe368, 0x703b10)),
    "10.0.15": (0x91d70, 0x4eae2c, 0x4ea940, (0x46f970,), (0x46fbec,), (0x6c20e8, 0x6c6840)),
    "11.0.0": (0x18a120, 0x1d64a8, 0x1f2cdc, (0x1ffb4c,), (0x1e29b4,), (0x56fbd8, 0x56fd10)),
}
ARM64_HOSTS = {
    "9.0.23": (0x75f3e4, 0x537ea4, 0x537998, (0x4af9d0,), (0x4afc5c,), (0xaed668, 0xaf2e10)),
    "10.0.15": (0x7658dc, 0x684244, 0x683d58, (0x5fa818,), (0x5faa94,), (0xb08268, 0xb0ca80)),
    "11.0.0": (0x2def98, 0x3e362c, 0x3e7330, (0x4036d0,), (0x3dc654,), (0xa35d68, 0xa38b48)),
}
# File offsets of the functions that report allocations, of the server collector and of the workstation collector. Found in listings of
# objdump by a reader that shares no code with ours, as the branches below; hits of those for 8.0.34, 9.0.19, 10.0.15 and 11.0.0 on x64
# were counted in running processes.
ALLOCATIONS = {
    ("runtime", "linux-x64"): {"8.0.30": (0x49a8f0, 0x49b6b0), "8.0.34": (0x49b310, 0x49c0d0), "9.0.19": (0x4c0c40, 0x4c19f0),
                               "9.0.23": (0x4c1440, 0x4c21f0), "10.0.12": (0x5f77a0, 0x5f8540), "10.0.14": (0x5f6f70, 0x5f7d10),
                               "10.0.15": (0x5f7340, 0x5f80e0)},
    ("runtime", "linux-musl-x64"): {"8.0.34": (0x49b2a0, 0x49c060), "10.0.15": (0x5fa180, 0x5faf20)},
    ("runtime", "linux-arm64"): {"9.0.23": (0x498e6c, 0x499c30), "10.0.15": (0x5bab28, 0x5bb8ec)},
    ("host", "linux-x64"): {"8.0.30": (0x618070, 0x618e30), "9.0.19": (0x645420, 0x6461d0), "10.0.14": (0x6e5120, 0x75ea80)},
    ("host", "linux-arm64"): {"8.0.34": (0x5d5f54, 0x5d6d74), "9.0.23": (0x60d548, 0x60e30c), "10.0.15": (0x6bf1f0, 0x7142bc)},
}
# Since .NET 11: the branches behind which the report stands.
INLINED_ALLOCATIONS = {
    ("runtime", "linux-x64"): (
        0x149a99, 0x14a0e6, 0x14a37a, 0x14d561, 0x14d748, 0x14d925, 0x14db10, 0x14fff3, 0x150155, 0x150381, 0x1504e3, 0x15097f, 0x150bc8,
        0x150e17, 0x15105c, 0x15c763, 0x4a359d, 0x4d3ab0, 0x4d442a, 0x4d4a60),
    ("runtime", "linux-musl-x64"): (
        0x14c779, 0x14cdc6, 0x14d05a, 0x150241, 0x150428, 0x150605, 0x1507f0, 0x152cd3, 0x152e35, 0x153061, 0x1531c3, 0x15365f, 0x1538a8,
        0x153af7, 0x153d3c, 0x15f453, 0x4a627d, 0x4d6790, 0x4d710a, 0x4d7740),
    ("runtime", "linux-arm64"): (
        0x161168, 0x16155c, 0x161638, 0x164410, 0x164610, 0x164810, 0x164a4c, 0x165f28, 0x1661a4, 0x166420, 0x16669c, 0x1668b0, 0x166a14,
        0x166bf0, 0x166d54, 0x173b94, 0x496688, 0x4c54ac, 0x4c63cc, 0x4c69a0),
    ("host", "linux-x64"): (
        0x299799, 0x299de5, 0x29a06a, 0x29d251, 0x29d438, 0x29d615, 0x29d800, 0x29fce3, 0x29fe45, 0x2a0071, 0x2a01d3, 0x2a066f, 0x2a08b9,
        0x2a0b09, 0x2a0d4f, 0x2a2493, 0x9939a0, 0x99431a, 0x994950, 0x9bf8bd),
    ("host", "linux-arm64"): (
        0x2eb474, 0x2ec6c8, 0x2ec7a0, 0x2ef9fc, 0x2efbec, 0x2efddc, 0x2f0004, 0x2f14e0, 0x2f1754, 0x2f19c8, 0x2f1c3c, 0x2f1e24, 0x2f1f7c,
        0x2f213c, 0x2f2294, 0x2ff1bc, 0x928ee8, 0x929e18, 0x92a3ec, 0x955cc0),
}
# File offsets of the function that each exception comes by. Those of .NET 9 and newer stand beside the name SfiInit in the image's data, as
# a reader of relocations finds them that shares no code with ours. Those of 8.0 are in listings of objdump, by the keywords 0x200008000.
EXCEPTIONS = {
    ("runtime", "linux-x64"): {"8.0.30": 0x3b62d0, "8.0.34": 0x3b6cf0, "9.0.19": 0x3fb7a0, "9.0.23": 0x3fbfa0, "10.0.12": 0x538740,
                               "10.0.14": 0x537f10, "10.0.15": 0x5382b0, "11.0.0": 0x443830},
    ("runtime", "linux-musl-x64"): {"8.0.34": 0x3b6c80, "10.0.15": 0x53b0d0, "11.0.0": 0x446230},
    ("runtime", "linux-arm64"): {"9.0.23": 0x3f1cac, "10.0.15": 0x513ec0, "11.0.0": 0x440e5c},
    ("host", "linux-x64"): {"8.0.30": 0x533a00, "9.0.19": 0x57ff80, "10.0.14": 0x6c58b0, "11.0.0": 0x6af960},
    ("host", "linux-arm64"): {"9.0.23": 0x566388, "10.0.15": 0x6ad7d8, "11.0.0": 0x69c8d0},
}
# Arguments of these functions, (bytes, generation, object) behind the heap and without: registers by their DWARF numbers.
ALLOCATION_ARGUMENTS = {"x64": ("r4 r1 r2", "r5 r4 r1"), "arm64": ("r1 r2 r3", "r0 r1 r2")}
GUIDS = {"8": "4bceb905-d550-4a5d-b1eb-276fff68d183", "9": "d6218a78-9a34-4c6f-8db5-077a06022fae",
         "10": "7a8cbc56-9e19-4321-80b9-a0d2c578c945", "11": "0d18a7df-af1f-4481-a72f-aa6cf8aa0a65"}
# Facts about compileMethod, by machine and the interface with it: where it is done, and how it keeps what is of use there.
RETURN = {("x64", GUIDS["11"]): (0xa5, "entry-on-frame"), ("arm64", GUIDS["11"]): (0x7f8, "entry-on-frame")}
RETURN_BEFORE = {"x64": (0xa0, "entry-in-register"), "arm64": (0xa8, "entry-in-register")}


def check(*arguments):
    """Runs hook_check; (exit status, output)."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def found(output, hook):
    """{shift: file offset} of a hook."""
    return {int(shift): int(offset, 16) for offset, shift in
            re.findall(rf"^{hook} (?:runtime|jit) (0x[0-9a-f]+) 0x[0-9a-f]+ (\d) ", output, re.M)}


def found_allocations(output):
    """[(file offset, form, where its facts are)], in the order of the output."""
    return [(int(offset, 16), form, facts) for offset, form, facts in
            re.findall(r"^allocations (0x[0-9a-f]+) 0x[0-9a-f]+ (function|inlined) (\S+ \S+ \S+) ", output, re.M)]


def refusal(output, hook):
    match = re.search(rf"^{hook} refused: (.*)$", output, re.M)
    return match.group(1) if match else None


def sections(data):
    """{name: (address, offset, size)} of an ELF image."""
    at, size, count, names = struct.unpack_from("<Q", data, 40) + struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    text = rows[names][4]
    return {data[text + row[0]:data.index(b"\0", text + row[0])].decode(): row[3:6] for row in rows}


class HookTest(check_program.CheckProgramTest):
    def assert_found(self, what, output, status, expected, guid, machine="x64", done=None):
        self.assertEqual(status, 0, output)
        for hook, offsets in zip(HOOKS, expected):
            offsets = offsets if isinstance(offsets, tuple) else (offsets,)
            self.assertEqual(found(output, hook), dict(enumerate(offsets)), f"{what} {hook}\n{output}")
        self.assertEqual([int(x, 16) for x in re.findall(r"^gc-settings (\S+)$", output, re.M)], list(expected[5]), output)
        self.assertIn(f"jit-interface {guid}\n", output)
        place, form = done or RETURN.get((machine, guid), RETURN_BEFORE[machine])
        print(f"  {what}: all as expected", flush=True)
        self.assertRegex(output, rf"(?m)^jit-return (jit|runtime) {hex(expected[0] + place)} 0x[0-9a-f]+ {form}$")

    def folder(self, version, system="linux-x64"):
        """(libcoreclr.so, libclrjit.so)"""
        base = os.path.join(self.need(runtimes.pack, f"microsoft.netcore.app.runtime.{system}", version), "runtimes", system, "native")
        return os.path.join(base, "libcoreclr.so"), os.path.join(base, "libclrjit.so")


class Real(HookTest):
    def test_runtimes_in_folders(self):
        cached = [v for v in FOLDERS if os.path.isdir(os.path.join(runtimes.NUGET, "microsoft.netcore.app.runtime.linux-x64", v))]
        for version in sorted({*runtimes.PACKED_VERSIONS, *cached}):
            with self.subTest(version):
                runtime, jit = self.folder(version)
                status, output = check(runtime, "--jit", jit)
                self.assert_found(version, output, status, FOLDERS[version], GUIDS[version.split(".")[0]])

    def test_runtimes_for_musl(self):
        for version, expected in MUSL.items():
            with self.subTest(version):
                runtime, jit = self.folder(version, "linux-musl-x64")
                status, output = check(runtime, "--jit", jit)
                self.assert_found(f"musl {version}", output, status, expected, GUIDS[version.split(".")[0]])

    def test_the_installed_runtime(self):
        version = self.need(runtimes.installed_version)
        folder = os.path.join(os.path.dirname(self.need(runtimes.dotnet)), "shared", "Microsoft.NETCore.App", version)
        status, output = check(os.path.join(folder, "libcoreclr.so"), "--jit", os.path.join(folder, "libclrjit.so"))
        self.assertEqual(status, 0, output)
        if version in FOLDERS:
            self.assert_found(version, output, status, FOLDERS[version], GUIDS[version.split(".")[0]])

    def test_single_file_hosts(self):
        for version in runtimes.PACKED_VERSIONS:
            with self.subTest(version):
                pack = self.need(runtimes.pack, "microsoft.netcore.app.host.linux-x64", version)
                status, output = check(os.path.join(pack, "runtimes", "linux-x64", "native", "singlefilehost"))
                self.assert_found(f"host {version}", output, status, HOSTS[version], GUIDS[version.split(".")[0]])

    def test_published_single_file_programs(self):
        """Those that other tests have published: hosts with a bundle behind them."""
        programs = glob.glob(os.path.join(runtimes.BUILD, "deployments", "*", "*", "single-file*", "*"))
        for folder in sorted(p for p in programs if os.path.exists(os.path.join(p, ".complete"))):
            name, version, form = folder.split(os.sep)[-4:-1]
            if version not in HOSTS or form == "single-file-framework-dependent":
                continue
            with self.subTest(f"{name} {version} {form}"):
                status, output = check(os.path.join(folder, name))
                self.assert_found(f"{name} {version} {form}", output, status, HOSTS[version], GUIDS[version.split(".")[0]])

    def test_runtimes_for_arm64(self):
        for version, expected in ARM64.items():
            with self.subTest(version):
                runtime, jit = self.folder(version, "linux-arm64")
                status, output = check(runtime, "--jit", jit)
                self.assert_found(f"arm64 {version}", output, status, expected, GUIDS[version.split(".")[0]], "arm64")

    def test_single_file_hosts_for_arm64(self):
        for version, expected in ARM64_HOSTS.items():
            with self.subTest(version):
                pack = self.need(runtimes.pack, "microsoft.netcore.app.host.linux-arm64", version)
                status, output = check(os.path.join(pack, "runtimes", "linux-arm64", "native", "singlefilehost"))
                # There jitNativeCode is a function of its own in each version.
                self.assert_found(f"arm64 host {version}", output, status, expected, GUIDS[version.split(".")[0]], "arm64",
                                  done=RETURN_BEFORE["arm64"])

    def test_native_aot_programs(self):
        """Those for x64 that other tests have published, against nm."""
        names = {"SuspendEE": "_ZN15GCToEEInterface9SuspendEEE14SUSPEND_REASON", "RestartEE": "_ZN15GCToEEInterface9RestartEEEb",
                 "DiagGCStart": "_ZN15GCToEEInterface11DiagGCStartEib", "DiagGCEnd": "_ZN15GCToEEInterface9DiagGCEndEmiib"}
        for debug in sorted(glob.glob(os.path.join(runtimes.BUILD, "deployments", "*", "*", "native-aot", "*", "*.dbg"))):
            if "-arm64" in debug.split(os.sep)[-4]:
                continue  # its DiagGC functions have no frame there, so their hooks are refused
            program = debug[:-len(".dbg")]
            with self.subTest(debug):
                symbols = dict(line.split()[::2][::-1] for line in subprocess.run(
                    ["nm", debug], capture_output=True, text=True, timeout=300).stdout.splitlines() if len(line.split()) == 3)
                _, output = check(program, "--debug", debug)
                for hook, name in names.items():
                    self.assertEqual(found(output, hook), {0: int(symbols[name], 16)}, output)  # there offsets are addresses
                self.assertIn(f"gc-settings {hex(int(symbols['_ZN3WKS7gc_heap8settingsE'], 16))}\n", output)
                self.assertIn("compiles nothing while it runs", refusal(output, "compileMethod"))
                _, output = check(program)
                for hook in names:
                    self.assertEqual(found(output, hook), {})
                    self.assertIn("there are no symbols", refusal(output, hook))


class PackedImages(HookTest):
    def image(self, kind, system, version):
        """libcoreclr.so, or a single-file host; None: it is one of those that are looked at only where they are."""
        package = f"microsoft.netcore.app.{kind}.{system}"
        wanted = system != "linux-x64" or version in runtimes.PACKED_VERSIONS
        if not wanted and not os.path.isdir(os.path.join(runtimes.NUGET, package, version)):
            return None
        name = "libcoreclr.so" if kind == "runtime" else "singlefilehost"
        return os.path.join(self.need(runtimes.pack, package, version), "runtimes", system, "native", name)



class Exceptions(PackedImages):
    """Where the first pass of each exception begins."""

    def test_places(self):
        for (kind, system), versions in EXCEPTIONS.items():
            for version, offset in versions.items():
                path = self.image(kind, system, version)
                if path is None:
                    continue
                with self.subTest(f"{kind} {version} {system}"):
                    status, output = check("--exceptions", path)
                    form = "event" if version.startswith("8.") else "iterator"
                    self.assertRegex(output, rf"^exceptions {hex(offset)} 0x[0-9a-f]+ {form} ")
                    self.assertEqual(status, 0)

    def test_damaged(self):
        """The entry point has another name, or the keywords are others: nothing is given."""
        for version, old, new, sentence in (("11.0.0", b"\0SfiInit\0", b"\0SfiInix\0", "no entry point is called SfiInit|nothing tests the keywords"),
                                            ("8.0.30", bytes.fromhex("48b80080000002000000"), bytes.fromhex("48b80080000001000000"),
                                             "nothing tests the keywords of exceptions")):
            with self.subTest(version), open(self.image("runtime", "linux-x64", version), "rb") as f:
                data = f.read()
                self.assertIn(old, data)
                with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
                    copy = os.path.join(folder, "libcoreclr.so")
                    with open(copy, "wb") as f:
                        f.write(data.replace(old, new))
                    status, output = check("--exceptions", copy)
                self.assertEqual(status, 1, output)
                self.assertRegex(refusal(output, "exceptions"), f"^({sentence}).*\\(.+\\)$")


class Allocations(PackedImages):
    """Where the collector reports what was allocated."""

    def found_in(self, kind, system, version):
        path = self.image(kind, system, version)
        if path is None:
            return None
        status, output = check("--allocations", path)
        self.assertEqual(status, 0, output)
        print(f"  allocations, {kind} {version} {system}: {len(found_allocations(output))} places", flush=True)
        return found_allocations(output)

    def test_functions(self):
        for (kind, system), versions in ALLOCATIONS.items():
            arguments = ALLOCATION_ARGUMENTS[system.split("-")[-1]]
            for version, offsets in versions.items():
                with self.subTest(f"{kind} {version} {system}"):
                    found_here = self.found_in(kind, system, version)
                    if found_here is not None:
                        self.assertEqual(found_here, [(offset, "function", facts) for offset, facts in zip(offsets, arguments)])

    def test_branches(self):
        for (kind, system), offsets in INLINED_ALLOCATIONS.items():
            with self.subTest(f"{kind} {NEWEST} {system}"):
                found_here = self.found_in(kind, system, NEWEST)
                self.assertEqual([(offset, form) for offset, form, _ in found_here], [(offset, "inlined") for offset in offsets])
                for offset, _, facts in found_here:
                    # Bytes, heap and object are in registers, in the frame, or a number; the sum that was compared is in a register.
                    self.assertRegex(facts, r"^r\d+ (r\d+|\d+|\[fp\+-?\d+\]) (r\d+|\[fp\+-?\d+\])$", hex(offset))

    def refused(self, path, change):
        """The refusal of a copy that `change` has changed."""
        with open(path, "rb") as f:
            data = bytearray(f.read())
        change(data)
        with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
            copy = os.path.join(folder, "libcoreclr.so")
            with open(copy, "wb") as f:
                f.write(data)
            status, output = check("--allocations", copy)
        self.assertEqual((status, found_allocations(output)), (1, []), output)
        self.assertRegex(refusal(output, "allocations"), r"\(.+\)$")  # a hint
        return refusal(output, "allocations")

    def test_damaged(self):
        """One of the places is another one: none is given."""
        def at(offset, patch):
            def change(data):
                data[offset:offset + len(patch)] = patch
            return change

        for system, nothing in (("linux-x64", b"\x90"), ("linux-arm64", bytes.fromhex("1f2003d5"))):
            runtime = self.image("runtime", system, NEWEST)
            branch = INLINED_ALLOCATIONS["runtime", system][0]
            size = 6 if system == "linux-x64" else 4
            with self.subTest(system, what="a report is gone"):
                self.assertIn("begins anew at 20 places, but is reported at 19",
                              self.refused(runtime, at(branch, nothing * (size // len(nothing)))))
        runtime = self.image("runtime", "linux-arm64", NEWEST)
        branch = INLINED_ALLOCATIONS["runtime", "linux-arm64"][0]
        with self.subTest(what="a report stands behind another comparison"):
            # movk w8, #2, lsl #16, 32 bytes in front of the branch: the limit is another one.
            self.assertIn("1 of 20 reports of allocations are not understood", self.refused(runtime, at(branch - 32, bytes.fromhex("4800a072"))))
        with self.subTest(what="a function's first instructions"):
            version = "10.0.15"
            function = ALLOCATIONS["runtime", "linux-arm64"][version][0]
            runtime = self.image("runtime", "linux-arm64", version)
            # A breakpoint, which is no part of a report, and in front of the record of the frame something else: mov x22, x0.
            self.assertIn("1 functions report allocations", self.refused(runtime, at(function, bytes.fromhex("000020d4"))))
            self.assertIn("sets up its frame in no known way", self.refused(runtime, at(function, bytes.fromhex("f60300aa"))))

    def test_other_files(self):
        for path in ("/bin/true", self.image("runtime", "linux-x64", NEWEST).replace("libcoreclr", "libclrjit")):
            status, output = check("--allocations", os.path.realpath(path))
            self.assertEqual((status, found_allocations(output)), (1, []), output)
            self.assertRegex(refusal(output, "allocations"), r"\(.+\)$")


class Damaged(HookTest):
    """Copies of a runtime, each with one thing wrong: what depends on it is refused with a reason, and no address is given."""

    def setUp(self):
        self.runtime, self.jit = self.folder(NEWEST)
        with open(self.runtime, "rb") as f:
            self.data = bytearray(f.read())
        self.scratch = tempfile.TemporaryDirectory(prefix="hooks-")
        self.addCleanup(self.scratch.cleanup)

    def assert_refused(self, data, hooks, reason, jit=None, others=True):
        """`others`: all hooks but these are found."""
        path = os.path.join(self.scratch.name, "libcoreclr.so")
        with open(path, "wb") as f:
            f.write(data)
        status, output = check(path, "--jit", jit or self.jit)
        self.assertEqual(status, 1, output)
        for hook in HOOKS:
            if hook in hooks:
                self.assertEqual(found(output, hook), {}, output)
                self.assertRegex(refusal(output, hook), reason)
                self.assertRegex(refusal(output, hook), r"\(.+\)$")  # a hint
            elif others:
                self.assertNotEqual(found(output, hook), {}, output)
        return output

    def blanked(self, name):
        _, offset, size = sections(self.data)[name]
        data = bytearray(self.data)
        data[offset:offset + size] = bytes(size)
        return data

    def test_blanked_sections(self):
        collections = HOOKS[3:]
        self.assert_refused(self.blanked("__tracepoints_strings"), HOOKS[1:], "no tracepoint is named DotNETRuntime:GCSuspendEEBegin_V1|"
                            "no tracepoint is named DotNETRuntime:GCRestartEEBegin_V1")
        self.assert_refused(self.blanked(".rela.dyn"), HOOKS[1:], "no tracepoint has the name")
        self.assert_refused(self.blanked(".eh_frame_hdr"), HOOKS[1:], "functions can't be told")
        self.assert_refused(self.blanked(".eh_frame"), HOOKS[1:], "is read by 0 functions|told by SuspendEE")
        self.assert_refused(self.blanked(".text"), HOOKS[1:], "is read by 0 functions|told by SuspendEE")
        # Tracepoints are zeroes in the file anyway: what they hold is in relocations.
        self.assertEqual(self.blanked("__tracepoints"), self.data)
        # The relocations that fill the collector's table of callbacks.
        data_rel_ro, size = sections(self.data)[".data.rel.ro"][0], sections(self.data)[".data.rel.ro"][2]
        _, offset, length = sections(self.data)[".rela.dyn"]
        data = bytearray(self.data)
        for at in range(offset, offset + length, 24):
            if data_rel_ro <= struct.unpack_from("<Q", data, at)[0] < data_rel_ro + size:
                data[at:at + 24] = bytes(24)
        self.assert_refused(data, collections, "no table of 45 functions or more")

    def test_sections_of_other_names(self):
        for name, hooks, reason in ((b"__tracepoints\0", HOOKS[1:], "no tracepoint sections"),
                                    (b"__tracepoints_strings\0", HOOKS[1:], "no tracepoint sections")):
            _, offset, size = sections(self.data)[".shstrtab"]
            at = self.data.index(b"\0" + name, offset, offset + size)
            data = bytearray(self.data)
            data[at + 1:at + 3] = b"??"
            self.assert_refused(data, hooks, reason)

    def test_patched_prologues(self):
        expected = dict(zip(HOOKS, FOLDERS[NEWEST]))
        depends = {"SuspendEE": ("SuspendEE", *HOOKS[3:]), "RestartEE": ("RestartEE", *HOOKS[3:]),
                   "DiagGCStart": ("DiagGCStart",), "DiagGCEnd": ("DiagGCEnd",)}
        for hook, refused in depends.items():
            for patch in (b"\xcc", b"\x90", b"\xf3\x0f\x1e\xfa", b"\xe9\0\0\0\0"):
                with self.subTest(f"{hook} {patch.hex()}"):
                    offset = expected[hook] if isinstance(expected[hook], int) else expected[hook][0]
                    data = bytearray(self.data)
                    data[offset:offset + len(patch)] = patch
                    self.assert_refused(data, refused, "is no known way to set up a frame")

    def test_a_patched_jit(self):
        with open(self.jit, "rb") as f:
            original = f.read()
        offset = FOLDERS[NEWEST][0]
        path = os.path.join(self.scratch.name, "libclrjit.so")

        def patched(at, patch):
            data = bytearray(original)
            data[at:at + len(patch)] = patch
            with open(path, "wb") as f:
                f.write(data)
            return path

        output = self.assert_refused(self.data, ("compileMethod",), "is no known way to set up a frame", patched(offset, b"\xcc"))
        self.assertIn("jit-return refused", output)
        # Another instruction in the middle: the function is still the one, but nothing is given inside it.
        status, output = check(self.runtime, "--jit", patched(offset + 0x63, b"\x90"))
        self.assertEqual(status, 1, output)
        self.assertEqual(found(output, "compileMethod"), {0: offset})
        self.assertIn("not, instruction for instruction, the function that is known", refusal(output, "jit-return"))
        self.assertIn("jit-interface " + GUIDS[NEWEST.split(".")[0]], output)
        for cut in (len(original) // 2, 64 * 1024):
            with open(path, "wb") as f:
                f.write(original[:cut])
            self.assert_refused(self.data, ("compileMethod",), "JIT's functions can't be told|does not export getJit|no table of four", path)

    def test_truncated_images(self):
        whole = len(self.data)
        for size in (*range(64 * 1024, whole, whole // 16), whole - 1):
            with self.subTest(size):
                self.assert_refused(self.data[:size], HOOKS[1:], "does not export what a .NET runtime exports|no tracepoint sections|told by",
                                    others=False)

    def test_other_programs(self):
        for path in ("/bin/true", "/bin/bash", sys.executable):
            with open(os.path.realpath(path), "rb") as f:
                data = f.read()
            self.assert_refused(data, HOOKS, "does not export what a .NET runtime exports")
        gc = os.path.join(os.path.dirname(self.runtime), "libclrgc.so")
        with open(gc, "rb") as f:
            self.assert_refused(f.read(), HOOKS, "does not export what a .NET runtime exports")
        with open(self.jit, "rb") as f:
            self.assert_refused(f.read(), HOOKS, "does not export what a .NET runtime exports")
        # A runtime in the JIT's place.
        self.assert_refused(self.data, ("compileMethod",), "no table of four functions|does not export getJit", self.runtime)
        path = os.path.join(self.scratch.name, "random")
        with open(path, "wb") as f:
            f.write(os.urandom(1 << 20))
        status, output = check(path)
        self.assertEqual((status, "not an ELF file" in output), (2, True), output)


if __name__ == "__main__":
    check_program.main(PROGRAM)
