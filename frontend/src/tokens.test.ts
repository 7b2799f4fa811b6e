// The colours of both schemes are readable: WCAG 2.2 asks 4.5 to 1 of text, and 3 to 1 of the
// borders of fields.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const text = readFileSync(join(import.meta.dirname, 'tokens.css'), 'utf8');

/** The colours of a block of the file, by name. */
function colours(selector: string): Map<string, string> {
  const start = text.indexOf(`${selector} {`);
  const block = text.slice(start, text.indexOf('\n}', start));
  return new Map(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = '', hex = '']) => [name, hex]),
  );
}

function luminance(hex: string): number {
  const channels = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  const [r = 0, g = 0, b = 0] = channels.map((c) =>
    c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(color: string, other: string): number {
  const [light = 0, dark = 0] = [luminance(color), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

const SURFACES = ['side', 'bg', 'panel', 'hover'];
const TEXT: [string, string[]][] = [
  ['text', [...SURFACES, 'code', 'accent-bg', 'warn-bg', 'bad-bg', 'good-bg']],
  ['soft', [...SURFACES, 'code']],
  ['accent', [...SURFACES, 'accent-bg']],
  ['on-accent', ['accent']],
  ['good', ['side', 'bg', 'panel', 'good-bg']],
  ['warn', ['side', 'bg', 'panel', 'warn-bg']],
  ['bad', ['side', 'bg', 'panel', 'bad-bg']],
  ...['claude', 'codex', 'opencode', 'antigravity', 'owner'].map((agent): [string, string[]] => [
    agent,
    ['side', 'bg', 'panel'],
  ]),
  ...['keyword', 'string', 'comment', 'value'].map((part): [string, string[]] => [
    `code-${part}`,
    ['panel', 'code'],
  ]),
];

describe.each([
  ['light', ':root'],
  ['dark', ":root[data-theme='dark']"],
])('PGE-12 the %s scheme', (_, selector) => {
  const scheme = colours(selector);
  const of = (name: string) => scheme.get(name) ?? '';

  it('has the same names as the other one', () => {
    expect([...scheme.keys()].sort()).toEqual([...colours(':root').keys()].sort());
  });

  it.each(TEXT)('shows %s readably', (name, backgrounds) => {
    for (const background of backgrounds)
      expect([background, contrast(of(name), of(background)) >= 4.5]).toEqual([background, true]);
  });

  it('shows the borders of fields', () => {
    for (const surface of ['bg', 'panel'])
      expect(contrast(of('edge'), of(surface))).toBeGreaterThanOrEqual(3);
  });
});
