#!/usr/bin/env python3
"""The package's copyright file names every library whose code is in the package."""
import json
import os
import re
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Headers that are compiled in, and archives that are found otherwise than as NAME_ARCHIVE.
BUILT_IN = ("Abseil", "nlohmann-json", "CLI11", "protozero", "libstdc++", "libgcc")


def read(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read()


class CopyrightTest(unittest.TestCase):
    def setUp(self):
        self.text = read("tools", "packaging", "deb", "copyright")

    def check_named(self, name):
        self.assertRegex(self.text, rf"(?<![\w-]){re.escape(name)}(?![\w-])", "tools/packaging/deb/copyright does not name it")

    def test_libraries_that_are_linked_as_archives(self):
        archives = re.findall(r"find_library\(\w+_ARCHIVE lib(\w+)\.a", read("cmake", "dependencies.cmake"))
        self.assertGreaterEqual(set(archives), {"yaml", "md"})
        for name in archives:
            # libtinfo is a part of ncurses.
            self.check_named("ncurses" if name in ("ncursesw", "tinfo") else f"lib{name}")

    def test_libraries_that_only_static_programs_contain(self):
        text = read("cmake", "dependencies.cmake")
        names = set(re.findall(r"^pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET (\w+)", text, re.M))  # an indented one is not in them
        self.assertGreaterEqual(names, {"libbpf", "sqlite3", "re2"})
        for name in (*names, "libc"):
            self.check_named(name)

    def test_libraries_that_are_compiled_in(self):
        for name in BUILT_IN:
            self.check_named(name)

    def test_libraries_of_the_pages(self):
        packages = json.loads(read("userspace", "output", "page", "package-lock.json"))["packages"]
        shipped = [path.removeprefix("node_modules/") for path, package in packages.items()
                   if path and not package.get("dev") and not package.get("optional")]
        self.assertIn("preact", shipped)
        for name in shipped:
            self.check_named(name)


if __name__ == "__main__":
    unittest.main()
