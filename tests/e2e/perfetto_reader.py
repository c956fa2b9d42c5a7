#!/usr/bin/env python3
"""Reads a Perfetto trace with code generated from Perfetto's own schema, by the rules that stand in it, and prints it as JSON.

usage: perfetto_reader.py TRACE      needs python3-protobuf

The rules are those of the comments in interned_data.proto, trace_packet.proto, clock_snapshot.proto and track_event.proto. Breaches
of one are in `complaints`.
"""
import collections
import json
import os
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SCHEMA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testdata", "perfetto", "trace.desc")
MAX_TIME = 2 ** 63 - 1


def messages():
    pool = descriptor_pool.DescriptorPool()
    with open(SCHEMA, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
    while files:  # in the order of their imports
        later = []
        for file in files:
            try:
                pool.Add(file)
                pool.FindFileByName(file.name)
            except (KeyError, TypeError):
                later.append(file)
        if len(later) == len(files):
            raise ValueError(f"files import what is not there: {[file.name for file in later]}")
        files = later
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("perfetto.protos.Trace"))


def name_of(message, field):
    """The name of an enum's value."""
    return message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(message, field)].name


class Sequence:
    """The things that the packets of one writer refer to."""

    def __init__(self):
        self.tables = collections.defaultdict(dict)
        self.defaults = None


