#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Further clocks and paths, with bars of their own.

  more.py check SEEDS CMD...        run "CMD in.log out.tc" on every scenario; the bound must hold everywhere
  more.py show NAME SEED CMD...     errors and bounds of one scenario along its session
  more.py list
"""
import bisect, math, os, random, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import evaluate
from corrfile import Corr
from model import Guest, Path, paths, S
from scenarios import exchanges, wander

FULL = dict(period=1.0, burst=32)


class Case:
    """One log and its truth. x: rows of the log; lines: further text; unit: guest ticks a ns."""

    def __init__(self, guest, rows, rho=100, lines=(), unit=1, marks=None, asym=0):
        self.guest, self.rows, self.rho, self.lines, self.unit, self.marks, self.asym = guest, rows, rho, list(lines), unit, marks or {}, asym

    def write(self, path, shuffle=None):
        out = [f'x {r[0]} {r[1]} {r[2]} {r[3]} {r[4]}{self.marks.get(i, "")}' for i, r in enumerate(self.rows)] + [l for l in self.lines if l[0] in 'rtle' and l[1] == ' ']
        head = [l for l in self.lines if not (l[0] in 'rtle' and l[1] == ' ')]
        if shuffle: random.Random(shuffle).shuffle(out)
        with open(path, 'w') as f:
            f.write(f'tandem-exchanges 1\nassume rate-ppb {self.rho}\n')
            f.writelines(l + '\n' for l in head + out + ['end'])

    def truth(self):
        return self.guest.truth()


def constant(T, ppm, g0=5_000 * S, h0=100 * S):
    G = Guest(g0, h0)
    G.run(int(T * S), ppm * 1e-6)
    return G.freeze()


def simple(r, T, ppm, kind='user', g0=5_000 * S, h0=100 * S, asym=0, extra=None, **kw):
    G = constant(T, ppm, g0, h0)
    pf, pb = paths(kind, asym)
    e = dict(FULL)
    e.update(kw)
    return Case(G, exchanges(G, r, pf, pb, h0 / S, h0 / S + T, extra=extra, **e), asym=asym)


# name: (maker, bars: median, worst outside doubt, median half width, doubt share in %)
CASES = {}


def case(median, worst, width, doubt):
    def add(f):
        CASES[f.__name__] = (f, (median, worst, width, doubt))
        return f
    return add


@case(40, 150, 11_000, 2.0)
def rate_step(r):
    """the rate changes by 16 ppm, nothing jumps"""
    G = Guest(); a = 130 + r.uniform(.2, .8); G.run(int(a * S), 5e-6); G.pieces[-1].append(G.pieces[-1][-1]) if 0 else None
    G.run(int((300 - a) * S), -11e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 400, **FULL))


@case(60, 600, 14_000, 20.0)
def small_rate_step(r):
    """1 ppm: ten seconds pass before the exchanges contradict each other"""
    G = Guest(); a = 130 + r.uniform(.2, .8); G.run(int(a * S), 5e-6); G.run(int((300 - a) * S), 6e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 400, **FULL))


@case(40, 300, 12_000, 3.0)
def pause_and_migrate(r):
    G = Guest(); G.run(int((60 + r.random()) * S), 2e-6); G.jump(dh=int(.8 * S))
    G.run(int((70 + r.random()) * S), 2e-6); G.jump(dg=int(12e6), dh=int(.3 * S))
    G.run(int((50 + r.random()) * S), -8e-6); G.jump(dg=0, dh=int(1.7 * S))
    G.run(int((110 + r.random()) * S), -8e-6); G.freeze()
    end = G.pieces[-1][-1][1] / S
    return Case(G, exchanges(G, r, *paths('user'), 100, end, **FULL))


@case(40, 150, 12_000, 2.0)
def guest_steps_ahead(r):
    """the guest's clock is set ahead by 5 s, no pause"""
    G = Guest(); G.run(int((100 + r.random()) * S), 3e-6); G.jump(dg=5 * S); G.run(100 * S, 3e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(40, 200, 12_500, 2.0)
def small_step(r):
    """a jump of 14 us: less than the bound is wide"""
    G = Guest(); G.run(int((100 + r.random()) * S), 3e-6); G.jump(dh=14_000); G.run(100 * S, 3e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(40, 31_000, 12_000, 2.0)
def step_under_load(r):
    """a jump while one way is loaded: the bursts that show it come seconds later, the bound covers what lies between"""
    G = Guest(); G.run(int((60 + r.random()) * S), 3e-6); G.jump(dh=30_000); G.run(60 * S, 3e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, extra=lambda t: (300_000, 2_000) if 155 < t < 166 else (0, 0), **FULL))


@case(300, 9_500, 22_000, 2.0)
def tiny_step(r):
    """6 us: nothing contradicts, the bound must hold nevertheless"""
    G = Guest(); G.run(int((100 + r.random()) * S), 3e-6); G.jump(dh=6_000); G.run(100 * S, 3e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(60, 250, 26_000, 0)
def wake(r):
    """idle CPUs: a path with two lengths, taken at different odds by direction"""
    return simple(r, 300, 9.0, 'wake')


@case(3_200, 3_500, 12_600, 0)
def asymmetric(r):
    """6 us more one way: no exchange shows it, the bound covers it"""
    return simple(r, 200, -7.0, asym=6_000)


@case(5_000, 30_000, 60_000, 0)
def one_sided_load(r):
    """all session long, one way only"""
    return simple(r, 200, 4.0, extra=lambda t: (120_000, 0))


class Starved:
    """A path whose end is kept off its CPU: all of a burst wait alike, in three bursts of five."""

    def __init__(self, path, burst):
        self.path, self.burst, self.drawn, self.waits = path, burst, 0, 0

    def draw(self, r):
        if self.drawn % self.burst == 0: self.waits = r.uniform(5_000, 60_000) if r.random() < .6 else 0
        self.drawn += 1
        return self.path.draw(r) + self.waits


@case(60, 200, 60_000, 0)
def starved(r):
    """exchanges that agree with each other in their burst, and are wrong together"""
    G = constant(300, 5.0)
    forward, backward = paths('user')
    return Case(G, exchanges(G, r, Starved(forward, 32), Starved(backward, 32), 100, 400, ends=32, **FULL))


@case(40, 120, 12_000, 0)
def loss(r):
    return simple(r, 300, 21.0, loss=.3)


@case(60, 250, 13_500, 0)
def hung(r):
    """a minute without an answer, twice"""
    return simple(r, 400, 8.0, hung=((150, 210), (300, 360)))


@case(60, 250, 11_500, 0)
def drift_at_rho(r):
    """the rate runs to and fro between the limits of what is assumed"""
    G = Guest()
    for i in range(1200): G.run(S // 4, 10e-6 + 9.9e-8 * math.sin(i / 60))
    G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 400, **FULL))


@case(60, 900, 11_800, 0)
def square_at_rho(r):
    """the rate switches between the limits of what is assumed"""
    G = Guest()
    for i in range(20): G.run(15 * S, 10e-6 + (9.9e-8 if i % 2 else -9.9e-8))
    G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 400, **FULL))


