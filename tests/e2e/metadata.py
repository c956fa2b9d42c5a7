"""Declarations in an assembly of the runtime's functions: imports (`DllImport`, `LibraryImport`) and calls into the runtime.

Reads the tables of ECMA-335, II.22 to II.24. Shares no code with the profiler's own reader, which it is compared with.
"""
import collections
import struct

# Columns of each table: numbers are bytes; S, G and B heaps; names are tables or kinds of coded indexes (II.24.2.6).
_CODED = {
    "TypeDefOrRef": (2, (2, 1, 0x1B)), "HasConstant": (2, (4, 8, 0x17)), "HasFieldMarshal": (1, (4, 8)), "HasDeclSecurity": (2, (2, 6, 0x20)),
    "HasCustomAttribute": (5, (6, 4, 1, 2, 8, 9, 10, 0, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B)),
    "MemberRefParent": (3, (2, 1, 0x1A, 6, 0x1B)), "HasSemantics": (1, (0x14, 0x17)), "MethodDefOrRef": (1, (6, 10)), "MemberForwarded": (1, (4, 6)),
    "Implementation": (2, (0x26, 0x23, 0x27)), "CustomAttributeType": (3, (6, 10)), "ResolutionScope": (2, (0, 0x1A, 0x23, 1)),
}
_COLUMNS = {
    0x00: "2 S G G G", 0x01: "ResolutionScope S S", 0x02: "4 S S TypeDefOrRef #4 #6", 0x03: "#4", 0x04: "2 S B", 0x05: "#6", 0x06: "4 2 2 S B #8",
    0x07: "#8", 0x08: "2 2 S", 0x09: "#2 TypeDefOrRef", 0x0A: "MemberRefParent S B", 0x0B: "2 HasConstant B",
    0x0C: "HasCustomAttribute CustomAttributeType B", 0x0D: "HasFieldMarshal B", 0x0E: "2 HasDeclSecurity B", 0x0F: "2 4 #2", 0x10: "4 #4", 0x11: "B",
    0x12: "#2 #20", 0x13: "#20", 0x14: "2 S TypeDefOrRef", 0x15: "#2 #23", 0x16: "#23", 0x17: "2 S B", 0x18: "2 #6 HasSemantics",
    0x19: "#2 MethodDefOrRef MethodDefOrRef", 0x1A: "S", 0x1B: "B", 0x1C: "2 MemberForwarded S #26",
}
_INTERNAL_CALL = 0x1000


class Metadata:
    """imports: {"Ns.Type": {method: {(library, entry point)}}}; calls: {"Ns.Type.Method"} that the runtime itself implements."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        streams = self._streams()
        self.strings = streams["#Strings"]
        self._read_tables(streams["#~"])

    def _streams(self):
        data = self.data
        pe = struct.unpack_from("<I", data, 0x3C)[0] + 4
        sections, optional = struct.unpack_from("<H", data, pe + 2)[0], struct.unpack_from("<H", data, pe + 16)[0]
        headers = [struct.unpack_from("<IIII", data, pe + 20 + optional + i * 40 + 8) for i in range(sections)]

        def offset(rva):
            return next(rva - start + raw for size, start, raw_size, raw in headers if start <= rva < start + max(size, raw_size))

        clr = struct.unpack_from("<I", data, pe + 20 + 112 + 14 * 8)[0]
        root = offset(struct.unpack_from("<I", data, offset(clr) + 8)[0])
        at = root + 16 + struct.unpack_from("<I", data, root + 12)[0]
        count, at, streams = struct.unpack_from("<H", data, at + 2)[0], at + 4, {}
        for _ in range(count):
            place, size = struct.unpack_from("<II", data, at)
            end = data.index(b"\0", at + 8)
            streams[data[at + 8:end].decode()] = data[root + place:root + place + size]
            at = at + 8 + (end - at - 8) // 4 * 4 + 4
        return streams

    def _text(self, index):
        return self.strings[index:self.strings.index(b"\0", index)].decode()

    def _read_tables(self, stream):
        heaps, valid = stream[6], struct.unpack_from("<Q", stream, 8)[0]
        present = [i for i in range(64) if valid >> i & 1]
        rows = dict(zip(present, struct.unpack_from(f"<{len(present)}I", stream, 24)))
        wide = {"S": heaps & 1, "G": heaps & 2, "B": heaps & 4}

        def width(column):
            if column.isdigit():
                return int(column)
            if column in wide:
                return 4 if wide[column] else 2
            if column.startswith("#"):
                return 4 if rows.get(int(column[1:]), 0) >= 1 << 16 else 2
            bits, tables = _CODED[column]
            return 4 if max(rows.get(t, 0) for t in tables) >= 1 << (16 - bits) else 2

        at, tables = 24 + 4 * len(present), {}
        for number in (n for n in present if n <= 0x1C):
            widths = [width(column) for column in _COLUMNS[number].split()]
            layout = "<" + "".join({2: "H", 4: "I"}[w] for w in widths)
            tables[number] = [struct.unpack_from(layout, stream, at + i * sum(widths)) for i in range(rows[number])]
            at += rows[number] * sum(widths)
        self._join(tables)

    def _join(self, tables):
        types, methods = tables[0x02], tables[0x06]
        owner = {}
        for i, row in enumerate(types):
            end = types[i + 1][5] if i + 1 < len(types) else len(methods) + 1
            name, space = self._text(row[1]), self._text(row[2])
            owner.update({method: f"{space}.{name}" if space else name for method in range(row[5], end)})
        self.imports = collections.defaultdict(lambda: collections.defaultdict(set))
        for _, member, name, scope in tables.get(0x1C, ()):
            if member & 1:  # a method
                method = member >> 1
                self.imports[owner[method]][self._text(methods[method - 1][3])].add((self._text(tables[0x1A][scope - 1][0]), self._text(name)))
        self.calls = {f"{owner[i + 1]}.{self._text(row[3])}" for i, row in enumerate(methods) if row[1] & _INTERNAL_CALL}
