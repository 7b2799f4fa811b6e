import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failed, Refused, Unreachable, type State, type Work } from './api';
import { backoff, COALESCE, Live, type EventPort } from './live';
import { state } from './sample';

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A Live on a server that the test plays. */
function play(answer: () => Promise<State>) {
  const ports: {
    open: EventPort | null;
    opened: number;
    closed: number;
    fetched: number;
    told: number[];
    worked: (Work | null)[];
  } = {
    told: [],
    worked: [],
    open: null,
    opened: 0,
    closed: 0,
    fetched: 0,
  };
  const live = new Live(
    {
      fetchState: () => {
        ports.fetched++;
        return answer();
      },
      openEvents: (port) => {
        ports.open = port;
        ports.opened++;
        return () => ports.closed++;
      },
      now: () => Date.now(),
      random: () => 0.5,
      told: (revision) => ports.told.push(revision),
      worked: (running) => ports.worked.push(running),
    },
    () => undefined,
  );
  live.start();
  return { live, ports };
}

const settle = () => vi.advanceTimersByTimeAsync(0);

describe('live state', () => {
  it('loads at the start', async () => {
    const { live } = play(() => Promise.resolve(state()));
    expect(live.snapshot.phase).toBe('loading');
    await settle();
    expect(live.snapshot).toMatchObject({ phase: 'live', offlineSince: null, state: { revision: 1 } });
  });

  it('fetches once while it loads, unless the stream tells another revision (PGE-12)', async () => {
    for (const [told, want] of [
      [[1], 1],
      [[1, 2], 2],
    ] as const) {
      const waiting: ((s: State) => void)[] = [];
      const { live, ports } = play(() => new Promise((resolve) => waiting.push(resolve)));
      await settle();
      ports.open?.onOpen();
      for (const revision of told) ports.open?.onRevision(revision);
      waiting.shift()?.(state({ revision: 1 }));
      await vi.advanceTimersByTimeAsync(COALESCE);
      waiting.shift()?.(state({ revision: 2 }));
      await settle();
      expect(ports.fetched).toBe(want);
      expect(live.snapshot.state?.revision).toBe(want);
    }
  });

  it('fetches when a later stream opens, or the first one late', async () => {
    const { ports } = play(() => Promise.resolve(state()));
    await settle();
    ports.open?.onOpen();
    await settle();
    expect(ports.fetched).toBe(1);
    ports.open?.onOpen();
    await settle();
    expect(ports.fetched).toBe(2);
    const late = play(() => Promise.resolve(state()));
    await settle();
    await vi.advanceTimersByTimeAsync(6000);
    late.ports.open?.onOpen();
    await settle();
    expect(late.ports.fetched).toBe(2);
  });

  it('fetches once for a burst of events, and again for those during a fetch', async () => {
    let revision = 1;
    const { live, ports } = play(() => Promise.resolve(state({ revision })));
    await settle();
    const before = ports.fetched;
    revision = 5;
    for (const r of [2, 3, 4, 5]) ports.open?.onRevision(r);
    await vi.advanceTimersByTimeAsync(COALESCE);
    expect(ports.fetched - before).toBe(1);
    expect(live.snapshot.state?.revision).toBe(5);
    ports.open?.onRevision(5);
    await vi.advanceTimersByTimeAsync(COALESCE);
    expect(ports.fetched - before).toBe(1);
  });

  it('tells of each revision at once, before the state of it is fetched', async () => {
    const { ports } = play(() => Promise.resolve(state()));
    await settle();
    const before = ports.fetched;
    for (const r of [2, 3]) ports.open?.onRevision(r);
    expect([ports.told, ports.fetched - before]).toEqual([[2, 3], 0]);
  });

  it('passes the news of maintenance on, without a fetch', async () => {
    const { ports } = play(() => Promise.resolve(state()));
    await settle();
    const before = ports.fetched;
    ports.open?.onWork(null);
    await vi.advanceTimersByTimeAsync(COALESCE);
    expect([ports.worked, ports.fetched - before]).toEqual([[null], 0]);
  });

  it('does not lose an event that comes while it fetches', async () => {
    const waiting: ((s: State) => void)[] = [];
    const { live, ports } = play(() => new Promise((resolve) => waiting.push(resolve)));
    await settle();
    ports.open?.onRevision(2);
    waiting.shift()?.(state({ revision: 1 }));
    await vi.advanceTimersByTimeAsync(COALESCE);
    waiting.shift()?.(state({ revision: 2 }));
    await settle();
    expect(live.snapshot.state?.revision).toBe(2);
  });

  it('keeps the last state while offline, says since when, and comes back by itself', async () => {
    let up = true;
    const { live, ports } = play(() =>
      up ? Promise.resolve(state({ revision: 7 })) : Promise.reject(new Unreachable('gone')),
    );
    await settle();
    up = false;
    const lost = Date.now();
    ports.open?.onError();
    await settle();
    expect(live.snapshot).toMatchObject({ phase: 'offline', offlineSince: lost, state: { revision: 7 } });
    await vi.advanceTimersByTimeAsync(backoff(0, 0.5));
    expect(ports.opened).toBe(2);
    ports.open?.onError();
    await settle();
    expect(live.snapshot.offlineSince).toBe(lost);
    up = true;
    await vi.advanceTimersByTimeAsync(backoff(1, 0.5) + 1);
    expect(live.snapshot).toMatchObject({ phase: 'live', offlineSince: null });
  });

  it('tries again when the stream is open but the state could not be fetched', async () => {
    let up = false;
    const { live, ports } = play(() =>
      up ? Promise.resolve(state()) : Promise.reject(new Unreachable('gone')),
    );
    await settle();
    expect([live.snapshot.phase, ports.closed]).toEqual(['offline', 1]);
    up = true;
    await vi.advanceTimersByTimeAsync(backoff(0, 0.5) + 1);
    expect([live.snapshot.phase, ports.opened]).toEqual(['live', 2]);
  });

  it('says why Bridge answers without a state, and looks again by itself', async () => {
    const answers = [
      () => Promise.reject(new Failed('more than one program has this connection open', 503)),
      () => Promise.reject(new Unreachable('gone')),
      () => Promise.resolve(state()),
    ];
    const { live } = play(() => (answers.shift() ?? (() => Promise.resolve(state())))());
    await settle();
    expect(live.snapshot).toMatchObject({
      phase: 'offline',
      reason: 'more than one program has this connection open',
    });
    await vi.advanceTimersByTimeAsync(backoff(0, 0.5) + 1);
    expect(live.snapshot).toMatchObject({ phase: 'offline', reason: '' });
    await vi.advanceTimersByTimeAsync(backoff(1, 0.5) + 1);
    expect(live.snapshot).toMatchObject({ phase: 'live', reason: '', offlineSince: null });
  });

  it('tells a broker that is down from a server that is down', async () => {
    const { live } = play(() =>
      Promise.resolve(state({ broker: { state: 'offline', host: 'serve', pid: null } })),
    );
    await settle();
    expect(live.snapshot).toMatchObject({ phase: 'offline', offlineSince: Date.now() });
    expect(live.snapshot.state?.broker.state).toBe('offline');
  });

  it('shows a refusal, and recovers once the launch link was opened', async () => {
    let known = false;
    const { live } = play(() => (known ? Promise.resolve(state()) : Promise.reject(new Refused('no'))));
    await settle();
    expect(live.snapshot.phase).toBe('refused');
    known = true;
    live.poke();
    await settle();
    expect(live.snapshot.phase).toBe('live');
  });

  it('reconnects ever more slowly, up to a bound', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 50].map((n) => backoff(n, 0.5));
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
    expect([backoff(0, 0), backoff(0, 1)]).toEqual([375, 625]);
  });

  it('ends all it started', async () => {
    const { live, ports } = play(() => Promise.resolve(state()));
    await settle();
    live.stop();
    ports.open?.onError();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([ports.opened, ports.closed]).toEqual([1, 1]);
  });
});
