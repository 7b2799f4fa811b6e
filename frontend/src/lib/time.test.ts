import { describe, expect, it } from 'vitest';
import { said } from './said';
import { age, clock, exact, near } from './time';

describe('age', () => {
  const now = 1_000_000_000_000;
  it.each([[-5000, 'now'], [4999, 'now'], ...said('spans')])('%i ms', (ms, want) => {
    expect(age(now - ms, now)).toBe(want);
  });
});

describe('clock', () => {
  const noon = new Date(2026, 10, 21, 12, 0).getTime();
  it.each([
    [new Date(2026, 10, 21, 9, 5), '09:05'],
    [new Date(2026, 10, 3, 14, 2), '3 Nov 14:02'],
    [new Date(2025, 11, 31, 23, 59), '31 Dec 2025 23:59'],
  ])('%s', (then, want) => {
    expect(clock(then.getTime(), noon)).toBe(want);
  });
});

it('gives the whole time for details, and less beside one of the same day', () => {
  const then = new Date(2026, 0, 2, 3, 4, 5).getTime();
  expect(exact(then)).toBe('2026-01-02 03:04:05');
  expect(near(then, then + 60_000)).toBe('03:04:05');
  expect(near(then, then + 86_400_000)).toBe('2026-01-02 03:04:05');
});
