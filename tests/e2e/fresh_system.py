"""A fresh Debian of this machine's suite, made by debootstrap from its mirror, and the Debian package of the build."""
import os
import re
import shutil
import subprocess

import harness

BUILD = os.path.dirname(harness.AGENT)


def run(*command, **options):
    """(exit status, output and errors)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, stdin=subprocess.DEVNULL, **options)
    return done.returncode, done.stdout


class FreshSystemTest(harness.LiveTest):
    def must(self, *command, **options):
        status, said = run(*command, **options)
        self.assertEqual(status, 0, f"{' '.join(command)}\n{said[-4000:]}")
        return said

    def build_package(self, folder):
        """The path of the package."""
        self.must("cpack", "-G", "DEB", "-B", folder, cwd=BUILD)
        packages = [name for name in os.listdir(folder) if name.endswith(".deb")]
        self.assertEqual(len(packages), 1, packages)
        return os.path.join(folder, packages[0])

    def make_system(self, root):
        with open("/etc/os-release", encoding="utf-8") as f:
            suite = re.search(r"^VERSION_CODENAME=(\w+)", f.read(), re.M)[1]
        status, said = run("debootstrap", "--variant=minbase", suite, root)
        if status:
            self.unavailable(f"debootstrap: {said[-500:]}")
        shutil.copy("/etc/resolv.conf", os.path.join(root, "etc", "resolv.conf"))
