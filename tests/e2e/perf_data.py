"""Changes to recordings of perf (perf.data)."""
import mmap
import struct

HEADER = struct.Struct("<8sQQQQQQ")  # magic, its size, size of an attribute, attributes and data: offset and size each
RECORD = struct.Struct("<IHH")  # type, misc, size
MMAP, MMAP2, TRACING_DATA, AUXTRACE = 1, 10, 66, 71
FOLLOWED_BY_MORE = (TRACING_DATA, AUXTRACE)  # records with data behind them that their size does not count


def hide_jitdumps_of_others(path, pid):
    """Takes the names of all jitdumps but the process's from the recording; returns how many there were.

    `perf inject --jit` reads each jitdump that a recording names. It fails at the first that is gone since its process has ended."""
    hidden = 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        magic, _, _, _, _, at, size = HEADER.unpack_from(data)
        if magic != b"PERFILE2":
            raise ValueError(f"{path} is no recording of perf")
        end = at + size
        while at < end:
            kind, _, length = RECORD.unpack_from(data, at)
            if length < RECORD.size or kind in FOLLOWED_BY_MORE:
                raise ValueError(f"{path}: a record of type {kind} and {length} bytes")
            name = data.find(b"/jit-", at, at + length)
            if kind in (MMAP, MMAP2) and name >= 0 and struct.unpack_from("<I", data, at + RECORD.size)[0] != pid:
                data[name:name + 5] = b"/not-"
                hidden += 1
            at += length
    return hidden
