import { describe, expect, test } from 'vitest';
import { share } from './share';

/** Freezes a value and all parts of it, so that a change of it throws. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}

describe('PGE-12: a new state shares the parts that did not change', () => {
  const before = frozen({
    revision: 1,
    peers: [
      { id: 'a', name: 'one', unread: 0, children: [{ id: 'c' }] },
      { id: 'b', name: 'two', unread: 0, children: [] },
    ],
    host: { address: '127.0.0.1', ports: [1, 2] },
    storage: null,
  });
  type Before = typeof before;
  const changed = (change: (state: Before) => void): Before => {
    const next = structuredClone(before) as Before;
    change(next);
    return frozen(next);
  };

  const cases: {
    title: string;
    next: Before;
    same: (s: Before) => unknown[];
    other: (s: Before) => unknown[];
  }[] = [
    { title: 'nothing changed', next: changed(() => undefined), same: (s) => [s], other: () => [] },
    {
      title: 'one item changed',
      next: changed((s) => {
        for (const p of s.peers.slice(1)) p.unread = 3;
      }),
      same: (s) => [s.peers[0], s.peers[1]?.children, s.host],
      other: (s) => [s, s.peers, s.peers[1]],
    },
    {
      title: 'a deeper part changed',
      next: changed((s) => {
        s.host.ports.push(3);
      }),
      same: (s) => [s.peers],
      other: (s) => [s, s.host, s.host.ports],
    },
    {
      title: 'a number became null',
      next: changed((s) => {
        (s as { revision: unknown }).revision = null;
      }),
      same: (s) => [s.peers, s.host],
      other: (s) => [s],
    },
  ];
  test.each(cases)('$title', ({ next, same, other }) => {
    const result = share(before, next);
    expect(result).toEqual(next);
    same(result).forEach((part, i) => expect(part).toBe(same(before)[i]));
    other(result).forEach((part, i) => expect(part).not.toBe(other(before)[i]));
  });

  test('items keep their identity when one comes before them or goes', () => {
    const [a, b] = [
      { id: 'a', n: 1 },
      { id: 'b', n: 2 },
    ];
    const grown = share(
      [a, b],
      [
        { id: 'c', n: 3 },
        { id: 'a', n: 1 },
        { id: 'b', n: 2 },
      ],
    );
    expect(grown.map((item) => [a, b].indexOf(item as never))).toEqual([-1, 0, 1]);
    const shrunk = share([a, b], [{ id: 'b', n: 2 }]);
    expect(shrunk).toHaveLength(1);
    expect(shrunk[0]).toBe(b);
    const turned = share(
      [a, b],
      [
        { id: 'b', n: 2 },
        { id: 'a', n: 1 },
      ],
    );
    expect(turned).toEqual([b, a]);
    expect(turned[0]).toBe(b);
  });

  test('a member that came, went or is undefined is a change', () => {
    const list: [object, object][] = [
      [{ a: 1 }, { a: 1, b: undefined }],
      [{ a: 1, b: 2 }, { a: 1 }],
      [
        { a: 1, b: undefined },
        { a: 1, c: undefined },
      ],
      [[], {}],
      [{}, []],
      [[1], [1, 1]],
    ];
    for (const [old, next] of list) expect(share(old, next)).toStrictEqual(next);
  });
  test('items without an identity are compared by their place', () => {
    const old = [[1], [2]];
    const next = share(old, [[1], [3]]);
    expect(next[0]).toBe(old[0]);
    expect(next).toEqual([[1], [3]]);
  });
});
