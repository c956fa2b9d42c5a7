"""Another agent for the profiler library, in few lines: it hands over a ring and counts records (include/clrsampler/inprocess_ring.h)."""
import array
import fcntl
import mmap
import os
import shutil
import socket
import struct
import tempfile

PROFILER = "{6C2C8F0E-9D35-4F4B-9A1E-5C3370D10B42}"
MAGIC = 0x32474E4952524C43
HEADER_BYTES, CAPACITY = 4096, 1 << 20
EXCEPTION_THROWN = 17
EXCEPTIONS = (1 << EXCEPTION_THROWN, 0x40, 0)  # kinds, COR_PRF_MONITOR, COR_PRF_HIGH_MONITOR
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2


def environment(library, path):
    """The environment that starts a program with the library."""
    return {"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": PROFILER, "CORECLR_PROFILER_PATH": library, "CLRSAMPLER_LIBRARY_SOCKET": path}


class Agent:
    def __init__(self, demand):
        self.demand = demand
        self.folder = tempfile.mkdtemp(prefix="library-agent-")
        self.path = os.path.join(self.folder, "agent")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.file = os.memfd_create("clrsampler-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, HEADER_BYTES + CAPACITY)
        fcntl.fcntl(self.file, F_ADD_SEALS, F_SEAL_SHRINK)
        self.memory = mmap.mmap(self.file, HEADER_BYTES + CAPACITY)
        self.memory[:16] = struct.pack("<QQ", MAGIC, CAPACITY)
        self.connection = None
        # The runtime waits for the configuration before it goes on, and nobody waits for the runtime yet.
        self.answer = os.fork()
        if self.answer == 0:
            connection, _ = self.listener.accept()
            self.hand_over(connection)
            connection.recv(1)  # until the parent, who can't have this connection, ends it by a signal
            os._exit(0)

    def hand_over(self, connection):
        config = struct.pack("<QQQII", MAGIC, HEADER_BYTES + CAPACITY, *self.demand)
        connection.sendmsg([config], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.file]))])

    def accept(self):
        """The program is ready, so the library is there or never will be."""
        self.listener.close()

    def count(self):
        records, at = 0, HEADER_BYTES
        while at < HEADER_BYTES + CAPACITY:
            size, kind = struct.unpack_from("<II", self.memory, at)
            if size == 0:
                break
            records += kind == EXCEPTION_THROWN
            at += size
        return records

    def close(self):
        """As a killed agent does."""
        if self.answer:
            os.kill(self.answer, 9)
            os.waitpid(self.answer, 0)
            self.answer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self.listener.close()
        self.memory.close()
        os.close(self.file)
        shutil.rmtree(self.folder, ignore_errors=True)
