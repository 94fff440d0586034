#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes small perf.data files of every shape: the seeds in tests/fuzz/corpus/perfdata.

usage: perf_seeds.py FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import perf_writer as pw  # noqa: E402

USUAL = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.RAW | pw.IDENTIFIER
FIELDS = [("int value", 8, 4, 1), ("__data_loc char[] text", 12, 4, 0), ("u64 word", 16, 8, 0)]


def content(big, bits, count=12):
    """A writer with two tracepoints and a counter, and the records of a short recording."""
    attrs = [pw.Attr(301, bits, ids=(11, 12), name="demo:one"), pw.Attr(302, bits, ids=(21, 22), name="demo:two"),
             pw.Attr(0, bits & ~pw.RAW, kind=0, ids=(31,), name="cycles")]
    writer = pw.Writer(attrs, big)
    records = [writer.comm(attrs[0], 5, b"first"), writer.id_index([(11, 0, 0, 0), (12, 0, 1, 0)])]
    for i in range(count):
        which, cpu = i % 3, i // 4 % 2
        body = writer.common(301 + which, 5) + writer.pack("iIQ", i, 24 | 4 << 16, i) + b"abc\0"
        records.append(writer.sample(attrs[which], cpu=cpu, time=1000 + 10 * (i ^ 1), tid=5, payload=body,
                                     event=attrs[which].ids[0], chain=(1, 2) if bits & pw.CALLCHAIN else ()))
        if i == 5:
            records += [writer.lost(attrs[0], 3, cpu, 1050), writer.fork(attrs[0], 5, 6, 1051),
                        writer.finished_round(), writer.auxtrace(b"\1" * 16)]
    records.append(writer.lost_samples(attrs[0], 7, 11))
    texts = [("demo", [pw.format_text("one", 301, FIELDS), pw.format_text("two", 302, FIELDS)])]
    return writer, records, writer.features(texts, clock_data=(1, 10 ** 18, 500), comms=b"6 saved\n")


def main():
    folder = sys.argv[1]
    for name, big, bits in (("le", False, USUAL), ("be", True, USUAL), ("chain", False, USUAL | pw.CALLCHAIN),
                            ("chain-be", True, USUAL | pw.CALLCHAIN | pw.READ | pw.ADDR | pw.STREAM_ID | pw.ID)):
        writer, records, features = content(big, bits)
        data = b"".join(records)
        pw.write(os.path.join(folder, name + "-file"), writer.file(data, features))
        pw.write(os.path.join(folder, name + "-pipe"), writer.pipe(data, features))
        pw.write(os.path.join(folder, name + "-killed"), writer.file(data, {}, killed=True))
        for kind in (81, 83):
            packer = pw.Packer(writer, kind)
            packed = b"".join(packer.pack(data[at:at + 201]) for at in range(0, len(data), 201))
            pw.write(os.path.join(folder, "%s-zstd%d" % (name, kind)), writer.file(packed, features))


main()
