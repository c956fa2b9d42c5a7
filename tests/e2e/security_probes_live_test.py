#!/usr/bin/env python3
"""A user who writes a debug file that the host does not trust chooses no address for a probe, and no debug file chooses a return probe."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time

import harness
import runtimes
from watcher import Watcher

# The agent takes this for a NativeAOT program. C++ exceptions pass through `pass`, which a return probe on it would turn into an abort.
SOURCE = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
extern "C" {
__attribute__((visibility("default"), used)) extern const char DotNetRuntimeDebugHeader[64] = "DNDH";
__attribute__((used)) extern const char versions[] = "9.0.2026.41315\0009.0.20+3879076d00000000000000000000000000000000";
volatile int sum;
__attribute__((noinline)) void thrower(void) { if (sum != -1) throw 1; }
__attribute__((noinline)) void pass(void) { thrower(); sum = sum + 1; }
__attribute__((noinline)) void nothing(void) { asm volatile("" ::: "memory"); }
__attribute__((noinline)) void second(void) { nothing(); sum = sum + 2; }  // a function that calls sets up a frame
__attribute__((noinline)) void third(void) { nothing(); sum = sum + 3; }
__attribute__((noinline)) void fourth(void) { nothing(); sum = sum + 4; }
}
int main() {
  const time_t end = time(nullptr) + 60;
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (time(nullptr) < end) {
    try { pass(); } catch (int) {}
    second(); third(); fourth();
    usleep(1000);
  }
}
"""
FORGED = {"pass": "_ZN15GCToEEInterface9SuspendEEE14SUSPEND_REASON", "second": "_ZN15GCToEEInterface9RestartEEEb",
          "third": "_ZN15GCToEEInterface11DiagGCStartEib", "fourth": "_ZN15GCToEEInterface9DiagGCEndEmiib"}
# Planting takes some milliseconds; a machine with other work may take longer.
WATCHED_SECONDS = 6