class Reader:
    def __init__(self, data):
        self.complaints, self.sequences = [], {}
        self.samples, self.events, self.attributes, self.clocks = [], [], {}, {}
        self.tracks, self.processes, self.threads = {}, {}, {}
        self.stacks = {}
        self.primary_clock = None
        trace = messages().FromString(data)
        known = trace.ByteSize()
        if known != len(data):
            self.complain(f"{len(data)} bytes are {known} when they are written again")
        trace.DiscardUnknownFields()
        if trace.ByteSize() != known:
            self.complain(f"{known - trace.ByteSize()} bytes are of fields that the schema does not have")
        if not trace.IsInitialized():
            self.complain("a required field is missing")
        for packet in trace.packet:
            self.packet(packet)

    def complain(self, text):
        if len(self.complaints) < 20:
            self.complaints.append(text)

    def packet(self, packet):
        number = packet.trusted_packet_sequence_id
        if number == 0:
            self.complain("a packet is of no sequence")
        if packet.sequence_flags & 1:  # SEQ_INCREMENTAL_STATE_CLEARED
            self.sequences[number] = Sequence()
        if packet.sequence_flags & 2 and number not in self.sequences:  # SEQ_NEEDS_INCREMENTAL_STATE
            self.complain("a packet needs a state that no packet began")
        sequence = self.sequences.setdefault(number, Sequence())
        if packet.HasField("trace_packet_defaults"):
            sequence.defaults = packet.trace_packet_defaults
        if packet.HasField("interned_data"):
            self.intern(packet.interned_data, sequence)
        data = packet.WhichOneof("data")
        read = {"clock_snapshot": self.clock_snapshot, "trace_attributes": self.trace_attributes, "track_descriptor": self.track,
                "stack_sample": self.stack_sample, "track_event": self.track_event}.get(data)
        if read is None:
            self.complain(f"a packet of {data}")
        elif data in ("stack_sample", "track_event"):
            read(getattr(packet, data), self.time(packet, sequence), sequence)
        else:
            read(getattr(packet, data))

    def intern(self, data, sequence):
        for field, entries in data.ListFields():
            for entry in entries:
                if entry.iid == 0 or entry.iid in sequence.tables[field.name]:
                    self.complain(f"{field.name}: {entry.iid} is none, or there twice")
                sequence.tables[field.name][entry.iid] = entry

    def look_up(self, sequence, table, number):
        if number not in sequence.tables[table]:
            raise ValueError(f"{table} has no {number}")
        return sequence.tables[table][number]

    def text(self, sequence, table, number):
        return self.look_up(sequence, table, number).str.decode()

    def time(self, packet, sequence):
        clock = packet.timestamp_clock_id or (sequence.defaults.timestamp_clock_id if sequence.defaults else 0)
        if not packet.HasField("timestamp") or clock not in self.clocks:
            self.complain(f"a time of clock {clock}, or none")
        if not 0 <= packet.timestamp <= MAX_TIME:
            self.complain(f"{packet.timestamp} is no time")
        return packet.timestamp

    def clock_snapshot(self, snapshot):
        for clock in snapshot.clocks:
            self.clocks[clock.clock_id] = clock.timestamp
        self.primary_clock = snapshot.primary_trace_clock

    def trace_attributes(self, attributes):
        for attribute in attributes.attribute:
            self.attributes[attribute.key] = getattr(attribute, attribute.WhichOneof("value"))

    def track(self, track):
        if track.uuid == 0 or track.uuid in self.tracks:
            self.complain(f"track {track.uuid} is none, or there twice")
        place = {"name": track.name, "pid": None, "tid": None}
        if track.HasField("process"):
            place["pid"] = track.process.pid
            self.processes[track.process.pid] = {"name": track.process.process_name, "labels": list(track.process.process_labels)}
        elif track.HasField("thread"):
            place.update(pid=track.thread.pid, tid=track.thread.tid)
            if track.thread.pid not in self.processes:
                self.complain(f"thread {track.thread.tid} is of no process")
            self.threads[track.thread.tid] = {"name": track.thread.thread_name, "pid": track.thread.pid}
        elif track.parent_uuid in self.tracks:
            parent = self.tracks[track.parent_uuid]
            place.update(pid=parent["pid"], tid=parent["tid"])
        else:
            self.complain(f"track {track.name} is below none")
        self.tracks[track.uuid] = place

    def frame(self, sequence, number):
        frame = self.look_up(sequence, "frames", number)
        result = {"name": self.text(sequence, "function_names", frame.function_name_id), "kind": None, "mapping": None, "build_id": None}
        kind = frame.WhichOneof("kind_field")
        if kind is not None:
            result["kind"] = name_of(frame, kind) if kind == "kind" else frame.kind_str
        if frame.mapping_id:
            if not frame.HasField("rel_pc"):
                self.complain("a frame has a mapping, and no place in it")
            mapping = self.look_up(sequence, "mappings", frame.mapping_id)
            result["mapping"] = "/".join(self.text(sequence, "mapping_paths", path) for path in mapping.path_string_ids)
            if mapping.build_id:
                result["build_id"] = self.look_up(sequence, "build_ids", mapping.build_id).str.hex()
            result["address"] = frame.rel_pc
        if frame.source_path_iid:
            result["file"] = self.text(sequence, "source_paths", frame.source_path_iid)
        if frame.line_number:
            result["line"] = frame.line_number
        return result

    def stack(self, sequence, number):
        """The outermost frame first. The index of it."""
        key = (id(sequence), number)
        if key not in self.stacks:
            frames = [self.frame(sequence, frame) for frame in self.look_up(sequence, "callstacks", number).frame_ids]
            if not frames:
                self.complain("a callstack without frames is dropped")
            self.stacks[key] = (len(self.stacks), frames)
        return self.stacks[key][0]

    def stack_sample(self, sample, time, sequence):
        task = self.look_up(sequence, "stack_sample_task_contexts", sample.task_context_iid)
        defaults = sequence.defaults.stack_sample_defaults
        if len(sample.follower_weights) != len(defaults.follower_descriptors):
            self.complain("weights and counters differ in number")
        if not sample.HasField("primary_weight"):
            self.complain("a sample without a weight")
        if task.pid not in self.processes or (task.tid and task.tid not in self.threads):
            self.complain(f"{task.pid}/{task.tid} has no track")
        self.samples.append({"time": time, "pid": task.pid, "tid": task.tid, "stack": self.stack(sequence, sample.callstack_iid),
                             "weight": sample.primary_weight, "followers": list(sample.follower_weights)})

    def track_event(self, event, time, sequence):
        if event.track_uuid not in self.tracks:
            self.complain(f"an event is on track {event.track_uuid}, which is nowhere")
        annotations = {}
        for annotation in event.debug_annotations:
            annotations[annotation.name] = getattr(annotation, annotation.WhichOneof("value"))
        stack = self.stack(sequence, event.callstack_iid) if event.callstack_iid else None
        self.events.append((time, name_of(event, "type"), event.track_uuid, {
            "name": event.name, "categories": list(event.categories), "annotations": annotations, "stack": stack}))

    def slices(self):
        """Events of all tracks. An end is that of the innermost slice that is open on its track."""
        result, open_ones = [], collections.defaultdict(list)
        for time, kind, uuid, event in sorted(self.events, key=lambda event: event[0]):
            track = self.tracks.get(uuid, {})
            if kind == "TYPE_SLICE_END":
                if open_ones[uuid]:
                    begun = open_ones[uuid].pop()
                    begun["duration"] = time - begun["time"]
                else:
                    self.complain("an end without a beginning")
                continue
            result.append({**event, "time": time, "duration": 0, "track": track.get("name"), "pid": track.get("pid"), "tid": track.get("tid")})
            if kind == "TYPE_SLICE_BEGIN":
                open_ones[uuid].append(result[-1])
            elif kind != "TYPE_INSTANT":
                self.complain(f"an event of {kind}")
        if any(open_ones.values()):
            self.complain("slices that never end")
        return result

    def counter(self, descriptor):
        field = descriptor.WhichOneof("unit_field")
        return {"name": descriptor.name, "unit": name_of(descriptor, "unit") if field == "unit" else descriptor.unit_str}

    def result(self):
        slices = self.slices()
        defaults = [sequence.defaults.stack_sample_defaults for sequence in self.sequences.values() if sequence.defaults]
        return {"complaints": self.complaints, "clock": self.primary_clock, "clocks": self.clocks, "attributes": self.attributes,
                "processes": self.processes, "threads": self.threads, "samples": self.samples, "slices": slices,
                "stacks": [frames for _, frames in self.stacks.values()],
                "counters": [self.counter(counter) for one in defaults for counter in (one.primary_descriptor, *one.follower_descriptors)],
                "sources": [one.source for one in defaults]}


def main():
    with open(sys.argv[1], "rb") as file:
        json.dump(Reader(file.read()).result(), sys.stdout)


if __name__ == "__main__":
    main()
