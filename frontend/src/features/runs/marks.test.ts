import { describe, expect, it } from 'vitest';
import { readPatch } from './diff';
import { changeStarts, lineParts, wordMarks } from './marks';

const marked = (patch: string) => {
  const lines = readPatch(patch);
  return wordMarks(lines).map((spans, i) => spans.map(({ from, to }) => lines[i]?.text.slice(from, to)));
};

describe('PGE-11 the changed words of a line', () => {
  it('are those that the line beside it has not', () => {
    expect(
      marked('@@ -1,2 +1,2 @@\n package main\n-const Port = 1 // old\n+const Port = 4777 // old\n'),
    ).toEqual([[], [], ['1'], ['4777']]);
  });

  it('are looked for in each pair, and in no line that stands alone', () => {
    const patch =
      '@@ -1,3 +1,2 @@\n-let a = first(x)\n-let b = second(y)\n-gone\n+let a = third(x)\n+let b = second(z)\n';
    expect(marked(patch)).toEqual([[], ['first'], ['y'], [], ['third'], ['z']]);
  });

  it('are not shown where two lines share almost nothing', () => {
    expect(marked('@@ -1 +1 @@\n-import { readFile } from "fs";\n+const answer = 42;\n')).toEqual([
      [],
      [],
      [],
    ]);
  });

  it('are not looked for in long lines', () => {
    const long = 'word '.repeat(101);
    expect(marked(`@@ -1 +1 @@\n-${long}one\n+${long}two\n`)).toEqual([[], [], []]);
  });

  it('show a change of spaces, too', () => {
    expect(marked('@@ -1 +1 @@\n-  return x\n+    return x\n')).toEqual([[], ['  '], ['    ']]);
  });

  it('stop after so many pairs, so that a generated file is shown at once', () => {
    const many = (sign: string, word: string) => `${sign}same words and ${word}\n`.repeat(2001);
    const marks = marked(`@@ -1,2001 +1,2001 @@\n${many('-', 'one')}${many('+', 'two')}`);
    expect([marks[2000], marks[2001]]).toEqual([['one'], []]);
  });
});

describe('PGE-11 the parts of a line', () => {
  const tokens = [
    { kind: 'keyword', text: 'const' },
    { kind: '', text: ' Port = ' },
    { kind: 'number', text: '4777' },
  ];
  const text = 'const Port = 4777';

  it('are cut where a changed word begins and ends', () => {
    expect(
      lineParts(text, tokens, [
        { from: 6, to: 10 },
        { from: 15, to: 17 },
      ]),
    ).toEqual([
      { kind: 'keyword', text: 'const', changed: false },
      { kind: '', text: ' ', changed: false },
      { kind: '', text: 'Port', changed: true },
      { kind: '', text: ' = ', changed: false },
      { kind: 'number', text: '47', changed: false },
      { kind: 'number', text: '77', changed: true },
    ]);
  });

  it.each([
    ['without colours', null, [{ from: 0, to: 5 }]],
    ['with a change over several tokens', tokens, [{ from: 3, to: 16 }]],
    ['without a change', tokens, []],
  ])('are the whole line %s', (_, given, marks) => {
    expect(
      lineParts(text, given, marks)
        .map((part) => part.text)
        .join(''),
    ).toBe(text);
  });
});

it('PGE-11 a change begins where lines went or came after one that stayed', () => {
  const patch = '@@ -1,4 +1,4 @@\n-a\n+b\n c\n+d\n@@ -9 +9 @@\n-e\n';
  expect([...changeStarts(readPatch(patch))]).toEqual([1, 4, 6]);
  expect([...changeStarts([])]).toEqual([]);
});
