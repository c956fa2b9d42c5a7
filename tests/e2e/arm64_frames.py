"""Frames of arm64 code in two ways: as its .eh_frame says, and as its own instructions do. Pure.

Both give a state of each place: (register of the CFA, distance of the CFA from it, ((register, its place from the CFA), ...), whether the return
address is signed). Registers have their DWARF numbers: x29 is 29, sp is 31, d8 is 72.

Sources: LSB 5.0 "Exception Frames", DWARF 5 6.4, "DWARF for the Arm 64-bit Architecture", and the Arm ARM for instructions.
"""
import struct

FP, LR, SP, D0 = 29, 30, 31, 64
SAVED_BY_CALLEES = {*range(19, 31), *range(72, 80)}


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def state(cfa, saved, signed):
    return (*cfa, tuple(sorted(saved.items())), signed)


def run(program, cfa, saved):
    """[(offset, state)] of call frame instructions; code is counted in bytes, and data in words downwards."""
    at, offset, signed, rows = 0, 0, False, []
    while at < len(program):
        op = program[at]
        at += 1
        if op in (0x02, 0x04):  # advance_loc1, advance_loc4
            rows.append((offset, state(cfa, saved, signed)))
            size = 1 if op == 0x02 else 4
            offset += int.from_bytes(program[at:at + size], "little")
            at += size
        elif op == 0x0C:  # def_cfa
            register, at = uleb(program, at)
            distance, at = uleb(program, at)
            cfa = (register, distance)
        elif op == 0x0E:  # def_cfa_offset
            distance, at = uleb(program, at)
            cfa = (cfa[0], distance)
        elif op == 0x05 or op & 0xC0 == 0x80:  # offset_extended, offset
            register, at = uleb(program, at) if op == 0x05 else (op & 0x3F, at)
            words, at = uleb(program, at)
            saved = {**saved, register: -8 * words}
        elif op == 0x2D:  # AARCH64_negate_ra_state
            signed = not signed
        elif op != 0:
            raise ValueError(f"call frame instruction {op:#x}")
    rows.append((offset, state(cfa, saved, signed)))
    return rows


def eh_frame_functions(eh_frame, code_bytes):
    """[(begin, end, [(offset from begin, state)])] of an .eh_frame that lies behind `code_bytes` of code."""
    base = (code_bytes + 7) // 8 * 8
    functions, at = [], 0
    while at + 4 <= len(eh_frame):
        length, = struct.unpack_from("<I", eh_frame, at)
        if length == 0:
            break
        body, end = at + 4, at + 4 + length
        common, = struct.unpack_from("<I", eh_frame, body)
        if common == 0:
            version, augmentation = eh_frame[body + 4], bytes(eh_frame[body + 5:body + 8])
            # zR, code in bytes, data in -8, the return address in x30, addresses relative to their own place, sp + 0 at the beginning
            if (version, augmentation, bytes(eh_frame[body + 8:body + 16])) != (1, b"zR\0", b"\x01\x78\x1e\x01\x1b\x0c\x1f\0"):
                raise ValueError(f"common entry {eh_frame[body:end].hex()}")
        else:
            begin, size = struct.unpack_from("<iI", eh_frame, body + 4)
            begin += base + body + 4
            functions.append((begin, begin + size, run(eh_frame[body + 13:end], (SP, 0), {})))
        at = end
    return functions


def jitdump_bodies(data):
    """(name, code, .eh_frame or None) of each method of a jitdump."""
    at, frame = struct.unpack_from("<I", data, 8)[0], None
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 4:
            unwind_bytes, header_bytes = struct.unpack_from("<QQ", data, at + 16)
            frame = data[at + 40:at + 40 + unwind_bytes - header_bytes]
        elif kind == 0:
            code_bytes, = struct.unpack_from("<Q", data, at + 40)
            name_end = data.index(b"\0", at + 56)
            yield data[at + 56:name_end].decode(), data[name_end + 1:name_end + 1 + code_bytes], frame
            frame = None
        at += size


