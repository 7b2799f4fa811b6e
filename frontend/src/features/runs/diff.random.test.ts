// PRF-04: patches of random files, made here, are read back to exactly those files.

import { describe, expect, it } from 'vitest';
import { commentAt, readPatch, splitRows } from './diff';

/** A small generator of numbers in [0, 1), so that a failure can be repeated by its seed. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Lines that a reader could take for something else. */
const LINES = [
  '',
  ' ',
  '+',
  '-',
  '++ b/x',
  '-- a/x',
  '@@ -1,1 +1,1 @@',
  '\\ No newline',
  'diff --git a b',
  '\t',
  'é😀',
  '\r',
  'x',
];

interface Case {
  patch: string;
  old: Map<number, string>;
  now: Map<number, string>;
}

/** Makes a patch of some hunks, and the lines of both sides by their numbers. */
function makeCase(random: () => number): Case {
  const pick = (most: number) => Math.floor(random() * most);
  const old = new Map<number, string>();
  const now = new Map<number, string>();
  const out = ['diff --git a/x b/x', '--- a/x', '+++ b/x'];
  let [oldAt, nowAt] = [1 + pick(5), 1 + pick(5)];
  for (let hunk = 0; hunk <= pick(4); hunk++) {
    const body: string[] = [];
    const [oldStart, nowStart] = [oldAt, nowAt];
    for (let i = 0; i <= pick(12); i++) {
      const text = LINES[pick(LINES.length)] ?? '';
      const sign = ' +-'.charAt(pick(3));
      body.push(sign + text);
      if (sign !== '+') old.set(oldAt++, text);
      if (sign !== '-') now.set(nowAt++, text);
      if (i > 6 && random() < 0.2) body.push('\\ No newline at end of file');
    }
    out.push(`@@ -${oldStart},${oldAt - oldStart} +${nowStart},${nowAt - nowStart} @@ f`, ...body);
    [oldAt, nowAt] = [oldAt + pick(20), nowAt + pick(20)];
  }
  return { patch: `${out.join('\n')}\n`, old, now };
}

describe('PRF-04 random patches', () => {
  it('have every line of both sides at its number, and every line in one row', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const { patch, old, now } = makeCase(numbers(seed));
      const lines = readPatch(patch);
      const side = (of: 'old' | 'new') =>
        new Map(lines.flatMap((line) => (line[of] === null ? [] : [[line[of], line.text] as const])));
      expect(side('old'), `seed ${seed}`).toEqual(old);
      expect(side('new'), `seed ${seed}`).toEqual(now);
      const shown = splitRows(lines).flatMap(({ left, right }) => (left === right ? [left] : [left, right]));
      expect(
        shown.filter((i) => i !== null).toSorted((a, b) => a - b),
        `seed ${seed}`,
      ).toEqual(lines.map((_, i) => i));
      for (const { left, right } of splitRows(lines))
        if (left !== null && right !== null) expect(left, `seed ${seed}`).toBeLessThanOrEqual(right);
      for (const line of lines)
        expect(commentAt(line) === null, `seed ${seed}`).toBe(line.kind === 'hunk' || line.kind === 'note');
    }
  });

  it('that are cut anywhere are read without an error', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const { patch } = makeCase(numbers(seed));
      for (let end = 0; end < patch.length; end += 3) {
        const lines = readPatch(patch.slice(0, end));
        expect(splitRows(lines).length).toBeLessThanOrEqual(lines.length);
      }
    }
  });
});
