#!/usr/bin/env python3
"""The Debian package, built and taken through its life in a fresh system: installed, run, removed, purged. Needs root, debootstrap and a mirror."""
import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import urllib.request

import fresh_system
import harness

QUIET = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8", PATH="/usr/sbin:/usr/bin:/sbin:/bin")


class DebTest(fresh_system.FreshSystemTest):
    NEEDS = ("debootstrap", "cpack", "unshare")

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clrsampler-test-"))
        self.root = os.path.join(self.folder, "root")

    def inside(self, *command):
        """The command line of one in the new system, in a mount namespace of its own: nothing is left mounted."""
        script = """
            root=$1; shift
            mount --rbind /proc "$root/proc"; mount --rbind /sys "$root/sys"; mount --rbind /dev "$root/dev"
            exec chroot "$root" "$@" """
        return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", self.root, *command]

    def chroot(self, *command):
        return self.must(*self.inside(*command), env=QUIET)

    def path(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def traces(self):
        """Files of ours, outside the package manager's own accounts."""
        found = []
        for folder, folders, files in os.walk(self.root):
            here = folder.removeprefix(self.root)
            folders[:] = [f for f in folders if os.path.join(here, f) not in ("/proc", "/sys", "/dev", "/var/log", "/var/cache/apt", "/var/cache/debconf")]
            found += [os.path.join(here, name) for name in (*folders, *files) if "clrsampler" in name]
        return sorted(found)

    def test_from_install_to_purge(self):
        package = self.build_package(self.folder)
        self.make_system(self.root)
        self.assertEqual(self.traces(), [])
        shutil.copy(package, self.path("/tmp/package.deb"))
        self.chroot("apt-get", "-qq", "update")
        self.chroot("apt-get", "-qq", "-y", "install", "/tmp/package.deb")

        with self.subTest("what is there"):
            self.assertEqual(self.chroot("dpkg", "--verify", "clrsampler"), "")
            self.assertIn("/etc/clrsampler/serve.conf", self.chroot("dpkg-query", "-W", "-f", "${Conffiles}", "clrsampler"))
            self.assertEqual(stat.S_IMODE(os.stat(self.path("/etc/clrsampler/serve.conf")).st_mode), 0o640)
            for path in ("/usr/share/man/man1/clrsampler.1", "/usr/share/man/man1/clrsampler-serve.1", "/usr/share/doc/clrsampler/copyright",
                         "/usr/lib/systemd/system/clrsampler.service", "/usr/lib/clrsampler/libclrsampler_profiler.so",
                         "/usr/share/bash-completion/completions/clrsampler"):
                self.assertTrue(os.path.isfile(self.path(path)), path)
            self.assertIn("clrsampler:x:", self.chroot("getent", "passwd", "clrsampler"))
            # Installed, and neither enabled nor started.
            self.assertEqual([p for p in self.traces() if p.startswith("/etc/systemd")], [])

        with self.subTest("it runs"):
            self.assertRegex(self.chroot("clrsampler", "--version"), r"^clrsampler \d")
            self.assertIn("--frequency", self.chroot("clrsampler", "serve", "--help"))
            self.assertNotEqual(self.chroot("clrsampler", "doctor"), "")
            said = self.chroot("clrsampler", "--duration", "1s", "--frequency", "499")
            self.assertRegex(said, r"(?m)^\S.*;.* \d+$")
            self.assertIn("clrsampler_build_info{", self.served("/metrics"))

        with self.subTest("remove keeps configuration and history, purge nothing"):
            self.chroot("apt-get", "-qq", "-y", "remove", "clrsampler")
            self.assertEqual([p for p in self.traces() if not p.startswith("/var/lib/dpkg")],
                             ["/etc/clrsampler", "/var/lib/clrsampler"])
            self.chroot("apt-get", "-qq", "-y", "purge", "clrsampler")
            self.assertEqual(self.traces(), [])
            with open(self.path("/etc/passwd"), encoding="utf-8") as f:
                self.assertNotIn("clrsampler", f.read())

    def served(self, path):
        """One page of `clrsampler serve` with the installed configuration, at another port."""
        process = subprocess.Popen(self.inside("clrsampler", "serve", "--config", "/etc/clrsampler/serve.conf", "--listen", "127.0.0.1:0"),
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=QUIET)
        try:
            said = ""
            for line in process.stderr:
                said += line
                if "sampling this host" in line:
                    break
            found = re.search(r"http://\S+?:\d+/", said)
            self.assertIsNotNone(found, said)
            with urllib.request.urlopen(found[0].rstrip("/") + path, timeout=20) as answer:
                return answer.read().decode()
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
            process.stderr.close()


if __name__ == "__main__":
    harness.main()
