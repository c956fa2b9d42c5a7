"""`clrsampler pauses` and `clrsampler jit` while they watch a target, and targets that begin when they are told to."""
import json
import os
import signal
import subprocess
import tempfile
import time

import harness


class Watcher:
    """`clrsampler COMMAND --json` while it watches; `finish` ends it and gives its lines."""

    def __init__(self, command, pid, *arguments):
        self.command = [harness.AGENT, command, "--pid", str(pid), "--json", *arguments]
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.err, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while "watching process" not in self.said():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"it does not watch: {' '.join(self.command)}\n{self.said()}")
            time.sleep(0.01)

    def said(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def lines(self):
        return os.pread(self.out.fileno(), 1 << 27, 0).decode().splitlines()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end: {' '.join(self.command)}\n{self.said()}") from None
        if status != 0:
            raise AssertionError(f"status {status}: {self.said()}")
        return [json.loads(line) for line in self.lines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.out.close()
        self.err.close()


def truth_of(target):
    """Waits until the target is through; it lives on."""
    for line in target.process.stdout:
        if line.startswith("truth "):
            return json.loads(line[6:])
    raise AssertionError(f"the target ended without a word: {target.command}")


def units(target):
    """The units of work that the target has done by its next tick."""
    for line in target.process.stdout:
        if line.startswith("tick "):
            return int(line.split()[2])
    raise AssertionError("the target ended")


def goes_on(target, seconds=30):
    """Whether it does more work. A tick may pass without any, where others have the CPUs."""
    before, end = units(target), time.monotonic() + seconds
    while time.monotonic() < end:
        if units(target) > before:
            return True
    return False


def changed_code(pid):
    """How many bytes of the runtime's code differ from its file: the kernel's breakpoints."""
    changed = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if not line.rstrip().endswith("/libcoreclr.so") or "x" not in fields[1]:
                continue
            begin, end = (int(address, 16) for address in fields[0].split("-"))
            memory.seek(begin)
            code = memory.read(end - begin)
            with open(fields[5], "rb") as f:
                f.seek(int(fields[2], 16))
                true = f.read(end - begin)
            for page in range(0, len(true), 4096):
                if code[page:page + 4096] != true[page:page + 4096]:
                    changed += sum(a != b for a, b in zip(code[page:page + 4096], true[page:page + 4096]))
    return changed
