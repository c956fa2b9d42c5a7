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
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse

import harness

SO_TIMESTAMPNS = 35  # <asm-generic/socket.h>; Python has no name for it


class Service:
    """Ends with the with statement; `folder` has the history and recordings, and outlives a restart. agent: how the program is called.
    token: what get() sends and the server knows; None: the server knows none."""

    def __init__(self, *options, folder=None, window="2s", env=None, listen="127.0.0.1:0", agent=None, token="test-token-of-service", wait=True):
        self.agent = agent or [harness.AGENT]
        self.folder = folder or tempfile.mkdtemp(prefix="clrsampler-test-")
        self.owns_folder = folder is None
        self.arguments = ["--history", f"{self.folder}/history.db", "--recordings", f"{self.folder}/recordings", "--window", window,
                          "--listen", listen, *map(str, options)]
        self.env = {**os.environ, **(env or {})}
        self.headers = {}
        if token and not os.path.isdir(self.folder):  # it makes that itself, and gives it away only when it did
            token = None
        self.token = token
        if token:
            path = f"{self.folder}/token"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "w", encoding="ascii") as file:
                file.write(token + "\n")
            os.chown(path, *(getattr(os.stat(self.folder), name) for name in ("st_uid", "st_gid")))
            self.arguments += ["--token-file", path]
            self.headers = {"Authorization": f"Bearer {token}"}
        self.start(wait)

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

    def wait_for_log(self, text, seconds=90, times=1):
        end = time.monotonic() + seconds
        while len(re.findall(text, self.said())) < times:
            if self.process.poll() is not None:
                raise AssertionError(f"it ended with {self.process.returncode}\n{self.said()}")
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} was not said\n{self.said()}")
            time.sleep(0.05)

    def get(self, path, timeout=120, **parameters):
        """status, body"""
        target = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
        client = http.client.HTTPConnection(*self.address, timeout=timeout)
        with contextlib.closing(client):
            client.request("GET", target, headers=self.headers)
            answer = client.getresponse()
            return answer.status, answer.read()

    def json(self, path, **parameters):
        end = time.monotonic() + 60
        while True:
            status, body = self.get(path, **parameters)
            if status not in (429, 503) or time.monotonic() > end:
                break
            time.sleep(0.5)  # questions have a budget
        if status != 200:
            raise AssertionError(f"{path} {parameters}: {status} {body[:500]}")
        return json.loads(body)

    def metrics(self):
        """{(name, frozenset of labels): value}"""
        values, end = {}, time.monotonic() + 60
        while (answer := self.get("/metrics"))[0] != 200 and time.monotonic() < end:
            time.sleep(0.5)
        if answer[0] != 200:
            raise AssertionError(f"/metrics: {answer}")
        for line in answer[1].decode().splitlines():
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            if found:
                labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
                values[found[1], labels] = float(found[3])
        return values

    def sum(self, name, metrics=None, **labels):
        wanted = set(labels.items())
        return sum(value for (found, has), value in (metrics or self.metrics()).items() if found == name and wanted <= has)

    def wait_for_windows(self, count, seconds=120):
        """Until so many more windows are in the history, and with them all that was sampled up to now."""
        now, before = time.time() * 1e3, self.sum("clrsampler_windows_total", result="written")
        end = time.monotonic() + seconds
        # A busy machine writes windows late, so some of those that come next may end before now. Without a token nobody is told of that.
        while self.sum("clrsampler_windows_total", result="written") < before + count or (
                self.token and (self.json("/api/status")["newest"] or 0) < now):
            if time.monotonic() > end:
                raise AssertionError(f"no {count} windows in {seconds} s\n{self.said()}")
            time.sleep(0.1)

    def stop(self, number=signal.SIGTERM, seconds=90):
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
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.said = queue.Queue()
        self.sent = []  # (when the kernel took it, by time.time(); what was said)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        """Listens all the time: a sender that meets a full socket is not waited for."""
        with contextlib.suppress(OSError):
            while True:
                said, control, _, _ = self.socket.recvmsg(4096, 128)
                if not said:
                    return
                for level, kind, data in control:
                    if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                        seconds, nanoseconds = struct.unpack("=qq", data[:16])
                        self.sent.append((seconds + nanoseconds / 1e9, said.decode()))
                self.said.put(said.decode())

    def wait_for(self, text, seconds=90):
        while text not in (said := self.said.get(timeout=seconds)):
            pass
        return said