@case(100, 300, 12_500, 0)
def ten_years_up(r):
    up = 315_360_000 * S
    return simple(r, 60, 13.0, g0=up, h0=up + 12_345 * S)


@case(100, 300, 12_500, 0)
def far_ahead(r):
    return simple(r, 60, -3.0, g0=1_700_000_000 * S, h0=50 * S)


@case(100, 300, 12_500, 0)
def far_behind(r):
    return simple(r, 60, -3.0, g0=2 * S, h0=1_700_000_000 * S)


@case(100_000, 200_000, 800_000, 0)
def single_burst(r):
    """a session of 2 s, exchanges in its first 20 ms only"""
    G = constant(2, 14.0)
    return Case(G, exchanges(G, r, *paths('user'), 100, 102, period=1e9, burst=0, ends=256)[:256])


@case(60_000, 120_000, 1_200_000, 0)
def one_sample(r):
    G = constant(2, 14.0)
    return Case(G, exchanges(G, r, *paths('user'), 100, 102, period=1e9, burst=0, ends=1)[:1])


@case(15_000, 60_000, 60_000, 0)
def two_samples(r):
    G = constant(60, 14.0)
    return Case(G, exchanges(G, r, *paths('user'), 100, 160, period=1e9, burst=0, ends=1))


@case(2_000, 8_000, 30_000, 0)
def singles(r):
    """no bursts: one exchange every 250 ms"""
    return simple(r, 300, 5.0, period=.25, burst=1, ends=1)


