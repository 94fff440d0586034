# SPDX-License-Identifier: MIT
"""The correction of a corrections file, computed again from its definition: exact rationals, no code of ours."""


class Corrections:
    def __init__(self, path):
        self.segments = []  # (from, [(guest, host)])
        self.cpus = {}
        self.host_hz = self.guest_hz = 10**9
        self.epoch_ns = None
        with open(path) as lines:
            for line in lines:
                f = line.split()
                if f[0] == "segment":
                    self.segments.append((int(f[2]), []))
                elif f[0] == "k":
                    self.segments[-1][1].append((int(f[1]), int(f[2])))
                elif f[0] == "cpu":
                    self.cpus[int(f[1])] = int(f[2])
                elif f[0] == "host":
                    self.host_hz = int(f[5])
                elif f[0] == "guest":
                    self.guest_hz = int(f[5])
                elif f[0] == "epoch":
                    self.epoch_ns = int(f[2])

    def host_ns(self, reading, cpu=None):
        reading += self.cpus.get(cpu, 0)
        knots = self.segments[0][1]
        for start, of_segment in self.segments[1:]:
            if start <= reading:
                knots = of_segment
        if len(knots) == 1:
            a, rise, run = knots[0], self.host_hz, self.guest_hz
        else:
            # The interval around the reading; the first or last one outside.
            i = 0
            while i + 2 < len(knots) and knots[i + 1][0] <= reading:
                i += 1
            a = knots[i]
            rise, run = knots[i + 1][1] - a[1], knots[i + 1][0] - a[0]
        host = a[1] + (reading - a[0]) * rise // run  # floor, also below a
        return host * 10**9 // self.host_hz
