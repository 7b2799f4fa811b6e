import { describe, expect, it } from 'vitest';
import { said } from './said';
import { byName, bytes, count, excerpt, oneLine, unreadNumber } from './text';

describe('excerpt', () => {
  it.each([
    ['short enough', 12, 'short enough', false],
    ['never cuts words', 12, 'never cuts…', true],
    ['a little longer', 13, 'a little longer', false],
    ['ends at a whole word', 11, 'ends at a…', true],
    ['line\nbreaks count as well', 12, 'line\nbreaks…', true],
    ['aaaaaaaaaaaaaaaaaaaa', 10, 'aaaaaaaaaa…', true],
  ])('%j in %i', (text, max, want, more) => {
    expect(excerpt(text, max)).toEqual({ text: want, more });
  });
});

it('puts text on one line without marks, keeping what only looks like one', () => {
  expect(oneLine('use `a.go`\n\n**not** `b`')).toBe('use a.go not b');
  expect(oneLine('```go\nx := 1\n```\nthen *.go')).toBe('x := 1 then *.go');
  expect(oneLine('## Review\n\nmade *inside* the loop\n> said')).toBe('Review made inside the loop said');
  expect(oneLine('*.go and *.ts, 2 * 3 * 4, #7')).toBe('*.go and *.ts, 2 * 3 * 4, #7');
});

it('orders names as people count', () => {
  const names = ['api-54', 'web', 'api-9', 'api', 'api-100', 'Api-10'];
  expect(names.sort(byName)).toEqual(['api', 'api-9', 'Api-10', 'api-54', 'api-100', 'web']);
});

it.each(said('sizes'))('%d bytes are %s', (n, want) => {
  expect(bytes(n)).toBe(want);
});

it.each(said('counts'))('%d of them are %s', (n, want) => {
  expect(count(n, 'message')).toBe(want);
});

describe('STO-18 a number that is not known', () => {
  it('STO-18 is "?", never 0', () => {
    expect(count(null, 'message')).toBe('? messages');
    expect([unreadNumber(0), unreadNumber(3), unreadNumber(null)]).toEqual(['', '3', '?']);
  });
});
