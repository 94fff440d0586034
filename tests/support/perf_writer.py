# SPDX-License-Identifier: MIT
"""Writes perf.data files of every shape the format allows, so that the reader meets what no machine at hand records.

The layouts are those of the kernel's perf_event.h and of perf's own file header; every word that the reader looks at
is under the caller's control.
"""
import ctypes
import os
import struct

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW = (1 << i for i in range(11))
IDENTIFIER = 1 << 16
TRACEPOINT = 2

SAMPLE_ID_ALL = 1 << 18
USE_CLOCKID = 1 << 25
WRITE_BACKWARD = 1 << 27

COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
)


def format_text(name, event_id, fields):
    """The text of an events/*/*/format file; fields are (declaration, offset, size, signed)."""
    body = "".join("\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n" % field for field in fields)
    return ("name: %s\nID: %d\nformat:\n%s%s\nprint fmt: \"\"\n" % (name, event_id, COMMON, body)).encode()


class Attr:
    def __init__(self, config, sample_type, kind=TRACEPOINT, flags=SAMPLE_ID_ALL, ids=(), name="",
                 read_format=0, clockid=None, size=112):
        self.config, self.sample_type, self.kind, self.ids = config, sample_type, kind, list(ids)
        self.name, self.read_format, self.size = name, read_format, size
        self.clockid = clockid
        self.flags = flags | (USE_CLOCKID if clockid is not None else 0)


