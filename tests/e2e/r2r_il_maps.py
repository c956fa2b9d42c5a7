"""IL maps of a ready-to-run image, read in Python: a second reader of what userspace/formats/pe and formats/runtime read in C++.

It follows the descriptions of the format, and shares nothing with the profiler's own reader: PE (Microsoft's "PE Format"), the header, the
sections and the native array (dotnet/runtime docs/design/coreclr/botr/readytorun-format.md), the entries (src/coreclr/inc/cordebuginfo.h).
It trusts its input, so only images of a runtime pack are for it.
"""
import struct

# PE's machine, changed by a bit pattern that stands for the system.
X64_LINUX, ARM64_LINUX = 0x8664 ^ 0x7B79, 0xAA64 ^ 0x7B79
PE32_PLUS = 0x20B  # which precompiled images are
FUNCTION_BYTES = {X64_LINUX: 12, ARM64_LINUX: 8}  # of a row of RUNTIME_FUNCTIONS
FUNCTIONS_SECTION, DEBUG_INFO_SECTION = 102, 105
IL_BIAS = 3  # EPILOG, PROLOG and NO_MAPPING come before IL offset 0
# The first R2R major versions with bounds as a stream of bits, and with the later header and source bits.
BIT_STREAM_MAJOR, SHORT_HEADER_MAJOR = 16, 17


class NotReadyToRun(Exception):
    """The image has no precompiled code."""


class Image:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        pe = self.u32(0x3C)
        self.machine, section_count = self.u16(pe + 4), self.u16(pe + 6)
        optional = pe + 24
        table = optional + self.u16(pe + 20)
        # (size, RVA, place in the file) of each section
        self.pe_sections = []
        for row in range(table, table + 40 * section_count, 40):
            size, rva, raw_size, raw = struct.unpack_from("<4I", self.bytes, row + 8)
            self.pe_sections.append((max(size, raw_size), rva, raw))
        directories = optional + (112 if self.u16(optional) == PE32_PLUS else 96)
        cli = self.u32(directories + 8 * 14)
        native = self.u32(self.place(cli) + 64) if cli else 0
        if not native or self.bytes[self.place(native):][:4] != b"RTR\0":
            raise NotReadyToRun(path)
        header = self.place(native)
        self.major = self.u16(header + 4)
        rows = [struct.unpack_from("<3I", self.bytes, header + 16 + 12 * i) for i in range(self.u32(header + 12))]
        self.sections = {kind: (rva, size) for kind, rva, size in rows}

    def u16(self, at):
        return struct.unpack_from("<H", self.bytes, at)[0]

    def u32(self, at):
        return struct.unpack_from("<I", self.bytes, at)[0]

    def place(self, rva):
        return next(rva - begin + raw for size, begin, raw in self.pe_sections if begin <= rva < begin + size)

    def function_begins(self):
        rva, size = self.sections[FUNCTIONS_SECTION]
        step = FUNCTION_BYTES[self.machine]
        at = self.place(rva)
        return [self.u32(at + i) for i in range(0, size - step + 1, step)]

    def varint(self, at):
        """(value, where the next thing begins): the number of low one bits says how many bytes follow."""
        first = self.bytes[at]
        for extra in range(4):
            if not first >> extra & 1:
                return int.from_bytes(self.bytes[at:at + extra + 1], "little") >> (extra + 1), at + extra + 1
        return self.u32(at + 1), at + 5


class NativeArray:
    """A sparse array: blocks of 16, each a binary tree by the bits of the index."""
    def __init__(self, image, at):
        self.image = image
        header, self.base = image.varint(at)
        self.count, self.width = header >> 2, 1 << (header & 3)

    def where(self, index):
        """Where the element is, or None."""
        if index >= self.count:
            return None
        entry = self.base + index // 16 * self.width
        at = self.base + int.from_bytes(self.image.bytes[entry:entry + self.width], "little")
        for bit in (8, 4, 2, 1):
            node, behind = self.image.varint(at)
            if index & bit and node & 2:
                at += node >> 2
            elif not index & bit and node & 1:
                at = behind
            elif node & 3 == 0 and node >> 2 == index % 16:
                return behind  # alone in what is left of the block
            else:
                return None
        return at


class Nibbles:
    """Numbers of three bits a nibble, the most significant first; the fourth bit says that another nibble follows."""
    def __init__(self, data, at):
        self.data, self.at, self.high = data, at, False

    def number(self):
        value = 0
        while True:
            byte = self.data[self.at]
            nibble = byte >> 4 if self.high else byte & 15
            self.at += self.high
            self.high = not self.high
            value = value << 3 | nibble & 7
            if not nibble & 8:
                return value

    def next_byte(self):
        return self.at + self.high


def bounds_of_nibbles(data, at):
    reader = Nibbles(data, at)
    native, pairs = 0, []
    for _ in range(reader.number()):
        native += reader.number()
        pairs.append((native, reader.number() - IL_BIAS))
        reader.number()  # why there is an entry
    return pairs


def bounds_of_bits(data, at, size, source_bits):
    reader = Nibbles(data, at)
    count, native_bits, il_bits = reader.number(), reader.number() + 1, reader.number() + 1
    begin = reader.next_byte()
    stream = int.from_bytes(data[begin:at + size], "little")
    native, pairs = 0, []
    for _ in range(count):
        stream >>= source_bits
        native += stream & (1 << native_bits) - 1
        stream >>= native_bits
        pairs.append((native, (stream & (1 << il_bits) - 1) - IL_BIAS))
        stream >>= il_bits
    return pairs


def bounds(image, at):
    """(native offset, IL offset) of each entry of the debug information at `at`, in their order."""
    header = Nibbles(image.bytes, at)
    if image.major < SHORT_HEADER_MAJOR:
        size, _ = header.number(), header.number()
    else:
        # A zero announces a longer header: sizes of all six parts, of which the bounds are the first.
        size, others = header.number(), 1
        if size == 0:
            size, others = header.number(), 5
        for _ in range(others):
            header.number()
    if size == 0:
        return []
    if image.major < BIT_STREAM_MAJOR:
        return bounds_of_nibbles(image.bytes, header.next_byte())
    return bounds_of_bits(image.bytes, header.next_byte(), size, 2 if image.major < SHORT_HEADER_MAJOR else 3)


def il_maps(path):
    """{RVA of a method: [(native offset, IL offset)]} of all methods with a map. NotReadyToRun: the image has no code."""
    image = Image(path)
    if DEBUG_INFO_SECTION not in image.sections:
        return {}
    array = NativeArray(image, image.place(image.sections[DEBUG_INFO_SECTION][0]))
    maps = {}
    for index, begin in enumerate(image.function_begins()):
        element = array.where(index)
        if element is None:
            continue
        back, behind = image.varint(element)
        maps[begin] = bounds(image, element - back if back else behind)
    return maps
