#!/usr/bin/env python3
"""Makes trace.desc again: the schema of Perfetto's traces, as far as a profile needs it.

usage: make.py FOLDER      a checkout of google/perfetto; needs protoc, and python3-protobuf of Debian

The files of FILES are kept with all their messages, and of those every field whose type lies in these files. Anything else in a
trace has no field, so a reader finds it among the unknown ones.
"""
import os
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ["common/builtin_clock", "common/trace_attributes", "trace/clock_snapshot", "trace/interned_data/interned_data",
         "trace/profiling/inline_callstack", "trace/profiling/profile_common", "trace/profiling/stack_sample", "trace/trace",
         "trace/trace_packet", "trace/trace_packet_defaults", "trace/track_event/counter_descriptor",
         "trace/track_event/debug_annotation", "trace/track_event/process_descriptor", "trace/track_event/state_descriptor",
         "trace/track_event/thread_descriptor", "trace/track_event/track_descriptor", "trace/track_event/track_event"]


def types(prefix, messages, enums):
    names = {f"{prefix}.{enum.name}" for enum in enums}
    for message in messages:
        name = f"{prefix}.{message.name}"
        names |= {name, *types(name, message.nested_type, message.enum_type)}
    return names


def prune(message, kept):
    """Removes fields of types that are not there, and choices that have no field any more."""
    fields = [field for field in message.field if not field.type_name or field.type_name in kept]
    used = sorted({field.oneof_index for field in fields if field.HasField("oneof_index")})
    for field in fields:
        if field.HasField("oneof_index"):
            field.oneof_index = used.index(field.oneof_index)
    choices = [message.oneof_decl[i] for i in used]
    del message.field[:], message.oneof_decl[:]
    message.field.extend(fields)
    message.oneof_decl.extend(choices)
    for nested in message.nested_type:
        prune(nested, kept)


def main():
    with tempfile.NamedTemporaryFile() as whole:
        subprocess.run(["protoc", "-I.", "--include_imports", f"--descriptor_set_out={whole.name}", "protos/perfetto/trace/trace.proto"],
                       cwd=sys.argv[1], check=True)
        schema = descriptor_pb2.FileDescriptorSet.FromString(whole.read())
    names = {f"protos/perfetto/{name}.proto" for name in FILES}
    files = [file for file in schema.file if file.name in names]
    assert len(files) == len(names), names - {file.name for file in files}
    kept = set()
    for file in files:
        kept |= types(f".{file.package}", file.message_type, file.enum_type)
    for file in files:
        for message in file.message_type:
            prune(message, kept)
        imports = [name for name in file.dependency if name in names]
        del file.dependency[:], file.public_dependency[:], file.weak_dependency[:], file.extension[:]
        file.dependency.extend(imports)
    with open(os.path.join(HERE, "trace.desc"), "wb") as out:
        out.write(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