@case(2_000, 8_000, 30_000, 1)
def singles_bogus(r):
    return simple(r, 300, 5.0, period=.25, burst=1, ends=1, bogus=.02)


@case(60, 200, 12_500, .5)
def many_bogus(r):
    return simple(r, 300, 6.0, bogus=.15)


@case(40, 120, 12_500, 25)
def bogus_bursts(r):
    """one burst in ten is wrong as a whole, by the same amount; never two in a row, that would be a clock of its own"""
    c = simple(r, 300, 6.0)
    bad = set()
    for b in range(300):
        if r.random() < .1 and b - 1 not in bad: bad.add(b)
    for row in c.rows:
        if int(row[1] // S) - 100 in bad and 5 < row[1] / S - 100 < 290:
            for i in (2, 3): row[i] += 40_000_000
    return c


@case(40, 120, 11_500, 0)
def duplicates(r):
    c = simple(r, 200, 6.0)
    c.rows += [list(x) for x in r.sample(c.rows, len(c.rows) // 4)]
    r.shuffle(c.rows)
    return c


@case(40, 120, 11_500, 0)
def numbers_again(r):
    """three sessions' logs put together: each began at 0"""
    c = simple(r, 300, 6.0)
    for x in c.rows: x[0] = x[0] % (len(c.rows) // 3)
    return c


@case(60, 250, 11_500, 0)
def three_hours(r):
    G = Guest(); wander(G, r, 10_800, 8e-6, 3e-9, lim=9e-8); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 10_900, period=5.0, burst=16))


@case(300, 8_000, 30_000, 0)
def chrony_slews(r):
    """a steered clock seen directly: corrections of a few ppm every some seconds, 100 ppm assumed"""
    G = Guest(); t = 0
    while t < 300:
        d = r.uniform(1, 9); G.run(int(d * S), 20e-6 + r.uniform(-12e-6, 12e-6)); t += d
    G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 100 + int(t), period=.25, burst=8), rho=100_000)


@case(300, 7_000, 14_000, 40)
def slews_unannounced(r):
    """the same under the assumption of a raw clock: many segments, the bound holds"""
    G = Guest()
    for _ in range(12): G.run(25 * S, 4e-6 + r.uniform(-15e-6, 15e-6))
    G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, 400, **FULL))


