import { describe, expect, it } from 'vitest';
import { markdown } from './markdown';

function html(text: string): string {
  const box = document.createElement('div');
  box.append(markdown(text));
  return box.innerHTML;
}

describe('hostile text', () => {
  it.each([
    '<img src=x onerror=alert(1)>',
    '<script>alert(1)</script>',
    '![x](https://example.org/track.png)',
    '[x](javascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '<a href="javascript:alert(1)">x</a>',
    '<svg onload=alert(1)>',
    '<form action=/api/messages><button>',
    '[x](https://example.org "\\" onmouseover=alert(1)")',
    '[x](/api/messages)',
  ])('%s', (text) => {
    const box = document.createElement('div');
    box.append(markdown(text));
    expect(box.querySelector('img, script, svg, form, button, style, iframe')).toBeNull();
    for (const link of box.querySelectorAll('a')) expect(link.href).toMatch(/^https?:\/\/example\.org\//);
    for (const element of box.querySelectorAll('*')) {
      expect(element.getAttributeNames().filter((name) => name.startsWith('on'))).toEqual([]);
    }
  });

  it('keeps HTML visible as the text it is', () => {
    expect(html('<b>bold</b>')).toContain('&lt;b&gt;bold&lt;/b&gt;');
  });
});

it('links say where they go and open outside', () => {
  const link = markdown('[the note](https://example.org/a?b=c)').querySelector('a');
  expect(link?.rel).toBe('noopener noreferrer');
  expect(link?.target).toBe('_blank');
  expect(link?.textContent).toBe('the note (example.org)');
});

it('renders what agents write', () => {
  expect(html('a `b` **c**')).toBe('<p>a <code>b</code> <strong>c</strong></p>\n');
  expect(html('1. x\n2. y')).toContain('<ol>');
  expect(html('# Title')).toContain('<p><strong>Title</strong></p>');
  expect(html('- [ ] to do\n- [x] **done**\n- [y] no')).toBe(
    '<ul>\n<li class="task">☐ to do</li>\n<li class="task">☑ <strong>done</strong></li>\n<li>[y] no</li>\n</ul>\n',
  );
  expect(html('| a | b |\n|---|--:|\n| 1 | 2 |')).toContain('<td>1</td>\n<td align="right">2</td>');
});
