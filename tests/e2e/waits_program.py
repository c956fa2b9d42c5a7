"""tests/apps/waits, started on a runtime."""
import json
import os
import subprocess

import runtimes


class Program:
    def __init__(self, version, *arguments):
        command, additions = runtimes.command(version, *arguments, program="waits")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **additions}, start_new_session=True)
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError("the program did not start")
        self.pid = self.process.pid

    def wait(self, seconds):
        """The program's waits, by site."""
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def thread_names(self):
        folder = f"/proc/{self.pid}/task"
        names = []
        for tid in os.listdir(folder):
            with open(f"{folder}/{tid}/comm", encoding="utf-8") as comm:
                names.append(comm.read().rstrip("\n"))
        return names

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
