#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the tracer lost comes as discarded-events messages at its place, and as many as trace-cmd reports."""
import bt2

from graph import check, data, events, finish, messages, stats

for name in ("pairs/mono-lost-guestrole", "single/v7-lost", "pairs/mono-stack-guestrole"):
    path, = data(name + ".dat")
    wanted = stats(path[:-4] + ".stats")["dropped"]
    lost, places, packets, last_end = 0, 0, {}, {}
    for message in messages([path]):
        if type(message) is bt2._PacketEndMessageConst:
            last_end[message.packet.stream.name] = message.default_clock_snapshot.ns_from_origin
            packets[message.packet.stream.name] = False
        elif type(message) is bt2._PacketBeginningMessageConst:
            packets[message.packet.stream.name] = True
        elif type(message) is bt2._DiscardedEventsMessageConst:
            stream = message.stream.name
            begin = message.beginning_default_clock_snapshot.ns_from_origin
            lost += message.count or 0
            places += 1
            check(not packets.get(stream), f"{name}: a loss inside a packet of {stream}")
            check(begin == last_end.get(stream, begin), f"{name}: a loss begins at {begin}, not at its packet's end")
    check(lost == wanted, f"{name}: {lost} lost, {wanted} reported")
    check(places > 0, f"{name}: no loss at all")
finish()