@case(60, 200, 12_000, 25)
def many_pauses(r):
    """every few seconds"""
    G = Guest()
    for _ in range(30): G.run(int(r.uniform(3, 9) * S), 2e-6); G.jump(dh=int(r.uniform(.1, 2) * S))
    G.run(5 * S, 2e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(60, 1_500, 12_500, 6)
def pause_in_first_and_last_burst(r):
    G = Guest(); G.run(int(.053 * S), 2e-6); G.jump(dh=int(.3 * S)); G.run(40 * S, 2e-6); G.jump(dh=int(.25 * S)); G.run(int(.4 * S), 2e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(10, 50, 520, 0)
def kern_loss(r):
    return simple(r, 300, 12.0, 'kern', loss=.3, bogus=.01)


@case(15, 60, 520, 1.3)
def kern_pause(r):
    G = Guest(); G.run(int((60 + r.random()) * S), 2e-6); G.jump(dh=int(.8 * S)); G.run(int((70 + r.random()) * S), 2e-6); G.jump(dh=2_000); G.run(60 * S, 2e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('kern'), 100, G.pieces[-1][-1][1] / S, **FULL))


@case(40, 150, 12_000, 0)
def pipelined(r):
    """one burst in four is pipelined: faster one way, queued the other"""
    c = simple(r, 200, 6.0)
    for i, row in enumerate(c.rows):
        if int(row[1] // S) % 4 == 0:
            q = int(r.expovariate(1 / 30_000)); row[4] += q
            c.marks[i] = ' p' if i % 2 else ' p c'
    return c


@case(60, 200, 12_000, 0)
def guest_tsc(r):
    """guest stamps are ticks of 2.4 GHz"""
    c = simple(r, 100, 15.0)
    for row in c.rows:
        for i in (2, 3): row[i] = row[i] * 12 // 5
    c.lines.append('guest - clock x86-tsc unit-hz 2400000000')
    c.unit = 2.4
    return c


@case(60, 200, 12_000, 0)
def guest_tsc_unsaid(r):
    """the same, but nobody says so"""
    c = guest_tsc(r)
    c.lines.clear()
    return c


@case(60, 300, 12_500, 2)
def suspends(r):
    """the guest's clock stops, and it says so in e records"""
    G = Guest(); lines = []
    for i in range(4):
        G.run(int(r.uniform(20, 40) * S), 2e-6); G.jump(dh=int(r.uniform(5, 60) * S))
        lines.append(f'e {i + 1} {int(G.pieces[-1][-1][0]) + 400_000} suspend')
    G.run(30 * S, 2e-6); G.freeze()
    return Case(G, exchanges(G, r, *paths('user'), 100, G.pieces[-1][-1][1] / S, **FULL), lines=lines)


class Steered:
    """a trace clock over a raw one: slopes that change, by pieces"""

    def __init__(self, r, start, end, offset, ppm, every=(1, 8), step=None):
        self.x = [start]; self.y = [start + offset]
        while self.x[-1] < end:
            d = int(r.uniform(*every) * S); s = r.uniform(-ppm, ppm) * 1e-6
            self.x.append(self.x[-1] + d); self.y.append(self.y[-1] + d * (1 + s))
        if step:   # the clock is set in the middle
            i = len(self.x) // 2; self.y[i:] = [v + step for v in self.y[i:]]

    def __call__(self, v):
        i = min(max(bisect.bisect_right(self.x, v) - 1, 0), len(self.x) - 2)
        return self.y[i] + (self.y[i + 1] - self.y[i]) * (v - self.x[i]) / (self.x[i + 1] - self.x[i])


class Composed:
    def __init__(self, raw, host, guest): self.raw, self.host, self.guest = raw, host, guest

    def truth(self):
        return [(k, self.guest(g), self.host(h)) for k, g, h in self.raw.truth()]


def composed(r, T, ppm, host_ppm, guest_ppm, G=None, locals_every=.25, **kw):
    """both traces are stamped from steered clocks; raw ones and sandwich reads stand beside"""
    G = G or constant(T, ppm)
    end = G.pieces[-1][-1][1]
    host = Steered(r, 99 * S, end + S, 7_000_000, host_ppm); guest = Steered(r, G.pieces[0][0][0] - S, G.pieces[-1][-1][0] + S, -3_000_000, guest_ppm)
    gap = lambda: 18 + r.expovariate(1 / 12)
    x, lines = [], []
    for seq, h1, g2, g3, h4 in exchanges(G, r, *paths('user'), 100, end / S, **dict(FULL, **kw)):
        # sending: trace, then raw; on receipt: raw, then trace
        x.append([seq, int(host(h1)), int(guest(g2 + gap())), int(guest(g3)), int(host(h4 + gap()))])
        lines.append('r %d %d %d %d %d' % (seq, h1 + gap(), g2, g3 + gap(), h4))
    t = 100.02
    while t < end / S:
        for side, clock, raw in (('h', host, t * S), ('g', guest, G.g_at(t * S))):
            if raw is None: continue
            w = 50 + r.expovariate(1 / 20)
            lines.append('l %s %d %d %d' % (side, raw + w / 2, clock(raw + w * r.uniform(.3, .7)), w))
        t += locals_every
    lines += ['host h clock mono unit-hz 1000000000', 'guest g clock mono unit-hz 1000000000']
    return Case(Composed(G, host, guest), x, lines=lines)


@case(200, 2_500, 13_500, 0)
def mono_steered(r):
    """clocks that chrony steers on both sides, through raw"""
    return composed(r, 120, 9.0, 6, 6)


@case(60, 250, 10_500, 0)
def mono_calm(r):
    """the same, but nobody steers"""
    return composed(r, 120, 9.0, .001, .001)


@case(200, 3_000, 13_500, 3.5)
def mono_paused(r):
    G = Guest(); G.run(int((40 + r.random()) * S), 2e-6); G.jump(dh=int(.8 * S)); G.run(int((50 + r.random()) * S), 2e-6); G.freeze()
    return composed(r, 0, 0, 6, 6, G)


@case(120, 1_800, 1_300, 0)
def mono_kernel_stamps(r):
    """steered clocks on both sides, raw beside them, the kernel's stamps between"""
    G = constant(100, 6.0)
    host = Steered(r, 99 * S, 201 * S, 7_000_000, 3); guest = Steered(r, 4_999 * S, 5_101 * S, -3_000_000, 3)
    real_host, real_guest = 1_700_000_000 * S + 123, 1_690_000_000 * S + 77
    x, lines = [], [f'epoch host {real_host} 5', f'epoch guest {real_guest} 5', 'host h clock mono unit-hz 1000000000', 'guest g clock mono unit-hz 1000000000']
    gap = lambda: 18 + r.expovariate(1 / 12)
    late = lambda: 5_000 + r.expovariate(1 / 4_000)
    for seq, k1, k2, k3, k4 in exchanges(G, r, *paths('kern'), 100, 200, **FULL):
        k4 += k2 + 43_000 - k3; k3 = k2 + 43_000
        h1, g2, g3, h4 = k1 - late(), k2 + late(), k2 + 40_000, k4 + late()
        x.append([seq, int(host(h1)), int(guest(g2 + gap())), int(guest(g3)), int(host(h4 + gap()))])
        lines.append('r %d %d %d %d %d' % (seq, h1 + gap(), g2, g3 + gap(), h4))
        lines.append('t %d %d %d %d %d' % (seq, host(k1) + real_host, guest(k2) + real_guest, guest(k3) + real_guest, host(k4) + real_host))
    return Case(Composed(G, host, guest), x, lines=lines)


@case(15, 60, 560, 0)
def kernel_stamps(r):
    """user stamps 5 to 30 us off, CLOCK_REALTIME ones of the kernel between them; one in fifty is impossible"""
    G = constant(200, 6.0); real_host, real_guest = 1_700_000_000 * S + 123, 1_690_000_000 * S + 77
    x, lines = [], [f'epoch host {real_host + r.randint(-4, 4)} 5', f'epoch guest {real_guest + r.randint(-4, 4)} 5']
    for seq, k1, k2, k3, k4 in exchanges(G, r, *paths('kern'), 100, 300, **FULL):
        late = lambda: 5_000 + r.expovariate(1 / 4_000)
        x.append([seq, int(k1 - late()), int(k2 + late()), int(k2 + 40_000), int(k4 + 40_000 + late())])
        k3, k4 = k2 + 40_000 + 3_000, k4 - k3 + k2 + 40_000 + 3_000
        if r.random() < .02: k2 += 1_000_000
        lines.append('t %d %d %d %d %d' % (seq, k1 + real_host, k2 + real_guest, k3 + real_guest, k4 + real_host))
    return Case(G, x, lines=lines)


def score(c, path):
    corr = Corr.load(path)
    t = c.truth()
    if c.unit != 1:
        class Scaled(Corr):
            def __init__(self, inner): self.inner, self.doubt = inner, [(a / c.unit, b / c.unit) for a, b in inner.doubt]; self.segs = inner.segs
            def apply(self, g): return self.inner.apply(int(g * c.unit))
        corr = Scaled(corr)
    return evaluate.score(t, corr)


def run(cmd, c, directory):
    log, out = directory + '/in.log', directory + '/out.tc'
    c.write(log)
    try: os.unlink(out)
    except OSError: pass
    r = subprocess.run(cmd + [log, out], capture_output=True, timeout=60)
    return r, out


def check(seeds, cmd, names):
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        for n in names:
            make, bars = CASES[n]
            for sd in seeds:
                c = make(random.Random(f'{n}/{sd}')); why = []; q = {}
                r, out = run(cmd, c, d)
                if r.returncode not in (0, 3): why.append(f'exit {r.returncode}: {r.stderr.decode()[:200]}')
                else:
                    try:
                        q = score(c, out)
                        if q['cover'] < 1: why.append(f"cover {q['cover']:.4f} miss {q['miss']:.0f}")
                        for key, bar in zip(('med', 'max', 'hw'), bars):
                            if q[key] > bar: why.append(f'{key} {q[key]:.0f} > {bar}')
                        if q['doubt'] * 100 > bars[3]: why.append(f"doubt {q['doubt'] * 100:.2f}% > {bars[3]}%")
                        if q['order']: why.append('goes back')
                        first = open(out, 'rb').read()
                        c.write(d + '/in.log', shuffle=sd)
                        subprocess.run(cmd + [d + '/in.log', out], capture_output=True, timeout=60)
                        if open(out, 'rb').read() != first: why.append('depends on the order of its input')
                    except Exception as e: why.append(f'{type(e).__name__}: {e}')
                bad += bool(why)
                print('FAIL' if why else 'ok  ', n, 'seed', sd, '; '.join(why) or ' '.join(f'{k} {v:.4g}' for k, v in q.items()), flush=True)
    print('failures:', bad)
    return bad


def live(seeds, cmd):
    """coverage of what was sent burst by burst: what is said up to the newest knot must hold, jump or no jump"""
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        for n in CASES:
            if n == 'one_sample': continue   # the scorer does not know that a lone knot says no rate
            for sd in seeds:
                c = CASES[n][0](random.Random(f'{n}/{sd}')); why = []; q = {}
                r, out = run(cmd, c, d)
                try:
                    q = score(c, out)
                    if q['cover'] < 1: why.append(f"cover {q['cover']:.4f} miss {q['miss']:.0f}")
                    if q['order']: why.append('goes back')
                except Exception as e: why.append(f'exit {r.returncode} {r.stderr.decode()[:100]} {type(e).__name__}: {e}')
                bad += bool(why)
                print('FAIL' if why else 'ok  ', n, 'seed', sd, '; '.join(why) or ' '.join(f'{k} {v:.4g}' for k, v in q.items()), flush=True)
    print('failures:', bad)
    return bad


def show(name, seed, cmd):
    c = CASES[name][0](random.Random(f'{name}/{seed}'))
    with tempfile.TemporaryDirectory() as d:
        r, out = run(cmd, c, d)
        print(r.stdout.decode(), r.stderr.decode())
        print(open(out).read()[:3000])
        corr = Corr.load(out)
        t = c.truth()
        for k, g, h in t[::max(1, len(t) // 60)]:
            e, m, p = corr.apply(int(g * c.unit)); err = e - h - (int(g) - g)
            print(k, int(g), round(err), m, p, '' if -p - 2 <= err <= m + 2 else 'OUT', 'doubt' if any(a <= g * c.unit <= b for a, b in corr.doubt) else '')
        print(score(c, out))


if __name__ == '__main__':
    if sys.argv[1:2] == ['check']:
        a = sys.argv[2].split('-')
        sys.exit(1 if check(range(int(a[0]), int(a[-1]) + 1), sys.argv[3:], CASES) else 0)
    elif sys.argv[1:2] == ['live']:
        a = sys.argv[2].split('-')
        sys.exit(1 if live(range(int(a[0]), int(a[-1]) + 1), sys.argv[3:]) else 0)
    elif sys.argv[1:2] == ['only']:
        a = sys.argv[3].split('-')
        sys.exit(1 if check(range(int(a[0]), int(a[-1]) + 1), sys.argv[4:], [sys.argv[2]]) else 0)
    elif sys.argv[1:2] == ['show']: show(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    elif sys.argv[1:2] == ['list']: print('\n'.join(CASES))
    else: sys.exit(__doc__)
