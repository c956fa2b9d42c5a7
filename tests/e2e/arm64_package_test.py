#!/usr/bin/env python3
"""The package for arm64 beside that of this machine: the same files, a program of the right machine that runs, and what it needs. No root."""
import os
import re
import shutil
import struct
import subprocess
import tempfile

import harness
import runtimes

BUILD = os.path.dirname(harness.AGENT)
ARM64_BUILD = os.environ.get("CLRSAMPLER_ARM64_PACKAGE_BUILD", os.path.join(runtimes.SOURCE, "build", "aarch64-package"))
SYSROOT = os.path.join(runtimes.SOURCE, "build", "arm64-sysroot")
EM_AARCH64 = 183
SHT_SYMTAB = 2


class Arm64PackageTest(harness.LiveTest):
    @classmethod
    def check_needs(cls):
        if not os.path.exists(os.path.join(ARM64_BUILD, "clrsampler")):
            raise harness.Missing(f"no {ARM64_BUILD}/clrsampler: cmake --preset aarch64-package && cmake --build --preset aarch64-package")
        for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "qemu-aarch64-static"):
            if not shutil.which(tool):
                raise harness.Missing(f"no `{tool}` on PATH")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))

    def must(self, *command, **options):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def package(self, build):
        folder = tempfile.mkdtemp(dir=self.folder)
        self.must("cpack", "-G", "DEB", "-B", folder, cwd=build)
        packages = [name for name in os.listdir(folder) if name.endswith(".deb")]
        self.assertEqual(len(packages), 1, packages)
        return os.path.join(folder, packages[0])

    def field(self, package, name):
        return self.must("dpkg-deb", "--field", package, name).strip()

    def names_of(self, package, field):
        """Names of packages without their versions."""
        return sorted(re.sub(r" *\(.*\)", "", entry) for entry in self.field(package, field).split(", "))

    def contents(self, package):
        """(mode, owner, path) of each entry."""
        return [(line.split()[0], line.split()[1], line.split()[5]) for line in self.must("dpkg-deb", "--contents", package).splitlines()]

    def control_files(self, package):
        """The scripts and conffiles by name, as they are."""
        folder = tempfile.mkdtemp(dir=self.folder)
        self.must("dpkg-deb", "--control", package, folder)
        found = {}
        for name in set(os.listdir(folder)) - {"control", "md5sums"}:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                found[name] = (os.stat(f.fileno()).st_mode, f.read())
        return found

    def check_program(self, path):
        with open(path, "rb") as f:
            elf = f.read()
        self.assertEqual(elf[:4], b"\x7fELF")
        self.assertEqual(struct.unpack_from("<H", elf, 18)[0], EM_AARCH64)
        table, = struct.unpack_from("<Q", elf, 0x28)
        entry_bytes, count = struct.unpack_from("<HH", elf, 0x3a)
        types = [struct.unpack_from("<I", elf, table + index * entry_bytes + 4)[0] for index in range(count)]
        self.assertGreater(len(types), 20)
        self.assertNotIn(SHT_SYMTAB, types, "not stripped")

        def run(*arguments):
            return self.must("qemu-aarch64-static", "-L", SYSROOT, path, *arguments)
        self.assertEqual(run("--version"), self.must(harness.AGENT, "--version"))
        # A static program could open no library for its server, and has no such command.
        self.assertIn("--frequency", run("serve", "--help"))

    def test_it_is_that_of_this_machine_for_another_one(self):
        package, native = self.package(ARM64_BUILD), self.package(BUILD)
        version = self.field(native, "Version")
        self.assertEqual(os.path.basename(package), f"clrsampler_{version}_arm64.deb")
        self.assertEqual(self.field(package, "Architecture"), "arm64")
        for field in ("Package", "Version", "Section", "Recommends", "Suggests", "Description", "Maintainer"):
            self.assertEqual(self.field(package, field), self.field(native, field), field)
        self.assertEqual(self.names_of(package, "Depends"), self.names_of(native, "Depends"))
        self.assertRegex(self.field(package, "Depends"), r"\blibc6 \(>= [\d.]+\)")
        self.assertEqual(self.contents(package), self.contents(native))
        self.assertGreaterEqual(self.control_files(native).keys(), {"postinst", "prerm", "postrm", "conffiles"})
        self.assertEqual(self.control_files(package), self.control_files(native))
        unpacked = os.path.join(self.folder, "unpacked")
        self.must("dpkg-deb", "-x", package, unpacked)
        self.check_program(os.path.join(unpacked, "usr", "bin", "clrsampler"))


if __name__ == "__main__":
    harness.main()
