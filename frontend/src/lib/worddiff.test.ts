import { describe, expect, it } from 'vitest';
import { shortened, wordDiff } from './worddiff';

/** "a [-b-]{+c+}" */
const drawn = (before: string, after: string) =>
  wordDiff(before, after)
    .map(({ kind, text }) => (kind === 'same' ? text : kind === 'added' ? `{+${text}+}` : `[-${text}-]`))
    .join('');

describe('DEC-21 a revision as a difference', () => {
  it.each([
    ['nothing changed', 'One text.', 'One text.', 'One text.'],
    ['one word', 'We use MySQL here.', 'We use PostgreSQL here.', 'We use [-MySQL-]{+PostgreSQL+} here.'],
    ['something came', 'We use it.', 'We always use it.', 'We {+always +}use it.'],
    ['something went', 'We always use it.', 'We use it.', 'We [-always -]use it.'],
    ['at both ends', 'a same b', 'c same d', '[-a-]{+c+} same [-b-]{+d+}'],
    ['neighbours are one change', 'use the old way', 'use a new way', 'use [-the old-]{+a new+} way'],
    ['lines stay apart', 'one\ntwo', 'uno\ndue', '[-one-]{+uno+}\n[-two-]{+due+}'],
    ['all of it', 'alpha', 'beta', '[-alpha-]{+beta+}'],
    ['from nothing', '', 'new', '{+new+}'],
    ['no letters of Latin', 'дом и сад', 'дом и лес', 'дом и [-сад-]{+лес+}'],
  ])('%s', (_name, before, after, want) => {
    expect(drawn(before, after)).toBe(want);
  });

  it('gives both texts back, whatever they are', () => {
    let seed = 1;
    const random = (n: number) => (seed = (seed * 48_271) % 2_147_483_647) % n;
    const text = () =>
      Array.from({ length: random(40) }, () => ['a', 'b', ' ', '\n', ', ', 'c'][random(6)]).join('');
    for (let round = 0; round < 500; round++) {
      const [before, after] = [text(), text()];
      const pieces = wordDiff(before, after);
      const without = (kind: string) =>
        pieces
          .filter((p) => p.kind !== kind)
          .map((p) => p.text)
          .join('');
      expect([without('added'), without('removed')]).toEqual([before, after]);
    }
  });

  it('takes the longest decisions, and gives up on what is far longer', () => {
    const long = (word: string, n: number) =>
      Array.from({ length: n }, (_, i) => `${word}${i} same`).join(' ');
    expect(wordDiff(long('a', 800), long('b', 800)).some((p) => p.kind === 'same')).toBe(true);
    expect(
      wordDiff(long('a', 4000), long('b', 4000))
        .slice(0, 2)
        .map((p) => p.kind),
    ).toEqual(['removed', 'added']);
  });

  it('leaves out the middle of what did not change, and nothing else', () => {
    const lots = 'word '.repeat(200);
    const pieces = wordDiff(`one ${lots}two ${lots}three`, `uno ${lots}due ${lots}tre`);
    const short = shortened(pieces);
    expect(short.map((p) => p.kind).filter((kind) => kind === 'gap')).toHaveLength(2);
    expect(
      short
        .filter((p) => p.kind !== 'removed')
        .map((p) => p.text)
        .join(''),
    ).toBe(`uno ${lots}due ${lots}tre`);
    for (const { kind, text } of short) if (kind === 'same') expect(text.length).toBeLessThan(110);
    for (const { kind, text } of short) if (kind === 'gap') expect(text).toMatch(/^ ?word .* word $/);
    const small = wordDiff('word '.repeat(20) + 'one', 'word '.repeat(20) + 'two');
    expect(shortened(small)).toEqual(small);
  });
});
