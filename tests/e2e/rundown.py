"""A runtime's word of its compiled methods at the end of an event session: where their code is, and which IL stands behind it.

The session is one of the diagnostics protocol. Its stream has the form "nettrace" of version 4: blocks of events with compressed headers,
and blocks that say which provider and event a number stands for.
"""
import collections
import struct
import threading

import diagnostics

TRACING = 2
STOP_TRACING, COLLECT_TRACING_2 = 1, 3
FORMAT_NETTRACE = 1
BUFFER_MEGABYTES = 256
PROVIDER = "Microsoft-Windows-DotNETRuntimeRundown"
METHOD_END, METHOD_END_VERBOSE, IL_MAP_END = 142, 144, 150

# `token`, `type`: of its method. `pairs`: IL and native offset, without repetitions of an IL offset, in the order of the IL offsets, as unsigned numbers.
Body = collections.namedtuple("Body", "start code_bytes token type pairs")


def utf16(value):
    return struct.pack("<I", len(value) + 1) + value.encode("utf-16-le") + b"\0\0"


def utf16_at(payload, at):
    """The text there, which a 0 ends. No text of the runtime has a character of four bytes."""
    end = at
    while payload[end:end + 2] not in (b"\0\0", b""):
        end += 2
    return payload[at:end].decode("utf-16-le")


def collect(pid):
    """The stream of a session that asks for the rundown and nothing else: the provider that it names does not exist."""
    provider = struct.pack("<QI", 0, 0) + utf16("none") + struct.pack("<I", 0)
    request = struct.pack("<II?I", BUFFER_MEGABYTES, FORMAT_NETTRACE, True, 1) + provider
    with diagnostics.ask(pid, TRACING, COLLECT_TRACING_2, request, timeout=300) as stream:
        status, session = diagnostics.answer(stream)
        if status != 0:
            raise AssertionError(f"the runtime gives no session: {session.hex()}")
        received = []
        reader = threading.Thread(target=lambda: received.append(diagnostics.receive(stream, 1 << 40)))
        reader.start()
        with diagnostics.ask(pid, TRACING, STOP_TRACING, session, timeout=300) as control:
            status, reason = diagnostics.answer(control)
        reader.join()
    if status != 0:
        raise AssertionError(f"the session does not end: {reason.hex()}")
    return received[0]


def blocks(stream):
    """(kind, content) of the objects of a stream."""
    if stream[:8] != b"Nettrace":
        raise AssertionError("the stream is no nettrace")
    (length,) = struct.unpack_from("<I", stream, 8)
    at = 12 + length
    while stream[at] == 5:  # an object, its type, which has no type of its own
        version, _, length = struct.unpack_from("<III", stream, at + 3)
        kind = stream[at + 15:at + 15 + length].decode()
        at += 15 + length + 1
        if kind == "Trace":
            at += 48 + 1
            continue
        (size,) = struct.unpack_from("<I", stream, at)
        at = (at + 4 + 3) & ~3
        yield kind, stream[at:at + size]
        at += size + 1


class Compressed:
    """The events of one block: a header says only what differs from the header before."""

    def __init__(self, block):
        self.block, self.number, self.length = block, 0, 0
        (self.at, flags) = struct.unpack_from("<HH", block)
        if not flags & 1:
            raise AssertionError("headers of events are not compressed")

    def varint(self):
        value = shift = 0
        while True:
            byte = self.block[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def __iter__(self):
        while self.at < len(self.block):
            flags = self.block[self.at]
            self.at += 1
            if flags & 1:
                self.number = self.varint()
            # Sequence number, thread and processor; thread; stack; the time, which each event has.
            for _ in range((3 if flags & 2 else 0) + bool(flags & 4) + bool(flags & 8) + 1):
                self.varint()
            self.at += (16 if flags & 16 else 0) + (16 if flags & 32 else 0)  # activities
            if flags & 128:
                self.length = self.varint()
            yield self.number & 0x7FFFFFFF, self.block[self.at:self.at + self.length]
            self.at += self.length


def events(stream):
    """(provider, event number, payload)"""
    kinds = {}
    for kind, content in blocks(stream):
        if kind == "MetadataBlock":
            for _, payload in Compressed(content):
                (number,) = struct.unpack_from("<I", payload)
                provider = utf16_at(payload, 4)
                kinds[number] = provider, struct.unpack_from("<I", payload, 4 + 2 * (len(provider) + 1))[0]
        elif kind == "EventBlock":
            for number, payload in Compressed(content):
                yield *kinds.get(number, ("", 0)), payload


def bodies(stream):
    """Each compiled body that the stream has a map of. The map comes before the method, whose number all its bodies have."""
    maps, found = {}, []
    for provider, event, payload in events(stream):
        if provider != PROVIDER:
            continue
        if event == IL_MAP_END:
            method, _, _, count = struct.unpack_from("<QQBH", payload)
            il = struct.unpack_from(f"<{count}I", payload, 19)
            native = struct.unpack_from(f"<{count}I", payload, 19 + 4 * count)
            maps[method] = list(zip(il, native))
        elif event in (METHOD_END, METHOD_END_VERBOSE):
            method, _, start, code_bytes, token, _ = struct.unpack_from("<QQQIII", payload)
            type_ = utf16_at(payload, 36) if event == METHOD_END_VERBOSE else ""
            if method in maps:
                found.append(Body(start, code_bytes, token, type_, maps.pop(method)))
    return found
