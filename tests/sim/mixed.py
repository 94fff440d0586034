#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Mixtures of all that happens to clocks and paths. The bound must hold everywhere; nothing else is asked.

  mixed.py check SEEDS CMD...        run "CMD in.log out.tc" on every kind and seed
  mixed.py only NAME SEEDS CMD...    one kind
  mixed.py show NAME SEED CMD...     errors and bounds along the session, and what happened in it
  mixed.py list
"""
import os, random, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import evaluate
from corrfile import Corr
from model import Guest, Path, paths, S
from more import Case, run
from scenarios import exchanges

KINDS = {}


def kind(f):
    KINDS[f.__name__] = f
    return f


def size(r, low=2, high=10):
    """ns, any order of magnitude"""
    return int(10 ** r.uniform(low, high))


def traffic(r, sparse=None):
    """period, burst, ends"""
    if sparse if sparse is not None else r.random() < .3:
        return dict(period=r.choice((.25, .5, 1, 3)), burst=r.choice((1, 3, 3, 5)), ends=r.choice((3, 8, 64)))
    return dict(period=r.choice((.25, 1, 1, 2)), burst=r.choice((8, 16, 32)), ends=r.choice((16, 64, 256)))


def load(r, T, t0=100):
    """one-sided load at times"""
    wins = []
    t = r.uniform(0, T / 3)
    while t < T:
        d = r.uniform(2, 20)
        a, b = size(r, 4, 5.7), size(r, 3, 4)
        wins.append((t0 + t, t0 + t + d, (a, b) if r.random() < .5 else (b, a)))
        t += d + r.uniform(5, T / 2)

    def extra(at):
        for a, b, k in wins:
            if a <= at < b: return k
        return (0, 0)
    return extra


def path(r, name=None):
    name = name or r.choice(('user', 'user', 'user', 'wake', 'kern', 'lan'))
    f, b = paths(name)
    if r.random() < .3:   # ways of different length
        one = r.choice((f, b))
        one.base = int(one.base * r.uniform(1, 2))
    return f, b


def log(r, G, why, sparse=None, loaded=None, rho=100, lines=(), on=None, **kw):
    G.freeze()
    end = G.pieces[-1][-1][1] / S
    f, b = path(r, on)
    e = dict(traffic(r, sparse), **kw)
    if (loaded if loaded is not None else r.random() < .4): e['extra'] = load(r, end - 100)
    rows = exchanges(G, r, f, b, 100, end, **e)
    if r.random() < .2:   # lines twice and in any order
        rows += [list(x) for x in r.sample(rows, len(rows) // 5)]
        r.shuffle(rows)
    if r.random() < .2: rows = [x for x in rows if r.random() < .8]
    c = Case(G, rows, rho=rho, lines=lines)
    c.why = why + [str({k: v for k, v in e.items() if k != 'extra'}), f'bases {f.base} {b.base} jitter {f.jit}', 'loaded' if 'extra' in e else '']
    return c


def rate(r):
    return r.choice((r.uniform(-20, 20), r.uniform(-20, 20), r.uniform(-700, 700), 0)) * 1e-6


def go(G, r, low, high, x):
    G.run(int(r.uniform(low, high) * S), x)


@kind
def steps(r):
    """steps of any size, either way"""
    G = Guest(); x = rate(r); why = [f'rate {x}']
    for _ in range(r.randint(1, 5)):
        go(G, r, 5, 40, x)
        d = size(r)
        if r.random() < .5: G.jump(dh=d); why.append(f'host +{d} at g {G.pieces[-1][0][0]:.0f}')
        else: G.jump(dg=d); why.append(f'guest +{d} at g {G.pieces[-1][0][0]:.0f}')
    go(G, r, 5, 40, x)
    return log(r, G, why)


@kind
def undone(r):
    """a step that is undone after some seconds"""
    G = Guest(); x = rate(r); why = [f'rate {x}']
    for _ in range(r.randint(1, 3)):
        go(G, r, 10, 40, x)
        d = size(r, 3, 8.5)
        if r.random() < .5: G.jump(dg=d); go(G, r, 1, 10, x); G.jump(dh=d)
        else: G.jump(dh=d); go(G, r, 1, 10, x); G.jump(dg=d)
        why.append(f'{d} until g {G.pieces[-1][0][0]:.0f} h {G.pieces[-1][0][1]:.0f}')
    go(G, r, 10, 40, x)
    return log(r, G, why, sparse=False, period=1.0)


@kind
def restarted(r):
    """the guest starts anew: its readings begin near 0"""
    up = r.choice((200, 5_000, 400_000))
    G = Guest(g0=up * S); x = rate(r); why = [f'rate {x}']
    for _ in range(r.choice((1, 1, 2))):
        go(G, r, 15, 60, x)
        g, h = G.pieces[-1][-1]
        G.jump(dg=r.uniform(.5, 4) * S - g + (len(G.pieces) - 1) * 1000, dh=int(r.uniform(.5, 20) * S))
        why.append(f'at h {h:.0f}')
        if len(G.pieces) > 2: G.jump(dg=100 * S)
    go(G, r, 15, 60, rate(r))
    return log(r, G, why)


@kind
def restored(r):
    """a snapshot is restored: readings repeat"""
    G = Guest(); x = rate(r)
    go(G, r, 20, 60, x)
    back = r.uniform(7, 100) * S   # less than the pause between two bursts nobody sees
    G.jump(dg=-back, dh=int(r.uniform(.1, 20) * S))
    why = [f'rate {x} back {back:.0f} to g {G.pieces[-1][0][0]:.0f}']
    go(G, r, 20, 60, x)
    return log(r, G, why)


@kind
def pauses(r):
    """pauses and migrations, many of them inside a burst"""
    G = Guest(); x = rate(r); why = []
    t = 0
    for _ in range(r.randint(1, 5)):
        at = r.choice((r.uniform(4, 40), r.randint(4, 40) + .0002 + r.uniform(0, .0015), r.randint(4, 40) + r.uniform(0, .0003)))
        h = G.pieces[-1][-1][1]
        to = (h // S) * S + int(at * S)   # bursts come at whole seconds
        G.run(to - h, x)
        d = int(10 ** r.uniform(-3, 1) * S)
        if r.random() < .3: G.jump(dg=r.choice((0, size(r, 3, 9))), dh=d); x += r.uniform(-15, 15) * 1e-6
        else: G.jump(dh=d)
        why.append(f'{d} at g {G.pieces[-1][0][0]:.0f} h {G.pieces[-1][0][1]:.0f} rate {x}')
    go(G, r, 5, 40, x)
    return log(r, G, why)


@kind
def paused_at_once(r):
    """in the first burst, after a few exchanges; also in the last one"""
    G = Guest(); x = rate(r)
    G.run(int(.05 * S) + r.randint(150_000, 600_000), x); G.jump(dh=int(10 ** r.uniform(-2, 1) * S))
    go(G, r, 5, 40, x)
    if r.random() < .5: G.jump(dh=int(10 ** r.uniform(-2, .5) * S)); G.run(int(r.uniform(.2, .35) * S), x)
    return log(r, G, [str(G.pieces)])


@kind
def tiny(r):
    """many steps, none of which can be seen"""
    G = Guest(); x = rate(r); why = [f'rate {x}']
    on = r.choice(('user', 'kern')); top = size(r, 2, 3.8 if on == 'user' else 2.4)
    way = r.choice((-1, 0, 1))
    for _ in range(r.randint(5, 60)):
        go(G, r, .3, 6, x)
        d = r.randint(10, top)
        if (way or r.choice((-1, 1))) > 0: G.jump(dh=d)
        else: G.jump(dg=d)
    go(G, r, 1, 6, x)
    return log(r, G, why + [f'top {top} way {way}'], on=on)


@kind
def slewed(r):
    """a daemon slews by up to 500 ppm, on and off"""
    G = Guest(); x = r.uniform(-200, 200) * 1e-6; why = []; rho = r.choice((100, 100, 1000, 100_000))
    for _ in range(r.randint(2, 12)):
        go(G, r, .3 if rho == 100 else 4, 30, x)
        s = r.choice((500, -500, r.uniform(-500, 500))) * 1e-6
        why.append(f'{x + s} from g {G.pieces[-1][-1][0]:.0f}')
        go(G, r, .3 if rho == 100 else 4, 10, x + s)
        if r.random() < .3: x += r.uniform(-1, 1) * 1e-6
    go(G, r, 2, 20, x)
    return log(r, G, why, rho=rho)


@kind
def leap(r):
    """a second is put in and taken out again, smeared or at once"""
    G = Guest(); x = rate(r)
    go(G, r, 10, 30, x)
    if r.random() < .5: G.run(20 * S, x + 450e-6)
    else: G.jump(dg=S)
    go(G, r, 10, 30, x)
    if r.random() < .5:
        G.jump(dh=S); go(G, r, 10, 30, x)
        return log(r, G, [])
    G.jump(dg=-S); go(G, r, 10, 30, x)   # bursts must be nearer than what is set back
    return log(r, G, [], sparse=False, period=.25)


@kind
def lone(r):
    """hardly any exchange"""
    G = Guest(); x = rate(r); go(G, r, 2, 60, x)
    c = log(r, G, [], sparse=True, ends=r.choice((1, 1, 2, 3)), period=r.choice((7, 1e9)), burst=r.choice((1, 3)))
    if r.random() < .3: c.rows = c.rows[:1]
    return c


@kind
def asymmetric_step(r):
    """steps on a path whose ways differ, or while one of them is loaded"""
    G = Guest(); x = r.uniform(-20, 20) * 1e-6; why = []
    for _ in range(r.randint(1, 6)):
        go(G, r, 3, 25, x)
        d = size(r, 3, 5)
        G.jump(dh=d) if r.random() < .5 else G.jump(dg=d)
        why.append(f'{d} at g {G.pieces[-1][0][0]:.0f}')
        if r.random() < .4: go(G, r, .5, 9, x); G.jump(dg=d)
    go(G, r, 5, 25, x)
    return log(r, G, why, loaded=True)


@kind
def lies(r):
    """stamps that are no stamps: zeros, other clocks, from another time"""
    c = r.choice((steps, pauses, undone))(r)
    for row in c.rows:
        if r.random() < .01:
            i = r.randrange(1, 5)
            row[i] = r.choice((0, row[1], row[i] + size(r, 5, 10), max(0, row[i] - size(r, 5, 10)), 2 ** 62))
    c.why.append('lies')
    return c


@kind
def anything(r):
    """all of it in one session"""
    G = Guest(); x = rate(r); why = [f'rate {x}']
    for _ in range(r.randint(2, 8)):
        go(G, r, 2, 25, x)
        what = r.randrange(7)
        d = size(r)
        if what == 0: G.jump(dh=d)
        elif what == 1: G.jump(dg=d)
        elif what == 2: G.jump(dh=int(10 ** r.uniform(-2, 1) * S))
        elif what == 3: G.jump(dg=size(r), dh=d); x += r.uniform(-15, 15) * 1e-6
        elif what == 4: x += r.uniform(-15, 15) * 1e-6
        elif what == 5: s = size(r, 2, 8); G.jump(dg=s); go(G, r, 1, 9, x); G.jump(dh=s)
        elif what == 6:
            for _ in range(r.randint(2, 12)): G.jump(dh=r.randint(10, 300)); go(G, r, .3, 3, x)
        why.append(f'kind {what} at g {G.pieces[-1][-1][0]:.0f}')
    if r.random() < .15: G.jump(dg=-G.pieces[-1][-1][0] + S, dh=3 * S); why.append('restarted')
    go(G, r, 2, 25, x)
    return log(r, G, why)


def one(name, seed, cmd, d):
    c = KINDS[name](random.Random(f'{name}/{seed}'))
    r, out = run(cmd, c, d)
    if r.returncode not in (0, 3): return c, out, None, [f'exit {r.returncode}: {r.stderr.decode()[:200]}']
    corr = Corr.load(out)
    truth = c.truth()
    doubts, corr.doubt = corr.doubt, []   # all of a session may be in doubt
    q = evaluate.score(truth, corr)
    corr.doubt = doubts
    why = []
    if q['cover'] < 1: why.append(f"cover {q['cover']:.4f} miss {q['miss']:.0f}")
    if q['order'] and name not in ('restored', 'leap'): why.append('goes back')
    return c, out, q, why


def check(seeds, cmd, names):
    bad = 0
    with tempfile.TemporaryDirectory() as d:
        for n in names:
            for sd in seeds:
                try: c, out, q, why = one(n, sd, cmd, d)
                except Exception as e: q, why = None, [f'{type(e).__name__}: {e}']
                bad += bool(why)
                print('FAIL' if why else 'ok  ', n, 'seed', sd, '; '.join(why), ' '.join(f'{k} {v:.4g}' for k, v in q.items()) if q else '', flush=True)
    print('failures:', bad)
    return bad


def show(name, seed, cmd):
    with tempfile.TemporaryDirectory() as d:
        c, out, q, why = one(name, seed, cmd, d)
        print('\n'.join(c.why))
        print(open(out).read()[:4000])
        corr = Corr.load(out)
        t = c.truth()
        last = ''
        for i, (k, g, h) in enumerate(t):
            e, m, p = corr.apply(int(g)); err = e - h - (int(g) - g)
            state = ('' if -p - 2 <= err <= m + 2 else 'OUT') + (' doubt' if any(a <= g <= b for a, b in corr.doubt) else '')
            if state != last or i % max(1, len(t) // 40) == 0: print(k, int(g), int(h), 'error', round(err), '-', m, '+', p, state)
            last = state
        print(q, why)


if __name__ == '__main__':
    def seeds(text):
        a = text.split('-')
        return range(int(a[0]), int(a[-1]) + 1)
    if sys.argv[1:2] == ['check']: sys.exit(1 if check(seeds(sys.argv[2]), sys.argv[3:], KINDS) else 0)
    elif sys.argv[1:2] == ['only']: sys.exit(1 if check(seeds(sys.argv[3]), sys.argv[4:], [sys.argv[2]]) else 0)
    elif sys.argv[1:2] == ['show']: show(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    elif sys.argv[1:2] == ['list']: print('\n'.join(KINDS))
    else: sys.exit(__doc__)
