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
        deadline = time.monotonic() + 60
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
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not end: {' '.join(self.command)}\n{self.said()}")
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