class Instructions:
    """Follows code in a straight line from where it is entered. `depth`: what lies between sp and the caller's sp there."""

    def __init__(self, depth=0):
        self.depth, self.fp, self.signed = depth, None, False
        self.saved, self.values = {}, {}

    def state(self):
        return state((SP, self.depth) if self.fp is None else (FP, self.fp), self.saved, self.signed)

    def save(self, registers, above_sp):
        for register in registers:
            if register in SAVED_BY_CALLEES:
                self.saved.setdefault(register, above_sp - self.depth)
            above_sp += 8

    def store(self, word):
        """A store of whole registers by sp, of one or two, which may lower sp first; False: it is something else."""
        if word >> 5 & 31 != SP:
            return False
        vector = D0 if word >> 26 & 1 else 0
        if word & 0x3A400000 == 0x28000000 and word >> 30 == (1 if vector else 2):  # stp
            offset = ((word >> 15 & 0x7F) ^ 0x40) - 0x40
            registers, offset = [word & 31, word >> 10 & 31], offset * 8
            moves = word >> 23 & 3 == 3
        elif word & 0xFBC00000 == 0xF9000000:  # str, with an offset that is not negative
            registers, offset, moves = [word & 31], (word >> 10 & 0xFFF) * 8, False
        elif word & 0xFBE00C00 == 0xF8000C00:  # str, pre-indexed
            registers, offset, moves = [word & 31], ((word >> 12 & 0x1FF) ^ 0x100) - 0x100, True
        else:
            return False
        if moves:
            self.depth -= offset
        self.save([vector + register for register in registers], 0 if moves else offset)
        return True

    def arithmetic(self, word):
        register = word & 31
        immediate = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
        if word & 0xFF8003FF == 0xD10003FF:  # sub sp, sp, #N
            self.depth += immediate
        elif word & 0xFFE0FFFF == 0xCB2063FF:  # sub sp, sp, xN
            self.depth += self.values[word >> 16 & 31]
        elif word & 0xFF8003FF == 0x910003FD:  # add x29, sp, #N, which is how mov x29, sp is written
            self.fp = self.depth - immediate
        elif word & 0xFF800000 == 0xD2800000:  # movz
            self.values[register] = (word >> 5 & 0xFFFF) << 16 * (word >> 21 & 3)
        elif word & 0xFF800000 == 0xF2800000:  # movk
            shift = 16 * (word >> 21 & 3)
            self.values[register] = self.values.get(register, 0) & ~(0xFFFF << shift) | (word >> 5 & 0xFFFF) << shift
        elif word == 0xD503233F:  # paciasp
            self.signed = True

    def follow(self, word):
        if not self.store(word):
            self.arithmetic(word)


def leaves_line(word):
    """A branch, a call, a return or a trap; or registers are taken back."""
    return (word & 0x7C000000 == 0x14000000 or word & 0xFE000000 == 0x54000000 or word & 0x7C000000 == 0x34000000 or word & 0xFE000000 == 0xD6000000
            or word & 0xFFE00000 == 0xD4200000 or word & 0xFFC003E0 == 0xA94003E0 or word & 0xFFC003E0 == 0xA8C003E0)


def difference(code, rows, depth=0):
    """Where the rows of a function's .eh_frame are not what its instructions do, in words; "": nowhere. Compared is the straight line from its
    beginning, which is the prologue and what follows it; so the result also has the number of places that were compared."""
    simulated, compared = Instructions(depth), 0
    last = rows[-1][0]
    by_offset = iter(rows + [(len(code) + 1, None)])
    _, said = next(by_offset)
    then, following = next(by_offset)
    for at in range(0, len(code) - 3, 4):
        while then <= at:
            said = following
            then, following = next(by_offset)
        if simulated.state() != said:
            return f"at {at}: .eh_frame {said}, instructions {simulated.state()}", compared
        compared += 1
        word, = struct.unpack_from("<I", code, at)
        # The loop by which a prologue touches the pages of a large frame is no end of it.
        if leaves_line(word) and at >= last:
            break
        simulated.follow(word)
    return "", compared
