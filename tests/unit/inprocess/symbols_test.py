#!/usr/bin/env python3
"""The profiler library needs nothing but functions of libc that glibc and musl both have, whatever their version.

usage: symbols_test.py LIBRARY
"""
import subprocess
import sys
import unittest

LIBRARY = sys.argv.pop()
# POSIX, and what both have beyond it. Each of them is in glibc 2.17 and in musl 1.2.0.
LIBC = {"__errno_location", "clock_gettime", "close", "connect", "fcntl", "getenv", "geteuid", "getsockopt", "lseek", "memcpy", "memset", "mmap", "munmap", "nanosleep", "open", "prctl",
        "pthread_create", "pthread_join", "pthread_sigmask", "read", "recv", "recvmsg", "setsockopt", "shutdown", "sigfillset", "socket", "strlen", "syscall"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


class SymbolsTest(unittest.TestCase):
    def symbols(self):
        return [line.split() for line in output("nm", "-D", LIBRARY).splitlines()]

    def test_undefined_ones_are_those_of_both_libcs(self):
        undefined = {fields[-1] for fields in self.symbols() if fields[-2] in "Uuw"}
        self.assertGreater(len(undefined), 5)
        self.assertEqual(undefined - LIBC, set())

    def test_none_has_a_version(self):
        self.assertFalse([fields for fields in self.symbols() if "@" in fields[-1]])

    def test_two_functions_are_to_be_found(self):
        self.assertEqual({fields[-1] for fields in self.symbols() if fields[-2] == "T"}, {"DllGetClassObject", "DllCanUnloadNow"})

    def test_no_library_is_needed(self):
        dynamic = output("readelf", "-dW", LIBRARY)
        self.assertIn("FLAGS", dynamic)
        for tag in ("(NEEDED)", "(TEXTREL)", "(RPATH)", "(RUNPATH)"):
            self.assertNotIn(tag, dynamic)

    def test_no_code_can_be_written(self):
        for line in output("readelf", "-lW", LIBRARY).splitlines():
            fields = line.split()
            if fields and fields[0] in ("LOAD", "GNU_STACK"):
                self.assertNotEqual("".join(fields[6:-1]), "RWE", line)


if __name__ == "__main__":
    unittest.main()