class Writer:
    def __init__(self, attrs, big=False):
        self.attrs, self.big, self.order = attrs, big, ">" if big else "<"

    def pack(self, codes, *values):
        return struct.pack(self.order + codes, *values)

    def flag_bytes(self, flags):
        """A C bit-field: on big endian the first flag is the most significant bit of the first byte."""
        data = flags.to_bytes(8, "little")
        if self.big:
            data = bytes(int("{:08b}".format(byte)[::-1], 2) for byte in data)
        return data

    def attr(self, attr):
        data = self.pack("IIQQQQ", attr.kind, attr.size, attr.config, 1, attr.sample_type, attr.read_format)
        data += self.flag_bytes(attr.flags)
        data += self.pack("IIQQQQIi", 0, 0, 0, 0, 0, 0, 0, attr.clockid or 0)
        return data.ljust(attr.size, b"\0")[:attr.size]

    def record(self, kind, body, misc=0):
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def common(self, event_id, pid):
        return self.pack("HBBi", event_id, 0, 0, pid)

    def raw(self, payload):
        """The kernel pads so that the u32 length and the bytes fill whole words."""
        padded = (4 + len(payload) + 7) // 8 * 8 - 4
        return self.pack("I", padded) + payload.ljust(padded, b"\0")

    def sample(self, attr, cpu=0, time=0, pid=1, tid=1, payload=None, ip=0x1000, addr=0x2000, period=1, event=None,
               chain=(), misc=1, raw=None):
        bits, body = attr.sample_type, b""
        event = event if event is not None else (attr.ids[0] if attr.ids else 0)
        if bits & IDENTIFIER:
            body += self.pack("Q", event)
        if bits & IP:
            body += self.pack("Q", ip)
        if bits & TID:
            body += self.pack("ii", pid, tid)
        if bits & TIME:
            body += self.pack("Q", time)
        if bits & ADDR:
            body += self.pack("Q", addr)
        if bits & ID:
            body += self.pack("Q", event)
        if bits & STREAM_ID:
            body += self.pack("Q", 77)
        if bits & CPU:
            body += self.pack("II", cpu, 0)
        if bits & PERIOD:
            body += self.pack("Q", period)
        if bits & READ:
            values = 1 + bin(attr.read_format & 0x17).count("1")
            if attr.read_format & 8:
                times = bin(attr.read_format & 3).count("1")
                each = 1 + bin(attr.read_format & 0x14).count("1")
                body += self.pack("Q", 2) + b"\7" * 8 * (times + 2 * each)
            else:
                body += b"\7" * 8 * values
        if bits & CALLCHAIN:
            body += self.pack("Q%dQ" % len(chain), len(chain), *chain)
        if bits & RAW:
            body += raw if raw is not None else self.raw(payload)
        return self.record(9, body, misc)

    def trailer(self, attr, cpu=0, time=0, pid=1, tid=1, event=None):
        if not attr.flags & SAMPLE_ID_ALL:
            return b""
        bits, body = attr.sample_type, b""
        event = event if event is not None else (attr.ids[0] if attr.ids else 0)
        if bits & TID:
            body += self.pack("ii", pid, tid)
        if bits & TIME:
            body += self.pack("Q", time)
        if bits & ID:
            body += self.pack("Q", event)
        if bits & STREAM_ID:
            body += self.pack("Q", 77)
        if bits & CPU:
            body += self.pack("II", cpu, 0)
        if bits & IDENTIFIER:
            body += self.pack("Q", event)
        return body

    def comm(self, attr, tid, name, time=0, cpu=0):
        padded = (name + b"\0").ljust((len(name) + 8) // 8 * 8, b"\0")
        return self.record(3, self.pack("ii", tid, tid) + padded + self.trailer(attr, cpu, time, tid, tid))

    def fork(self, attr, parent, child, time, cpu=0):
        return self.record(7, self.pack("iiiiQ", child, parent, child, parent, time) +
                           self.trailer(attr, cpu, time, parent, parent))

    def lost(self, attr, count, cpu, time, event=None):
        event = event if event is not None else (attr.ids[0] if attr.ids else 0)
        return self.record(2, self.pack("QQ", event, count) + self.trailer(attr, cpu, time, event=event))

    def lost_samples(self, attr, count, event, misc=0):
        return self.record(13, self.pack("Q", count) + self.trailer(attr, event=event), misc)

    def finished_round(self):
        return self.record(68, b"")

    def id_index(self, entries, machines=()):
        body = self.pack("Q", len(entries)) + b"".join(self.pack("QQQQ", *entry) for entry in entries)
        body += b"".join(self.pack("QQ", *machine) for machine in machines)
        return self.record(69, body)

    def auxtrace(self, payload):
        return self.record(71, self.pack("QQQIIII", len(payload), 0, 0, 0, 0, 0, 0)) + payload

    def tracing_data(self, systems, comms=b"", long_bytes=8):
        data = b"\x17\x08\x44tracing0.6\0" + bytes([1 if self.big else 0, long_bytes]) + self.pack("I", 4096)
        for name in (b"header_page", b"header_event"):
            data += name + b"\0" + self.pack("Q", 4) + b"text"
        data += self.pack("I", 0) + self.pack("I", len(systems))
        for system, texts in systems:
            data += system.encode() + b"\0" + self.pack("I", len(texts))
            for text in texts:
                data += self.pack("Q", len(text)) + text
        return data + self.pack("I", 0) + self.pack("I", 0) + self.pack("Q", len(comms)) + comms

    def string(self, text):
        data = text.encode() + b"\0"
        padded = (len(data) + 63) // 64 * 64
        return self.pack("I", padded) + data.ljust(padded, b"\0")

    def features(self, systems, hostname="maker", clock_data=None, comms=b"", names=True):
        features = {1: self.tracing_data(systems, comms), 3: self.string(hostname), 4: self.string("6.1.0"),
                    5: self.string("6.1"), 6: self.string("x86_64"), 7: self.pack("II", 4, 4)}
        if names:
            size = max(attr.size for attr in self.attrs)
            body = self.pack("II", len(self.attrs), size)
            for attr in self.attrs:
                body += self.attr(attr).ljust(size, b"\0") + self.pack("I", len(attr.ids)) + self.string(attr.name)
                body += b"".join(self.pack("Q", number) for number in attr.ids)
            features[12] = body
        if clock_data:
            features[29] = self.pack("IIQQ", 1, *clock_data)
        features[200] = b"not known to anybody"
        return features

    def file(self, data, features, killed=False):
        size = max(attr.size for attr in self.attrs)
        at, ids, table = 104, b"", b""
        for attr in self.attrs:
            words = b"".join(self.pack("Q", number) for number in attr.ids)
            table += self.attr(attr).ljust(size, b"\0") + self.pack("QQ", at + len(ids), len(words))
            ids += words
        table_at = at + len(ids)
        data_at = table_at + len(table)
        bitmap = [0] * 4
        for number in features:
            bitmap[number // 64] |= 1 << number % 64
        head = b"PERFILE2"[::-1] if self.big else b"PERFILE2"
        head += self.pack("QQQQQQQQ", 104, size + 16, table_at, len(table), data_at, 0 if killed else len(data), 0, 0)
        head += self.pack("QQQQ", *bitmap)
        out = head + ids + table + data
        if killed:
            return out
        at = len(out) + 16 * len(features)
        bodies = b""
        for number in sorted(features):
            out += self.pack("QQ", at + len(bodies), len(features[number]))
            bodies += features[number]
        return out + bodies

    def pipe(self, data, features):
        out = (b"PERFILE2"[::-1] if self.big else b"PERFILE2") + self.pack("Q", 16)
        for attr in self.attrs:
            out += self.record(64, self.attr(attr) + b"".join(self.pack("Q", number) for number in attr.ids))
        for number, body in sorted(features.items()):
            if number == 1:
                padded = body.ljust((len(body) + 7) // 8 * 8, b"\0")
                out += self.record(66, self.pack("II", len(padded), 0)) + padded
            elif number != 12:
                out += self.record(80, self.pack("Q", number) + body)
        for attr in self.attrs:
            if attr.ids and attr.name:
                name = attr.name.encode() + b"\0"
                out += self.record(78, self.pack("QQ", 2, attr.ids[0]) + name.ljust((len(name) + 7) // 8 * 8, b"\0"))
        return out + data


class InBuffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_char_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class OutBuffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class Packer:
    """One zstd stream over many records, as "perf record -z" makes it."""

    def __init__(self, writer, kind=81):
        self.writer, self.kind = writer, kind
        self.zstd = ctypes.CDLL("libzstd.so.1")
        self.zstd.ZSTD_createCStream.restype = ctypes.c_void_p
        self.zstd.ZSTD_compressStream2.restype = ctypes.c_size_t
        self.stream = ctypes.c_void_p(self.zstd.ZSTD_createCStream())

    def pack(self, data, short_by=0):
        room = ctypes.create_string_buffer(len(data) + 4096)
        source = InBuffer(data, len(data), 0)
        target = OutBuffer(ctypes.addressof(room), len(room), 0)
        self.zstd.ZSTD_compressStream2(self.stream, ctypes.byref(target), ctypes.byref(source), 1)
        body = room.raw[:target.pos]
        if self.kind == 81:
            return self.writer.record(81, body)
        length = self.writer.pack("Q", len(body) - short_by)
        return self.writer.record(83, length + body.ljust((len(body) + 7) // 8 * 8, b"\0"))


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)