class ForgedProbesTest(harness.LiveTest):
    NEEDS = ("c++", "objcopy", "strip", "unshare", "setpriv")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="forged_probes_", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o755)
        self.host = self.make_folder("host")
        self.make_folder("host/.debug")
        self.theirs = self.make_folder("theirs", harness.NOBODY)
        whole = os.path.join(self.folder, "whole")
        subprocess.run(["c++", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fcf-protection=none", "-Wl,--build-id",
                        "-Wl,--export-dynamic-symbol=DotNetRuntimeDebugHeader", "-x", "c++", "-", "-o", whole],
                       input=SOURCE, text=True, check=True)
        self.program = os.path.join(self.host, "program")
        subprocess.run(["strip", "-o", self.program, whole], check=True)
        os.chmod(self.program, 0o755)
        self.forged = os.path.join(self.theirs, "program.debug")
        subprocess.run(["objcopy", *(f"--redefine-sym={old}={new}" for old, new in FORGED.items()), whole, self.forged], check=True)
        os.chown(self.forged, harness.NOBODY, harness.NOBODY)

    def make_folder(self, name, owner=0):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        os.chown(path, owner, owner)
        os.chmod(path, 0o755)
        return path

    @staticmethod
    def changed_code(pid):
        """How many bytes of the program's code in memory are not those of the file."""
        with open(f"/proc/{pid}/maps") as maps:
            begin, end, offset, path = next((*(int(x, 16) for x in fields[0].split("-")), int(fields[2], 16), fields[5])
                                            for fields in map(str.split, maps)
                                            if "x" in fields[1] and len(fields) == 6 and fields[5].endswith("/program"))
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory, open(f"/proc/{pid}/exe", "rb") as file:
            memory.seek(begin)
            file.seek(offset)
            original = file.read(end - begin)
            return sum(a != b for a, b in zip(original, memory.read(len(original))))

    def watch(self, *commands):
        """The changes that probes made in the last of the processes, and what the agent said."""
        targets = [harness.Target(command) for command in commands]
        for target in targets:
            self.addCleanup(target.stop)
        victim = targets[-1]
        agent = harness.Agent(["--pid", ",".join(str(target.host_pid) for target in targets), "--duration", f"{WATCHED_SECONDS}s"])
        changed = 0
        while agent.process.poll() is None and victim.process.poll() is None:
            try:
                changed = max(changed, self.changed_code(victim.host_pid))
            except (OSError, StopIteration):
                break  # it has just ended
            time.sleep(0.05)
        result = agent.finish(120)
        self.assertIsNone(victim.process.poll(), f"the agent ended a process of root's\n{result}")
        self.assertEqual(result.status, 0, result)
        return changed, result

    def check(self, forger, victim):
        changed, result = self.watch(forger, victim)
        self.assertEqual(changed, 0, f"there are probes in root's process where another user wants them\n{result}")
        self.assertIn("the host has no debug file of it that belongs to root or to the program's owner", result.err)

    def test_mount_namespace(self):
        """In a user and mount namespace of its own, nobody binds the file over the place where it is looked for."""
        script = f"mount --bind {self.theirs} {self.host}/.debug && exec {self.program}"
        self.check([*harness.AS_NOBODY, "unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script], [self.program])

    def test_hard_link(self):
        """Beside a link to root's program in a folder of nobody's."""
        link = os.path.join(self.theirs, "program")
        os.link(self.program, link)
        self.check([*harness.AS_NOBODY, link], [self.program])

    def test_overlays(self):
        """Two containers of one image; one of them adds the file."""
        def container(name, forged):
            work, merged = (self.make_folder(f"{name}_{part}") for part in ("work", "merged"))
            adds = f"mkdir {work}/u/.debug; cp {self.forged} {work}/u/.debug/;" if forged else ""
            return ["unshare", "--mount", "sh", "-ec",
                    f"mount -t tmpfs none {work}; mkdir {work}/u {work}/w; {adds} "
                    f"mount -t overlay overlay -o lowerdir={self.host},upperdir={work}/u,workdir={work}/w {merged}; exec {merged}/program"]
        self.check(container("forger", True), container("victim", False))

    def test_a_file_of_root_is_taken_without_return_probes(self):
        """The same names in a file that root keeps: probes are planted, and exceptions pass through."""
        trusted = shutil.copy(self.forged, os.path.join(self.host, ".debug"))
        os.chown(trusted, 0, 0)
        changed, result = self.watch([self.program])
        self.assertGreaterEqual(changed, 2, f"no probe is planted at all: the other tests prove nothing\n{result}")
        self.assertNotIn("has no debug file", result.err)


class RuntimesOfContainersTest(harness.LiveTest):
    """Probes go into the file that a container's runtime really is, and report of each process what is its own."""
    NEEDS = ("dotnet",)
    VERSION = "10.0.14"

    def in_overlay(self, name, before=""):
        """The runtime's folder, as the lower layer of a container's, at the same path."""
        root, work = runtimes.root(self.VERSION), tempfile.mkdtemp(prefix=f"clrsampler-{name}-")
        self.addCleanup(os.rmdir, work)
        return ["unshare", "--mount", "sh", "-ec",
                f"mount -t tmpfs none {work}; mkdir {work}/u {work}/w; "
                f"mount -t overlay overlay -o lowerdir={root},upperdir={work}/u,workdir={work}/w {root}; {before} exec \"$@\"", "sh"]

    def test_overlays_and_hard_links(self):
        self.need_runtime(self.VERSION)
        command, env = runtimes.command(self.VERSION, "gc", "--seconds", "60")
        library = f"{runtimes.root(self.VERSION)}/shared/Microsoft.NETCore.App/{self.VERSION}/libcoreclr.so"
        cases = {
            "host": [],
            "a container": self.in_overlay("first"),
            "another container of the image": self.in_overlay("second"),
            "one with a copy of its own": self.in_overlay("copy", f"touch {library};"),
            "one whose copy has two names": self.in_overlay("link", f"touch {library}; ln {library} {library}.other;"),
        }
        with contextlib.ExitStack() as stack:
            targets = {name: stack.enter_context(harness.Target([*prefix, *command], env=env)) for name, prefix in cases.items()}
            files = {name: os.stat(f"/proc/{t.host_pid}/root{library}") for name, t in targets.items()}
            self.assertGreaterEqual(len({(f.st_dev, f.st_ino) for f in files.values()}), 3, "they are different files")
            watchers = {name: Watcher("pauses", t.host_pid) for name, t in targets.items()}
            time.sleep(4)
            seen = {name: watcher.finish() for name, watcher in watchers.items()}
        for name, pauses in seen.items():
            with self.subTest(name):
                numbers = [p["gc_index"] for p in pauses if p.get("gc_index") is not None and p["kind"] == "blocking"]
                print(f"    {name}: {len(numbers)} collections", flush=True)
                self.assertGreater(len(numbers), 20)
                # Each runtime counts its own: another's among them would break the order, a lost one leave a gap.
                self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))


if __name__ == "__main__":
    harness.main()
