import { describe, expect, it } from 'vitest';
import { markdown } from './markdown';
import { hiddenSpans, shownTexts } from './said';
import { hides, keepVisible, visible, visibleExact, visibleLine, visibleParts } from './visible';

describe('SEC-06 the page shows what the program shows', () => {
  it.each(shownTexts())('$name', (row) => {
    expect(visible(row.given)).toBe(row.visible);
    expect(visibleLine(row.given)).toBe(row.line);
    expect(visibleExact(row.given)).toBe(row.exact);
    expect(visible(row.visible)).toBe(row.visible);
  });

  it('of every code point', { timeout: 60_000 }, () => {
    const spans = hiddenSpans();
    const wrong: string[] = [];
    for (let r = 0; r <= 0x10ffff; r++) {
      const form =
        r >= 0xd800 && r <= 0xdfff ? 'always' : spans.findLast(({ from, to }) => r >= from && r <= to)?.form;
      const given = String.fromCodePoint(r);
      if ((visible(given) !== given) !== (form === 'always')) wrong.push(visible(given));
      if ((visibleExact(given) !== given) !== (form !== undefined)) wrong.push(visibleExact(given));
    }
    expect(wrong).toEqual([]);
  });
});

it('SEC-06 tells what was made visible from what was written so', () => {
  expect(visibleParts('\\x1b \x1b')).toEqual([
    { text: '\\x1b ', hidden: false },
    { text: '\\x1b', hidden: true },
  ]);
  expect(hides('a\r\nb\u202e')).toBe(true);
  expect(hides('a\r\nb 👨‍👩‍👧 \\x1b')).toBe(false);
});

it('SEC-06 shows what is hidden in markdown, also what is written as an entity', () => {
  for (const text of [
    'a\u202eb',
    'a&#x202e;b',
    '`a\u202eb`',
    '[a\u202eb](https://example.org/)',
    '- a\u202eb',
  ])
    expect(markdown(text).textContent).toContain('a⟨U+202E⟩b');
  expect(markdown('a\0b').textContent).toContain('a\\x00b'); // a parser makes another character of it
  expect(markdown('a\u202eb &#x200b;').textContent).not.toMatch(/[\u202e\u200b]/);
});

it('RWM-18 keeps visible whatever the page writes, but for what is typed', async () => {
  const root = document.createElement('main');
  root.innerText = '';
  root.append('early\u202e');
  const end = keepVisible(root);
  expect(root.textContent).toBe('early⟨U+202E⟩');
  const [line, field] = [document.createElement('p'), document.createElement('textarea')];
  const word = document.createTextNode('one');
  line.append(word);
  root.append(line, field);
  field.append('typed\u200b');
  await Promise.resolve();
  word.nodeValue = 'two\x1b[2K';
  line.title = '/home/\u2066x';
  const deep = document.createElement('b');
  line.append(deep);
  deep.append('deep\u{e0041}');
  await Promise.resolve();
  expect(line.textContent).toBe('two\\x1b[2Kdeep⟨U+E0041⟩');
  expect(line.title).toBe('/home/⟨U+2066⟩x');
  expect(field.value).toBe('typed\u200b');
  end();
});
