#!/usr/bin/env python3
"""A user's forged debug file gives names to that user's own view of a program, and to no other process of it."""
import os
import shutil
import subprocess
import tempfile

import harness

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sum;
__attribute__((noinline)) void the_real_function(void) { for (unsigned long i = 0; i < 20000000; ++i) sum += i; }
int main(int argc, char **argv) {
  time_t end = time(NULL) + 60;
  prctl(PR_SET_NAME, argc > 1 ? argv[1] : "named");
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  while (time(NULL) < end) the_real_function();
  return 0;
}
"""
FORGED = "forged_by_nobody"


class ForgedNamesTest(harness.LiveTest):
    NEEDS = ("cc", "objcopy", "strip", "unshare", "setpriv")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="forged_names_", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, True)
        os.chmod(self.folder, 0o755)
        self.host = self.make_folder("host")
        self.make_folder("host/.debug")
        self.theirs = self.make_folder("theirs", harness.NOBODY)
        whole = os.path.join(self.folder, "whole")
        subprocess.run(["cc", "-O1", "-Wl,--build-id", "-x", "c", "-", "-o", whole], input=SOURCE, text=True, check=True)
        self.program = os.path.join(self.host, "program")
        subprocess.run(["strip", "-o", self.program, whole], check=True)
        os.chmod(self.program, 0o755)
        self.forged = os.path.join(self.theirs, "program.debug")
        subprocess.run(["objcopy", "--redefine-sym", f"the_real_function={FORGED}", whole, self.forged], check=True)
        os.chown(self.forged, harness.NOBODY, harness.NOBODY)

    def make_folder(self, name, owner=0):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        os.chown(path, owner, owner)
        os.chmod(path, 0o755)
        return path

    def check(self, forger, victim):
        """`forger` is sampled first, `victim` after it, in one recording."""
        with harness.Target(forger) as first, harness.Target(victim) as second:
            os.kill(second.host_pid, harness.signal.SIGSTOP)
            agent = harness.Agent(["--pid", f"{first.host_pid},{second.host_pid}", "--duration", "5s", "--frequency", "199"])
            agent.wait_until_sampling()
            first.use_cpu(1, timeout=3)
            os.kill(second.host_pid, harness.signal.SIGCONT)
            result = agent.finish(120)
        by = {"forger": [], "victim": []}
        for stack, count in result.profile.stacks:
            for name, frames in by.items():
                if stack[0].startswith(name):
                    frames += [(frame, count) for frame in stack[1:]]

        def count(name):
            return sum(n for frame, n in by[name] if FORGED in frame)

        self.assertGreater(sum(n for _, n in by["victim"]), 50, f"the victim was not sampled\n{result}")
        self.assertGreater(count("forger"), 20, f"the forged file is not found at all: the test proves nothing\n{result}")
        self.assertEqual(count("victim"), 0, f"root's process shows the name that another user forged\n{result}")

    def test_mount_namespace(self):
        """In a user and mount namespace of its own, nobody binds the file over the place where it is looked for."""
        script = f'mount --bind {self.theirs} {self.host}/.debug && exec {self.program} forger'
        self.check([*harness.AS_NOBODY, "unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script],
                   [self.program, "victim"])

    def test_hard_link(self):
        """Beside a link to root's program in a folder of nobody's."""
        link = os.path.join(self.theirs, "program")
        os.link(self.program, link)
        self.check([*harness.AS_NOBODY, link, "forger"], [self.program, "victim"])

    def test_overlays(self):
        """Two containers of one image; one of them adds the file."""
        def container(name, *adds):
            upper, work, merged = (self.make_folder(f"{name}_{part}") for part in ("upper", "work", "merged"))
            if adds:
                os.mkdir(os.path.join(upper, ".debug"))
                shutil.copy(self.forged, os.path.join(upper, ".debug/program.debug"))
            script = (f"mount -t tmpfs none {work}; mkdir {work}/u {work}/w; cp -a {upper}/. {work}/u/; "
                      f"mount -t overlay overlay -o lowerdir={self.host},upperdir={work}/u,workdir={work}/w {merged}; "
                      f"exec {merged}/program {name}")
            return ["unshare", "--mount", "sh", "-ec", script]
        self.check(container("forger", self.forged), container("victim"))


if __name__ == "__main__":
    harness.main()
