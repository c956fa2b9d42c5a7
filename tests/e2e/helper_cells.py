"""A running .NET process's own word of its helpers: cells of a precompiled image that the runtime fills in when it loads it.

Reads PE headers, import sections and signatures (dotnet/runtime: src/coreclr/inc/readytorun.h). Shares no code with the profiler's readers.
"""
import struct

_IMPORT_SECTIONS, _EAGER, _HELPER_FIXUP = 101, 1, 0x1A
# READYTORUN_HELPER_*: the functions that they are on x64.
NAMES = {0x08: "DelayLoad_MethodCall", 0x10: "DelayLoad_Helper", 0x11: "DelayLoad_Helper_Obj", 0x12: "DelayLoad_Helper_ObjObj", 0x20: "IL_Throw",
         0x31: "JIT_CheckedWriteBarrier", 0x32: "JIT_ByRefWriteBarrier"}


class PrecompiledImage:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = data = f.read()
        self.path = path
        pe = struct.unpack_from("<I", data, 0x3C)[0]
        count, optional = struct.unpack_from("<H", data, pe + 6)[0], struct.unpack_from("<H", data, pe + 20)[0]
        self.sections = [struct.unpack_from("<IIII", data, pe + 24 + optional + 40 * i + 8) for i in range(count)]
        clr = struct.unpack_from("<I", data, pe + 24 + 112 + 14 * 8)[0]
        header = self.offset(struct.unpack_from("<I", data, self.offset(clr) + 64)[0])
        assert data[header:header + 4] == b"RTR\0", path
        rows = struct.unpack_from("<I", data, header + 12)[0]
        self.tables = {kind: (rva, size) for kind, rva, size in struct.iter_unpack("<III", data[header + 16:header + 16 + 12 * rows])}

    def offset(self, rva):
        return next(rva - start + raw for size, start, raw_size, raw in self.sections if start <= rva < start + max(size, raw_size))

    def helper_cells(self):
        """(helper, rva) of the cells that have a helper's address from the start."""
        rva, size = self.tables[_IMPORT_SECTIONS]
        for at in range(self.offset(rva), self.offset(rva) + size, 20):
            cells, bytes_of_cells, flags, _, entry, signatures = struct.unpack_from("<IIHBBI", self.data, at)
            if not flags & _EAGER or not signatures:
                continue
            for i in range(bytes_of_cells // entry):
                signature = self.offset(struct.unpack_from("<I", self.data, self.offset(signatures) + 4 * i)[0])
                if self.data[signature] == _HELPER_FIXUP:
                    yield self.data[signature + 1], cells + i * entry

    def base_in(self, maps):
        """Where the image is loaded, by its section that may be written; it may be mapped a second time as a plain file."""
        for line in maps:
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and fields[5] == self.path and fields[1].startswith("rw"):
                begin, offset = int(fields[0].split("-")[0], 16), int(fields[2], 16)
                for _, start, _, raw in self.sections:
                    if raw // 4096 * 4096 == offset:
                        return begin - start + raw - offset
        raise AssertionError(f"{self.path} is not loaded")


def helpers_of(pid, image_path, runtime_path):
    """{name: address in the runtime's image}, of the helpers whose function it is."""
    with open(f"/proc/{pid}/maps") as f:
        maps = f.read().splitlines()
    image = PrecompiledImage(image_path)
    base = image.base_in(maps)
    runtime = [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in maps if line.endswith(" " + runtime_path)]
    begin, end = min(runtime)[0], max(runtime)[1]
    found = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for helper, rva in image.helper_cells():
            memory.seek(base + rva)
            (address,) = struct.unpack("<Q", memory.read(8))
            if helper in NAMES and begin <= address < end:
                found[NAMES[helper]] = address - begin
    return found
