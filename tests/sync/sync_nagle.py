#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A peer that writes each answer in two pieces and leaves Nagle's algorithm on is recognised and named; ours is not."""
import os
import tempfile

import tandem_wire as t
from nagle_relay import relay


def main():
    agent = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-nagle-") as out:
        status, told, errors, _ = t.sync(os.path.join(out, "direct"), "--guest", f"x={agent.tcp()}", "--", "sleep", "1")
        assert status == 0 and "TCP_NODELAY" not in errors, errors
        # A busy machine can keep the delays of Nagle's algorithm from being told from its own: it gets some tries.
        port = relay(agent)
        for attempt in range(5):
            place = os.path.join(out, f"nagle{attempt}")
            status, told, errors, _ = t.sync(place, "--guest", f"x=tcp:127.0.0.1:{port}", "--", "sleep", "2")
            if "TCP_NODELAY" in errors:
                break
        assert "x: peer lacks TCP_NODELAY" in errors, (status, told, errors)
        assert errors.count("TCP_NODELAY") == 1, errors
        t.Corrections(os.path.join(place, "x.corrections")).check_identity()
    agent.stop()


main()
