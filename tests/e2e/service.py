"""`clrsampler serve` in a folder of its own, and questions to it."""
import contextlib
import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

import harness


class Service:
    """Ends with the with statement; `folder` has the history and recordings, and outlives a restart. agent: how the program is called."""

    def __init__(self, *options, folder=None, window="2s", env=None, listen="127.0.0.1:0", agent=None):
        self.agent = agent or [harness.AGENT]
        self.folder = folder or tempfile.mkdtemp(prefix="clrsampler-test-")
        self.owns_folder = folder is None
        self.arguments = ["--history", f"{self.folder}/history.db", "--recordings", f"{self.folder}/recordings", "--window", window,
                          "--listen", listen, *map(str, options)]
        self.env = {**os.environ, **(env or {})}
        self.start()

    def start(self, wait=True):
        if getattr(self, "log", None):
            self.log.close()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*self.agent, "serve", *self.arguments], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, env=self.env)
        if wait:
            self.wait_for_log("sampling this host")
            found = re.search(r"listening on http://(\S+):(\d+)/", self.said())
            self.address = (found[1], int(found[2])) if found else None

    def said(self):
        return os.pread(self.log.fileno(), 1 << 22, 0).decode("utf-8", "replace")

    def wait_for_log(self, text, seconds=30, times=1):
        end = time.monotonic() + seconds
        while len(re.findall(text, self.said())) < times:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}\n{self.said()}")
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} was not said\n{self.said()}")
            time.sleep(0.05)

    def get(self, path, timeout=60, **parameters):
        """status, body"""
        target = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
        client = http.client.HTTPConnection(*self.address, timeout=timeout)
        with contextlib.closing(client):
            client.request("GET", target)
            answer = client.getresponse()
            return answer.status, answer.read()

    def json(self, path, **parameters):
        status, body = self.get(path, **parameters)
        if status != 200:
            raise AssertionError(f"{path} {parameters}: {status} {body[:500]}")
        return json.loads(body)

    def metrics(self):
        """{(name, frozenset of labels): value}"""
        values = {}
        for line in self.get("/metrics")[1].decode().splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found:
                labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
                values[found[1], labels] = float(found[3])
        return values

    def sum(self, name, metrics=None, **labels):
        wanted = set(labels.items())
        return sum(value for (found, has), value in (metrics or self.metrics()).items() if found == name and wanted <= has)

    def wait_for_windows(self, count, seconds=60):
        """Until so many more windows are in the history."""
        before = self.sum("clrsampler_windows_total", result="written")
        end = time.monotonic() + seconds
        while self.sum("clrsampler_windows_total", result="written") < before + count:
            if time.monotonic() > end:
                raise AssertionError(f"no {count} windows in {seconds} s\n{self.said()}")
            time.sleep(0.1)

    def stop(self, number=signal.SIGTERM, seconds=30):
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


class Manager:
    """A service manager's end of sd_notify."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.env = {"NOTIFY_SOCKET": self.path}
        self.said = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        """All the time: who sends to a full socket is not waited for."""
        with contextlib.suppress(OSError):
            while said := self.socket.recv(4096):
                self.said.put(said.decode())

    def wait_for(self, text, seconds=30):
        while text not in (said := self.said.get(timeout=seconds)):
            pass
        return said
