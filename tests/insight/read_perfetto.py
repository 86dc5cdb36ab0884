#!/usr/bin/env python3
"""Checks a file that `Trace::write_perfetto` has written, with Perfetto's own definition of the format.

    read_perfetto.py FILE [--polls N] [--stalls N]

Fails if a packet has a field that Perfetto does not know, a slice has no end, the roles of a thread leave a gap,
an arrow has no beginning, or more than one thread leads. With `--polls` or `--stalls`, there must be exactly so
many. Prints what the file has.
"""

import argparse
import collections
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

Event = protos.TrackEvent
NAMES_CLEARED = protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
NAMES_NEEDED = protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE


def check(condition, message):
    if not condition:
        sys.exit(f"error: {message}")


def check_fields(message):
    """Checks that Perfetto knows all fields of the message, and of the messages in it."""
    name = message.DESCRIPTOR.full_name
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    check(not unknown, f"{name} has unknown fields: {unknown}")
    for field, value in message.ListFields():
        if field.message_type:
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                check_fields(inner)


class Track:
    """What was read of a track so far."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.is_counter = descriptor.HasField("counter")
        self.is_roles = descriptor.HasField("thread")
        self.name = descriptor.thread.thread_name if self.is_roles else descriptor.name
        self.open = []
        # Begin, end and name of each slice that is in no other one.
        self.outer = []
        self.last = None

    def begin(self, at, name):
        self.open.append((at, name))

    def end(self, at):
        check(self.open, f"a slice of {self.name} ends at {at} that has not begun")
        begin, name = self.open.pop()
        check(begin <= at, f"{name} of {self.name} ends before it begins: {begin}, {at}")
        if not self.open:
            self.outer.append((begin, at, name))


class Reader:
    """Reads the packets in the order of time, as Perfetto does: the order of the file decides between equal times."""

    def __init__(self, trace):
        self.tracks = {}
        self.names = {}
        self.flows = {}
        self.events = []
        self.count = collections.Counter()
        self.leaders = 0
        self.dropped = 0
        for packet in trace.packet:
            self.read(packet)
        self.events.sort(key=lambda event: event[0])
        for event in self.events:
            self.follow(*event)

    def read(self, packet):
        sequence = packet.trusted_packet_sequence_id
        check(sequence > 0, "a packet belongs to no sequence")
        if packet.sequence_flags & NAMES_CLEARED:
            self.names[sequence] = {}
        else:
            check(packet.sequence_flags & NAMES_NEEDED, "a packet does not ask for the names of its sequence")
            check(not packet.previous_packet_dropped, "names are lost")
        check(sequence in self.names, f"the sequence {sequence} begins without a flag")
        self.dropped += packet.previous_packet_dropped
        names = self.names[sequence]
        names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            parent = track.parent_uuid
            check(not parent or parent in self.tracks, f"the parent of {track.name} is not described")
            check(track.uuid not in self.tracks, f"{track.uuid} is described twice")
            self.tracks[track.uuid] = Track(track)
        if packet.HasField("track_event"):
            event = packet.track_event
            check(event.track_uuid in self.tracks, f"the track {event.track_uuid} is not described")
            check(not event.name_iid or event.name_iid in names, f"the name {event.name_iid} is not written")
            self.events.append((packet.timestamp, event, event.name or names.get(event.name_iid)))

    def follow(self, at, event, name):
        track = self.tracks[event.track_uuid]
        for flow in event.flow_ids:
            check(flow not in self.flows, f"two arrows have the number {flow}")
            self.flows[flow] = at
        for flow in event.terminating_flow_ids:
            check(self.flows.get(flow, at + 1) <= at, f"an arrow ends at {at} before it begins")
            self.count["arrows to polls" if track.name == "tasks" else "arrows to leaders"] += 1
        if event.type == Event.TYPE_COUNTER:
            check(track.is_counter, f"{track.name} is no counter")
            check(track.last is None or track.last != event.counter_value, f"{track.name} does not change")
            track.last = event.counter_value
            if track.name == "leaders":
                self.leaders = max(self.leaders, event.counter_value)
                check(self.leaders <= 1, f"{event.counter_value} threads lead at {at}")
        elif event.type == Event.TYPE_SLICE_BEGIN:
            check(name, f"a slice of {track.name} has no name")
            track.begin(at, name)
            self.count["polls" if track.name == "tasks" else f"slices '{name}'"] += 1
        elif event.type == Event.TYPE_SLICE_END:
            track.end(at)
        else:
            check(event.type == Event.TYPE_INSTANT, f"unknown type {event.type}")
            self.count[f"marks '{name}'"] += 1

    def check_end(self):
        end = max((track.outer[-1][1] for track in self.tracks.values() if track.is_roles and track.outer), default=0)
        for track in self.tracks.values():
            check(not track.open, f"slices of {track.name} have no end: {track.open}")
            if track.is_roles:
                for former, following in zip(track.outer, track.outer[1:]):
                    check(former[1] == following[0], f"the roles of {track.name} leave a gap: {former}, {following}")
                last = track.outer[-1][1] if track.outer else end
                check(last == end, f"the roles of {track.name} end at {last}, not at {end}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--polls", type=int)
    parser.add_argument("--stalls", type=int)
    options = parser.parse_args()
    trace = protos.Trace()
    with open(options.file, "rb") as file:
        trace.ParseFromString(file.read())
    check(trace.packet, "the file is empty")
    check_fields(trace)
    reader = Reader(trace)
    reader.check_end()
    for name, wanted in (("polls", options.polls), ("marks 'stalls'", options.stalls)):
        found = reader.count[name]
        check(wanted is None or found == wanted, f"{found} {name} instead of {wanted}")
    threads = [track for track in reader.tracks.values() if track.is_roles]
    print(f"{len(trace.packet)} packets, {len(threads)} threads, {reader.dropped} of them with dropped events")
    print(f"at most {reader.leaders} leaders")
    for track in threads:
        times = collections.Counter()
        for begin, end, name in track.outer:
            times[name] += end - begin
        parts = ", ".join(f"{name} {time / 1e6:.3f} ms" for name, time in times.most_common())
        print(f"  {track.name}: {parts or 'no events'}")
    for name, count in sorted(reader.count.items()):
        print(f"{count:8} {name}")


main()
