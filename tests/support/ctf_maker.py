# SPDX-License-Identifier: MIT
"""Writes CTF 1.8 traces of one stream whose clock, events and packets are the caller's, as tracers other than LTTng do."""
import os
import struct
import uuid

UUID = uuid.UUID("c57a651c-a585-8262-bb15-0f3dd6a32c3e")
CONTEXT_BYTES = 44
EVENT = 'event { name = "e"; id = 0; stream_id = 0; fields := struct { uint32_t x; }; };'


def metadata(clock="freq = 1000000000; offset = 0;", event=EVENT):
    """clock: what stands in its block besides the name; None: the trace has no clock."""
    mapped = "" if clock is None else " map = clock.c.value;"
    return """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
	major = 1; minor = 8; byte_order = le; uuid = "%s";
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
%s
typealias integer { size = 64; align = 8; signed = false;%s } := stamp_t;
stream {
	id = 0;
	event.header := struct { uint16_t id; stamp_t timestamp; };
	packet.context := struct { stamp_t timestamp_begin; stamp_t timestamp_end; uint64_t content_size; uint64_t packet_size;
		uint64_t events_discarded; uint32_t cpu_id; };
};
%s
""" % (UUID, "" if clock is None else "clock { name = c; %s };" % clock, mapped, event)


def packet(events, discarded=0):
    """events: (time, id, payload)."""
    head = struct.pack("<I", 0xc1fc1fc1) + UUID.bytes + struct.pack("<I", 0)
    body = b"".join(struct.pack("<HQ", event_id, time) + payload for time, event_id, payload in events)
    times = [time for time, _, _ in events] or [0]
    content = len(head) + CONTEXT_BYTES + len(body)
    size = (content + 63) // 64 * 64
    context = struct.pack("<QQQQQI", times[0], times[-1], content * 8, size * 8, discarded, 0)
    return (head + context + body).ljust(size, b"\0")


def write(path, text, packets):
    os.makedirs(path)
    with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as file:
        file.write(text)
    with open(os.path.join(path, "c0_0"), "wb") as file:
        file.write(b"".join(packets))
    return path
