import { describe, expect, it } from 'vitest';
import { commentAt, diffWords, readPatch, splitRows } from './diff';
import { doneWords, fits, landedWords } from './finish';

const PATCH = `diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -3,3 +3,4 @@ func main
 same
-old
+new
+-- a line that looks like a header
 last
\\ No newline at end of file
`;

describe('JOB-18 a change', () => {
  it('numbers its lines on both sides and hides the names above', () => {
    expect(readPatch(PATCH).map((l) => [l.kind, l.old, l.new])).toEqual([
      ['hunk', null, null],
      ['same', 3, 3],
      ['removed', 4, null],
      ['added', null, 4],
      ['added', null, 5],
      ['same', 5, 6],
      ['note', null, null],
    ]);
    expect(readPatch('')).toEqual([]);
  });

  it('has a place for a comment on each line of a file, and nowhere else', () => {
    expect(readPatch(PATCH).map(commentAt)).toEqual([
      null,
      { line: 3, side: 'new' },
      { line: 4, side: 'old' },
      { line: 4, side: 'new' },
      { line: 5, side: 'new' },
      { line: 6, side: 'new' },
      null,
    ]);
  });

  it('is summed up and landed in words', () => {
    expect(diffWords([{ added: 1, removed: 2 }])).toBe('1 file, 1 line added, 2 removed');
    expect(fits({ conflicts: [] })).toContain('without a conflict');
    expect(fits({ conflicts: ['a', 'b'] })).toBe('2 files do not fit:');
    expect(doneWords({ action: 'squash', commit: '0123456789abcdef' })).toBe(
      'Squashed into one commit: 0123456789.',
    );
    expect(doneWords({ action: 'discard', commit: '' })).toBe('Discarded.');
    expect(landedWords({ action: 'merge', state: 'done', at: 1, commit: '5b1f7c2' })).toBe(
      'Merged: 5b1f7c2.',
    );
    expect(landedWords({ action: 'merge', state: 'staged', at: 1 })).toContain('not committed');
    expect(landedWords({ action: 'merge', state: 'failed', at: 1 })).toBe('');
    expect(landedWords(null)).toBe('');
  });
});

it('JOB-18 DSK-06 the old text beside the new one', () => {
  const lines = readPatch(
    '@@ -1,6 +1,6 @@\n a\n-b\n-c\n+B\n d\n+e\n-f\n-g\n+F\n\\ No newline at end of file\n',
  );
  const text = (i: number | null) => (i === null ? null : (lines[i]?.text ?? '?'));
  expect(splitRows(lines).map(({ left, right }) => [text(left), text(right)])).toEqual([
    ['@@ -1,6 +1,6 @@', '@@ -1,6 +1,6 @@'],
    ['a', 'a'],
    ['b', 'B'],
    ['c', null],
    ['d', 'd'],
    [null, 'e'],
    ['f', 'F'],
    ['g', null],
    ['No newline at end of file', 'No newline at end of file'],
  ]);
  expect(splitRows([])).toEqual([]);
});
