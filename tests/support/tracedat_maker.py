# SPDX-License-Identifier: MIT
"""Writes trace.dat files of shapes that no machine at hand records: any formats, any records, any number of CPUs.

Layouts as trace-cmd has them. A record is (time, payload); a Loss(count) between records marks the next page.
"""
import struct


class Loss:
    def __init__(self, count):
        self.count = count


class Maker:
    def __init__(self, version=7, big_endian=False, long_bytes=8, page_bytes=4096):
        self.version, self.order = version, ">" if big_endian else "<"
        self.big_endian, self.long_bytes, self.page_bytes = big_endian, long_bytes, page_bytes
        self.systems = {}   # name -> [format text]
        self.ftrace = []
        self.cmdlines = b""
        self.options = []   # (id, bytes)
        self.cpus = {}      # cpu -> pages
        self.clock = "mono"
        self.hostname, self.machine = "made", "x86_64"
        self.extra_common = ""

    def pack(self, kinds, *values):
        return struct.pack(self.order + kinds, *values)

    def format(self, system, name, event_id, fields, common=None):
        """fields: (declaration, offset, size, signed)."""
        if common is None:
            common = [("unsigned short common_type", 0, 2, 0), ("unsigned char common_flags", 2, 1, 0),
                      ("unsigned char common_preempt_count", 3, 1, 0), ("int common_pid", 4, 4, 1)]
        line = "\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n"
        text = ("name: %s\nID: %d\nformat:\n%s\n%s\nprint fmt: \"\"\n" % (
            name, event_id, "".join(line % f for f in common), "".join(line % f for f in fields))).encode()
        if system == "ftrace":
            self.ftrace.append(text)
        else:
            self.systems.setdefault(system, []).append(text)

    def record(self, event_id, pid, body, flags=0, preempt=0):
        """A record's bytes: common fields, then the body from offset 8 on."""
        return self.pack("HBBi", event_id, flags, preempt, pid) + body

    def ring(self, records):
        """Ring-buffer pages of records in order."""
        pages, data, page_time, last, loss = [], b"", None, None, 0
        head = 16 if self.long_bytes == 8 else 12
        room = self.page_bytes - head

        def close():
            nonlocal data, page_time, loss
            commit, tail = len(data), b""
            if loss and len(data) + self.long_bytes <= room:
                commit |= 3 << 30
                tail = self.pack("Q" if self.long_bytes == 8 else "I", loss)
            elif loss:
                commit |= 1 << 31
            page = self.pack("Q", page_time) + self.pack("Q" if self.long_bytes == 8 else "I", commit) + data + tail
            pages.append(page + bytes(self.page_bytes - len(page)))
            data, page_time, loss = b"", None, 0

        for record in records:
            if isinstance(record, Loss):
                if data:
                    close()
                loss = record.count
                continue
            time, payload = record
            payload += bytes(-len(payload) % 4)
            need = 4 + len(payload) + (4 if len(payload) > 112 else 0) + 8
            if data and (len(data) + need > room - 8 or time < last):
                close()
            if page_time is None:
                page_time = last = time
            delta = time - last
            extend = b""
            if delta >= 1 << 27:
                extend = self.head(30, delta & ((1 << 27) - 1)) + self.pack("I", delta >> 27)
                delta = 0
            if len(payload) <= 112:
                data += extend + self.head(len(payload) // 4, delta) + payload
            else:
                data += extend + self.head(0, delta) + self.pack("I", len(payload) + 4) + payload
            last = time
        if data:
            close()
        return b"".join(pages)

    def head(self, type_len, delta):
        return self.pack("I", type_len << 27 | delta if self.big_endian else delta << 5 | type_len)

    def add_cpu(self, cpu, records):
        self.cpus[cpu] = self.ring(records)

    def header_info(self):
        head = 16 if self.long_bytes == 8 else 12
        page = ("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
                "\tfield: local_t commit;\toffset:8;\tsize:%d;\tsigned:1;\n"
                "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
                "\tfield: char data;\toffset:%d;\tsize:%d;\tsigned:1;\n" % (
                    self.long_bytes, head, self.page_bytes - head)).encode()
        event = (b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
                 b"\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
                 b"\ttime_stamp : type == 31\n\tdata max type_len  == 28\n")
        return (b"header_page\0" + self.pack("Q", len(page)) + page +
                b"header_event\0" + self.pack("Q", len(event)) + event)

    def formats(self):
        out = self.pack("I", len(self.systems))
        for system, texts in self.systems.items():
            out += system.encode() + b"\0" + self.pack("I", len(texts))
            out += b"".join(self.pack("Q", len(t)) + t for t in texts)
        return out

    def ftrace_formats(self):
        return self.pack("I", len(self.ftrace)) + b"".join(self.pack("Q", len(t)) + t for t in self.ftrace)

    def all_options(self):
        clock = "local [%s]" % self.clock
        uname = "Linux %s 6.1.0 %s\0" % (self.hostname, self.machine)
        return [(4, clock.encode()), (5, uname.encode()), (8, self.pack("I", max(self.cpus, default=0) + 1)),
                *self.options]

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.version6() if self.version == 6 else self.version7())

    def prefix(self):
        return (b"\x17\x08\x44tracing" + str(self.version).encode() + b"\0" +
                bytes([self.big_endian, self.long_bytes]) + self.pack("I", self.page_bytes))

    def version6(self):
        count = max(self.cpus, default=0) + 1
        out = self.prefix() + self.header_info() + self.ftrace_formats() + self.formats()
        out += self.pack("I", 0) + self.pack("I", 0) + self.pack("Q", len(self.cmdlines)) + self.cmdlines
        out += self.pack("I", count) + b"options  \0"
        for option, body in self.all_options():
            out += self.pack("HI", option, len(body)) + body
        out += self.pack("H", 0) + b"flyrecord\0"
        clock = ("[%s]" % self.clock).encode()
        start = len(out) + 16 * count + 8 + len(clock)
        start += -start % self.page_bytes
        table, data = b"", b""
        for cpu in range(count):
            pages = self.cpus.get(cpu, b"")
            table += self.pack("QQ", start + len(data), len(pages))
            data += pages
        out += table + self.pack("Q", len(clock)) + clock
        return out + bytes(start - len(out)) + data

    def version7(self):
        out = self.prefix() + b"none\0\0" + self.pack("Q", 0)
        at = len(out) - 8
        places = []
        sections = [(16, self.header_info()), (17, self.ftrace_formats()), (18, self.formats()),
                    (19, self.pack("I", 0)), (20, self.pack("I", 0)),
                    (21, self.pack("Q", len(self.cmdlines)) + self.cmdlines)]
        for section, body in sections:
            places.append((section, self.pack("Q", len(out))))
            out += self.pack("HHIQ", section, 0, 0xffffffff, len(body)) + body
        options = [*places, *self.all_options()]
        first = len(out)
        size = sum(6 + len(body) for _, body in options) + 14
        buffer_at = first + 16 + size
        entries = 20 * len(self.cpus)
        clock = self.clock.encode() + b"\0"
        data_at = buffer_at + 16
        data_at += -data_at % self.page_bytes
        data, table = b"", b""
        for cpu, pages in sorted(self.cpus.items()):
            table += self.pack("IQQ", cpu, data_at + len(data), len(pages))
            data += pages
        second = data_at + len(data)
        out = out[:at] + self.pack("Q", first) + out[at + 8:]
        out += self.pack("HHIQ", 0, 0, 0xffffffff, size)
        out += b"".join(self.pack("HI", option, len(body)) + body for option, body in options)
        out += self.pack("HIQ", 0, 8, second)
        out += self.pack("HHIQ", 3, 0, 0xffffffff, data_at - buffer_at - 16 + len(data))
        out += bytes(data_at - len(out)) + data
        body = self.pack("Q", buffer_at) + b"\0" + clock + self.pack("II", self.page_bytes, len(self.cpus)) + table
        assert len(table) == entries
        out += self.pack("HHIQ", 0, 0, 0xffffffff, 6 + len(body) + 14)
        return out + self.pack("HI", 3, len(body)) + body + self.pack("HIQ", 0, 8, 0)


SWITCH = [("char prev_comm[16]", 8, 16, 0), ("pid_t prev_pid", 24, 4, 1), ("int prev_prio", 28, 4, 1),
          ("long prev_state", 32, 8, 1), ("char next_comm[16]", 40, 16, 0), ("pid_t next_pid", 56, 4, 1),
          ("int next_prio", 60, 4, 1)]


def switch_body(maker, prev, next_, prev_prio=120, state=1, next_prio=120):
    """prev and next_: (name, tid)."""
    return (prev[0].encode()[:16].ljust(16, b"\0") + maker.pack("iiq", prev[1], prev_prio, state) +
            next_[0].encode()[:16].ljust(16, b"\0") + maker.pack("ii", next_[1], next_prio))
