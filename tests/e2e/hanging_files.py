"""A file system that answers until it is told not to: FUSE spoken on /dev/fuse itself, without a library.

    python3 hanging_files.py DEVICE_FD FOLDER STALL

Serves the regular files of FOLDER, read-only. While the file STALL exists, requests of the kinds that it names
("LOOKUP GETATTR", "READ", "ALL") are taken and never answered.
"""
import contextlib
import ctypes
import os
import stat
import struct
import subprocess
import sys
import tempfile

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
INTERRUPT, BATCH_FORGET = 36, 42
NUMBERS = {"LOOKUP": LOOKUP, "GETATTR": GETATTR, "OPEN": OPEN, "READ": READ, "STATFS": STATFS, "FLUSH": FLUSH}
KEEP_CACHE = 2
ENOENT, ENOSYS = 2, 38


def serve(device, folder, stall):
    names = sorted(os.listdir(folder))  # node 1 is the folder, node n + 2 the n-th file
    # Read before anything hangs: what runs off this file system must not wait for itself.
    contents = []
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            contents.append(file.read())

    def attributes(node):
        size, mode = (0, stat.S_IFDIR | 0o755) if node == 1 else (len(contents[node - 2]), stat.S_IFREG | 0o755)
        return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(kind, node, body):
        if kind == INIT:
            _, minor, readahead, _ = struct.unpack_from("<4I", body)
            return struct.pack("<4I2H3I28x", 7, min(minor, 31), readahead, 0, 12, 9, 1 << 17, 1, 32)
        if kind == LOOKUP:
            name = body.rstrip(b"\0").decode()
            if node != 1 or name not in names:
                return -ENOENT
            found = names.index(name) + 2
            return struct.pack("<4Q2I", found, 0, 0, 0, 0, 0) + attributes(found)  # valid for no time: it is asked each time
        if kind == GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + attributes(node)
        if kind == OPEN:
            return struct.pack("<Q2I", 0, KEEP_CACHE, 0)
        if kind == READ:
            _, offset, size = struct.unpack_from("<2QI", body)
            return contents[node - 2][offset:offset + size]
        if kind == STATFS:
            return struct.pack("<5Q4I24x", 1000, 0, 0, 100, 0, 4096, 255, 4096, 0)
        if kind in (RELEASE, FLUSH):
            return b""
        return -ENOSYS

    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError:
            return  # unmounted or aborted
        _, kind, unique, node = struct.unpack_from("<2I2Q", request)
        if kind in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        with contextlib.suppress(FileNotFoundError):
            with open(stall) as file:
                stalled = file.read().split()
            if stalled == ["ALL"] or kind in [NUMBERS[word] for word in stalled]:
                continue
        reply = answer(kind, node, request[40:])
        error, body = (reply, b"") if isinstance(reply, int) else (0, reply)
        with contextlib.suppress(OSError):
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


class HangingFiles:
    """Mounted for the life of the with statement. Served as `command` runs it, for everybody, as fusermount mounts with allow_other."""

    def __init__(self, files, command=(), user=0):
        self.base = tempfile.mkdtemp(prefix="clrsampler-hung-")
        os.chmod(self.base, 0o755)
        self.mount, self.stall_path = os.path.join(self.base, "mount"), os.path.join(self.base, "stall")
        folder = os.path.join(self.base, "files")
        for path in (self.mount, folder):
            os.mkdir(path)
        for name, source in files.items():
            with open(source, "rb") as content, open(os.path.join(folder, name), "wb") as file:
                file.write(content.read())
        self.device = os.path.join(self.base, "fuse")
        os.mknod(self.device, stat.S_IFCHR | 0o600, os.makedev(10, 229))
        fd = os.open(self.device, os.O_RDWR)
        options = f"fd={fd},rootmode=40755,user_id={user},group_id={user},allow_other"
        if ctypes.CDLL(None, use_errno=True).mount(b"hanging", self.mount.encode(), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        self.server = subprocess.Popen([*command, sys.executable, os.path.abspath(__file__), str(fd), folder, self.stall_path],
                                       pass_fds=(fd,))
        os.close(fd)
        os.stat(os.path.join(self.mount, next(iter(files))))
        self.connection = os.minor(os.stat(self.mount).st_dev)

    def path(self, name):
        return os.path.join(self.mount, name)

    def stall(self, what):
        with open(self.stall_path + ".new", "w") as file:
            file.write(what)
        os.rename(self.stall_path + ".new", self.stall_path)

    def abort(self):
        """All that waits for an answer gets an error, and what could not be killed dies."""
        with contextlib.suppress(OSError), open(f"/sys/fs/fuse/connections/{self.connection}/abort", "w") as file:
            file.write("1")

    def close(self):
        self.control()
        self.abort()
        self.server.kill()
        self.server.wait()
        ctypes.CDLL(None).umount2(self.mount.encode(), 2)  # MNT_DETACH
        subprocess.run(["rm", "-rf", self.base], check=False)

    @staticmethod
    def control():
        path = "/sys/fs/fuse/connections"
        if not os.listdir(path):
            subprocess.run(["mount", "-t", "fusectl", "fusectl", path], check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], sys.argv[3])
