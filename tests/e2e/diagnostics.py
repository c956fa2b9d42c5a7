"""The .NET diagnostics protocol as another tool would speak it, and what can be seen of a process's perf map from outside."""
import glob
import os
import socket
import struct
import time

HEADER_BYTES = 20
PROCESS = 4
RESUME_RUNTIME, ENABLE_PERF_MAP, DISABLE_PERF_MAP = 1, 5, 6


def sockets(pid):
    return glob.glob(f"/tmp/dotnet-diagnostic-{pid}-*-socket")


def ask(pid, command_set, command, payload=b"", timeout=60):
    """Sends a command to a process of our own namespaces; the socket on which it answers."""
    deadline = time.monotonic() + timeout
    while not (paths := sockets(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)  # it is starting
    # A process that was killed leaves its socket behind, and its number may be given again.
    path = max(paths, key=os.path.getmtime)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(path)
    s.sendall(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", HEADER_BYTES + len(payload), command_set, command, 0) + payload)
    return s


def receive(s, size):
    """So many bytes, fewer where the stream ends."""
    received = bytearray()
    while len(received) < size and (chunk := s.recv(min(size - len(received), 65536))):
        received.extend(chunk)
    return bytes(received)


def answer(s):
    """(reply id, payload); what follows on the socket is a stream."""
    header = receive(s, HEADER_BYTES)
    (size,) = struct.unpack_from("<H", header, 14)
    return header[17], receive(s, size - HEADER_BYTES)


def call(pid, command, payload=b"", timeout=60):
    """Sends a command of the process set; (reply id, payload)."""
    with ask(pid, PROCESS, command, payload, timeout) as s:
        return answer(s)


def enable(pid):
    status, _ = call(pid, ENABLE_PERF_MAP, struct.pack("<I", 3))
    assert status == 0, status


def open_maps(pid):
    """Perf maps and jitdumps that the process has open."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            path = os.readlink(f"/proc/{pid}/fd/{fd}").removesuffix(" (deleted)")
        except OSError:
            continue
        if os.path.basename(path).startswith(("perf-", "perfinfo-", "jit-")):
            found.append(path)
    return found


def map_files(pid, directory="/tmp"):
    return glob.glob(f"{directory}/perf-{pid}.map") + glob.glob(f"{directory}/perfinfo-{pid}.map")
