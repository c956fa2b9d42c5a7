#!/usr/bin/env python3
"""clrsampler top: one table as text, and the screen in a terminal of its own that the test types into."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import harness
import runtimes

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78])|\x0f")


class Terminal:
    """clrsampler in a pseudo terminal; what it draws is read all the time."""

    def __init__(self, *arguments, rows=40, columns=160):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(harness.AGENT, [harness.AGENT, "top", *map(str, arguments)])
        self.resize(rows, columns)
        self.drawn = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # it has ended
                break
            if not data:
                break
            self.drawn += data
        return ESCAPES.sub(b" ", self.drawn).decode(errors="replace")

    def wait_for(self, text, seconds=90):
        """Only what is drawn from now on counts."""
        self.drawn = b""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(text, self.read(0.2)):
                return True
        return False

    def status(self, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read(0.1)  # its last words
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return "does not end"


def top(*arguments):
    return subprocess.run([harness.AGENT, "top", *map(str, arguments)], capture_output=True, text=True, timeout=150)


class TopTest(harness.LiveTest):
    NEEDS = ("dotnet",)

    def row(self, text, pid):
        rows = [line.split() for line in text.splitlines() if line.split()[:1] == [str(pid)]]
        self.assertEqual(len(rows), 1, text)
        return rows[0]

    def test_once_says_what_a_process_does(self):
        with harness.workload(runtimes.INSTALLED, "gc", "--seconds", 120) as target:
            # The program collects for 5 % of its time. With the budget of probes, which it exceeds, it may be seen for 0.5 %, which reads as 0.
            done = top("--once", "--interval", "4s", "--lines", 500, "--frequency", 999, "--hook-budget", 0)
            self.assertEqual(done.returncode, 0, done.stderr)
            pid, cpu, managed, native, kernel, gc, _, pauses, paused, longest = self.row(done.stdout, target.pid)[:10]
            self.assertGreater(float(cpu), 20, done.stdout)
            self.assertGreater(float(gc), 0, done.stdout)
            self.assertGreater(float(pauses), 1, done.stdout)
            self.assertGreater(float(paused), 0, done.stdout)
            self.assertNotEqual(longest, "-", done.stdout)
            self.assertAlmostEqual(sum(map(float, (managed, native, kernel, gc))), 100, delta=4)
            self.assertIn(".NET ", done.stdout)
            filtered = top("--once", "--interval", "1s", "--filter", "no such process")
            self.assertEqual(len(filtered.stdout.splitlines()), 2, filtered.stdout)

    def test_once_says_which_methods(self):
        with harness.workload(runtimes.INSTALLED, "split", "--seconds", 120) as target:
            done = top("--once", "--interval", "4s", "--pid", target.pid, "--methods", "--frequency", 499)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {line.split()[-1]: line.split() for line in done.stdout.splitlines()[2:]}
        run = rows["Workload.SplitMode.Run"]
        self.assertLess(float(run[0]), 5, done.stdout)
        self.assertGreater(float(run[1]), 90, done.stdout)
        burners = [rows[f"Workload.SplitMode.Burn{letter}"] for letter in "ABC"]
        self.assertGreater(sum(float(row[0]) for row in burners), 85, done.stdout)
        self.assertEqual({row[4] for row in burners}, {"jit"}, done.stdout)

    def test_the_screen_obeys_its_keys(self):
        with harness.workload(runtimes.INSTALLED, "split", "--seconds", 120) as target:
            terminal = Terminal("--interval", "500ms", "--pid", target.pid)
            try:
                self.assertTrue(terminal.wait_for(rf"{target.pid} +[0-9.]+"), terminal.read(0))
                terminal.type("\r")
                self.assertTrue(terminal.wait_for(r"methods of process|SplitMode\.Burn"), terminal.read(0))
                self.assertTrue(terminal.wait_for(r"[0-9]"), "the table is not drawn anew")
                terminal.type("/BurnA\r")
                self.assertTrue(terminal.wait_for("filter BurnA|BurnA"), terminal.read(0))
                terminal.type("/")
                terminal.type("\x7f" * 10 + "(\r")
                self.assertTrue(terminal.wait_for("no valid expression"), terminal.read(0))
                terminal.type("/" + "\x7f" * 10 + "\r")
                terminal.type("\x1b")
                self.assertTrue(terminal.wait_for("by cpu"), terminal.read(0))
                terminal.type("s")
                self.assertTrue(terminal.wait_for("pause"), terminal.read(0))
                terminal.resize(12, 50)
                self.assertTrue(terminal.wait_for("clrsampler top"), terminal.read(0))
                terminal.type(" ")
                self.assertTrue(terminal.wait_for("stands still"), terminal.read(0))
                terminal.type("q")
                self.assertEqual(terminal.status(), 0)
                # The screen from before is back.
                self.assertIn(b"\x1b[?1049l", terminal.drawn)
            finally:
                os.close(terminal.fd)

    def test_it_says_what_it_needs(self):
        done = subprocess.run([harness.AGENT, "top"], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hint: clrsampler top --once", done.stderr)
        done = top("--once", "--filter", "(")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--filter (", done.stderr)


if __name__ == "__main__":
    harness.main()
