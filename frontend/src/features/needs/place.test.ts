import { describe, expect, it } from 'vitest';
import { need } from '../../lib/sample';
import { inPlace } from './needs';

describe('PGE-07 the first needs of the Overview', () => {
  const named = (id: string) => need({ id, until: 9 });
  const [a, b, c, d, e] = [named('a'), named('b'), named('c'), named('d'), named('e')];
  const all = [a, b, c, d, e];
  const ids = (rows: typeof all) => rows.map(({ id }) => id);

  it('follow the order of the server while no card is open', () => {
    expect(ids(inPlace([], all, [], 3))).toEqual(['a', 'b', 'c']);
    expect(ids(inPlace([a, b, c], [e, a, b, c], [], 3))).toEqual(['e', 'a', 'b']);
  });

  it('stay where they are while a card is open, and what is new comes after them', () => {
    expect(ids(inPlace([a, b, c], [e, a, b, c], ['b'], 3))).toEqual(['a', 'b', 'c', 'e']);
    expect(ids(inPlace([a, b, c], [b, c, d], ['b'], 3))).toEqual(['b', 'c', 'd']);
  });

  it('keep an answered one, without the time it had, until its card is closed', () => {
    const rows = inPlace([a, b, c], [b, c, d], ['a'], 3);
    expect(rows.map(({ id, until }) => [id, until])).toEqual([
      ['a', null],
      ['b', 9],
      ['c', 9],
      ['d', 9],
    ]);
    expect(ids(inPlace(rows, [b, c, d], [], 3))).toEqual(['b', 'c', 'd']);
  });
});
