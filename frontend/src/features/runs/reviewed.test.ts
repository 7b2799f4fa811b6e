import { afterEach, describe, expect, it, vi } from 'vitest';
import type { FileDiff } from '../../lib/api';
import { Reviewed } from './reviewed.svelte';

afterEach(() => {
  vi.useRealTimers();
  localStorage.clear();
});

const file = (path: string, patch: string): FileDiff => ({
  path,
  from: '',
  status: 'modified',
  added: 1,
  removed: 1,
  binary: patch === '',
  patch,
  cut: false,
});

describe('PGE-11 a seen file', () => {
  const a = file('a.go', '@@ -1 +1 @@\n-a\n+b\n');

  it('is remembered for its job, also after a reload', () => {
    new Reviewed('job-1').mark(a, 'H', true);
    const again = new Reviewed('job-1');
    expect([again.has(a, 'H'), again.has(a, 'later'), again.count([a, file('b.go', 'x')], 'H')]).toEqual([
      true,
      true,
      1,
    ]);
    expect(new Reviewed('job-2').has(a, 'H')).toBe(false);
    again.mark(a, 'H', false);
    expect(new Reviewed('job-1').has(a, 'H')).toBe(false);
  });

  it('is not seen any more when its patch is another one', () => {
    const reviewed = new Reviewed('job-1');
    reviewed.mark(a, 'H', true);
    expect(reviewed.has({ ...a, patch: '@@ -1 +1 @@\n-a\n+c\n' }, 'H')).toBe(false);
    expect(reviewed.has({ ...a, status: 'added' }, 'H')).toBe(false);
    expect(reviewed.has({ ...a, path: 'b.go' }, 'H')).toBe(false);
  });

  it('without a patch is seen until there is another commit', () => {
    const reviewed = new Reviewed('job-1');
    const picture = file('logo.png', '');
    reviewed.mark(picture, 'H', true);
    expect([reviewed.has(picture, 'H'), reviewed.has(picture, 'I')]).toEqual([true, false]);
  });

  it('can have any name, and two versions of it can be seen', () => {
    const reviewed = new Reviewed('job-1');
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(reviewed.has(file(name, 'x'), 'H')).toBe(false);
      reviewed.mark(file(name, 'x'), 'H', true);
      reviewed.mark(file(name, 'y'), 'H', true);
      const again = new Reviewed('job-1');
      expect([again.has(file(name, 'x'), 'H'), again.has(file(name, 'y'), 'H')]).toEqual([true, true]);
    }
  });
});

describe('PGE-11 the last review', () => {
  const landing = (head: string, at: number, state: 'done' | 'failed' = 'done') =>
    ({ action: 'squash', state, at, head }) as const;

  it('is the last one sent, or what was finished later', () => {
    vi.useFakeTimers({ now: 1000 });
    const reviewed = new Reviewed('job-1');
    expect([reviewed.last(null), reviewed.last(landing('L', 5))]).toEqual(['', 'L']);
    reviewed.sent('H');
    expect(new Reviewed('job-1').last(null)).toBe('H');
    expect(reviewed.last(landing('L', 999))).toBe('H');
    expect(reviewed.last(landing('L', 1001))).toBe('L');
    expect(reviewed.last(landing('L', 1001, 'failed'))).toBe('H');
  });

  it('is none where something else stands in the storage', () => {
    for (const text of ['', '{', 'null', '7', '[]', '{"at":"x"}', '{"at":1,"head":7,"seen":{"a":1}}']) {
      localStorage.setItem('bridge.reviewed.job-1', text);
      const reviewed = new Reviewed('job-1');
      expect([reviewed.last(null), reviewed.has(file('a', 'x'), '')]).toEqual(['', false]);
    }
  });

  it('is dropped after 60 days', () => {
    vi.useFakeTimers({ now: 1000 });
    new Reviewed('old').sent('H');
    localStorage.setItem('other', 'kept');
    vi.setSystemTime(1000 + 60 * 24 * 3600_000 + 1);
    new Reviewed('new').sent('H');
    expect([new Reviewed('old').last(null), new Reviewed('new').last(null)]).toEqual(['', 'H']);
    expect(localStorage.getItem('other')).toBe('kept');
  });
});
