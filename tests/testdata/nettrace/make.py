#!/usr/bin/env python3
"""Records the streams of this folder, and prints what another reader than ours sees in them.

usage: make.py VERSION...     as root, for mount namespaces: paths of the machine shall not be in the streams

A runtime of each version runs the mode `events` of tests/apps/workload with a session of the keywords GC, loader, JIT, contention, threads
and exceptions at level 5, with stacks. VERSION.expected has a line for each event: ticks, thread, capture thread, sequence number, event
number, version, number of addresses on its stack, bytes and CRC-32 of its payload. VERSION.truth is what the program says it did.
"""
import json
import os
import signal
import struct
import sys
import threading
import time
import zlib

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "..", "..", "e2e"))

import diagnostics  # noqa: E402
import harness  # noqa: E402
import rundown  # noqa: E402
import runtimes  # noqa: E402
import watcher  # noqa: E402

KEYWORDS, LEVEL, BUFFER_MEGABYTES = 0xC819, 5, 4
PROVIDER = "Microsoft-Windows-DotNETRuntime"
IN_NAMESPACE = "mount -t tmpfs none /srv && mkdir /srv/dotnet /srv/app && mount --bind {root} /srv/dotnet && mount --bind {app} /srv/app && cd /srv && exec {command}"
COMMAND = "/srv/dotnet/dotnet app/workload.dll events --seconds 60 --count 5 --threads 3 --megabytes 1"


class Rows(rundown.Compressed):
    """The same rows with all fields of their headers."""

    def __iter__(self):
        sequence = capture = thread = stack = ticks = 0
        while self.at < len(self.block):
            flags = self.block[self.at]
            self.at += 1
            if flags & 1:
                self.number = self.varint()
            if flags & 2:
                sequence = (sequence + self.varint()) % 2**32
                capture = self.varint()
                self.varint()
            sequence = (sequence + (self.number != 0)) % 2**32
            if flags & 4:
                thread = self.varint()
            if flags & 8:
                stack = self.varint()
            ticks = (ticks + self.varint()) % 2**64  # a step back is a number that goes round
            self.at += (16 if flags & 16 else 0) + (16 if flags & 32 else 0)
            if flags & 128:
                self.length = self.varint()
            yield self.number, sequence, capture, thread, stack, ticks, self.block[self.at:self.at + self.length]
            self.at += self.length


def collect(pid, seconds):
    provider = struct.pack("<QI", KEYWORDS, LEVEL) + rundown.utf16(PROVIDER) + struct.pack("<I", 0)
    request = struct.pack("<II?I", BUFFER_MEGABYTES, rundown.FORMAT_NETTRACE, False, 1) + provider
    with diagnostics.ask(pid, rundown.TRACING, rundown.COLLECT_TRACING_2, request) as stream:
        status, session = diagnostics.answer(stream)
        assert status == 0, session.hex()
        received = []
        reader = threading.Thread(target=lambda: received.append(diagnostics.receive(stream, 1 << 40)))
        reader.start()
        time.sleep(seconds)
        with diagnostics.ask(pid, rundown.TRACING, rundown.STOP_TRACING, session) as control:
            diagnostics.answer(control)
        reader.join()
    return received[0]


def described(stream):
    """Lines of VERSION.expected."""
    kinds, stacks = {}, {}
    for kind, content in rundown.blocks(stream):
        if kind == "MetadataBlock":
            for *_, payload in Rows(content):
                (number,) = struct.unpack_from("<I", payload)
                end = 4 + 2 * (len(rundown.utf16_at(payload, 4)) + 1)
                name = rundown.utf16_at(payload, end + 4)
                event, version = struct.unpack_from("<I", payload, end)[0], struct.unpack_from("<I", payload, end + 4 + 2 * (len(name) + 1) + 8)[0]
                kinds[number] = event, version
        elif kind == "StackBlock":
            first, count = struct.unpack_from("<II", content)
            at = 8
            for i in range(count):
                (size,) = struct.unpack_from("<I", content, at)
                stacks[first + i] = size // 8
                at += 4 + size
        elif kind == "SPBlock":
            stacks.clear()
        elif kind == "EventBlock":
            for number, sequence, capture, thread, stack, ticks, payload in Rows(content):
                event, version = kinds[number]
                yield f"{ticks} {thread} {capture} {sequence} {event} {version} {stacks.get(stack, 0)} {len(payload)} {zlib.crc32(payload)}"


def record(version):
    root, app = runtimes.root(version), os.path.dirname(runtimes.workload())
    script = IN_NAMESPACE.format(root=root, app=app, command=COMMAND)
    # Without tiers few methods are compiled a second time meanwhile.
    with harness.Target(["unshare", "-m", "sh", "-c", script], env={"DOTNET_ROOT": "/srv/dotnet", "DOTNET_TieredCompilation": "0"}) as target:
        received = []
        recorder = threading.Thread(target=lambda: received.append(collect(target.pid, 1.5)))
        recorder.start()
        time.sleep(0.7)
        target.signal(signal.SIGHUP)
        truth = watcher.truth_of(target)
        recorder.join()
        truth["pid"] = target.pid
    with open(os.path.join(FOLDER, f"{version}.nettrace"), "wb") as f:
        f.write(received[0])
    with open(os.path.join(FOLDER, f"{version}.expected"), "w") as f:
        f.writelines(line + "\n" for line in described(received[0]))
    with open(os.path.join(FOLDER, f"{version}.truth"), "w") as f:
        f.write(json.dumps(truth, indent=1) + "\n")


def main():
    for version in sys.argv[1:]:
        record(version)


if __name__ == "__main__":
    main()
