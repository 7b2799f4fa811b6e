import { describe, expect, it } from 'vitest';
import type { Run } from '../../lib/api';
import { message, peer } from '../../lib/sample';
import { doingNow, endedLine, liveLine, matching, nextOrder, readOrder, sorted, type Line } from './list';

const line = (name: string, over: Partial<Line> = {}): Line => ({
  name,
  agent: 'codex',
  project: 'shop',
  folder: '/src/shop',
  state: 'idle',
  doing: '',
  unread: 0,
  seen: 0,
  ...over,
});
const names = (lines: Line[]) => lines.map((line) => line.name).join(' ');

describe('PGE-08 the list of sessions', () => {
  const lines = [
    line('d', { state: 'ended', project: '', folder: '', seen: 3 }),
    line('c', { state: 'busy', seen: Infinity, agent: 'claude', doing: 'tests' }),
    line('api-10', { state: 'waits', unread: 1, seen: 2 }),
    line('api-9', { project: 'billing', folder: '/src/billing', unread: 4, seen: 1 }),
  ];

  it.each([
    ['', 'api-10 c api-9 d'],
    ['-state', 'd api-9 c api-10'],
    ['name', 'api-9 api-10 c d'],
    ['-name', 'd c api-10 api-9'],
    ['agent', 'c api-9 api-10 d'],
    ['project', 'api-9 api-10 c d'],
    ['doing', 'c api-9 api-10 d'],
    ['unread', 'api-9 api-10 c d'],
    ['seen', 'c d api-10 api-9'],
    ['nonsense', 'api-10 c api-9 d'],
  ])('PGE-08 is sorted by "%s"', (order, want) => {
    expect(names(sorted(lines, readOrder(order)))).toBe(want);
  });

  it('PGE-08 a second click on a column turns the order round, a third back', () => {
    expect(nextOrder(readOrder(''), 'name')).toBe('name');
    expect(nextOrder(readOrder('name'), 'name')).toBe('-name');
    expect(nextOrder(readOrder('-name'), 'name')).toBe('name');
    expect(nextOrder(readOrder(''), 'state')).toBe('-state');
    expect(nextOrder(readOrder('-state'), 'state')).toBe('');
  });

  it.each([
    ['', '', 'd c api-10 api-9'],
    ['API', '', 'api-10 api-9'],
    ['billing codex', '', 'api-9'],
    ['claude', '', 'c'],
    ['', 'waits', 'api-10'],
    ['', 'unread', 'api-10 api-9'],
    ['shop', 'ended', ''],
  ])('PGE-08 "%s" in state "%s" finds', (find, state, want) => {
    expect(names(matching(lines, find, state))).toBe(want);
  });

  it('PGE-08 says what is at work, else what was said last', () => {
    const said = message({ body: '**Done**: all tests pass.', created_at: 5000 });
    const run = { by: 'codex-web', title: 'Review the diff', status: 'running' } as Run;
    const child = { id: 'c', title: 'explore', state: 'busy' };
    expect(doingNow(peer(), [], undefined)).toBe('');
    expect(doingNow(peer(), [], said)).toBe('Done: all tests pass.');
    expect(doingNow(peer(), [run], said)).toBe('Review the diff');
    expect(doingNow(peer(), [{ ...run, status: 'finished' }], said)).toBe('Done: all tests pass.');
    expect(doingNow(peer({ children: [child] }), [run], said)).toBe('explore, and 1 more');
  });

  it('PGE-08 a session was seen when it joined, spoke, or works now', () => {
    const said = message({ created_at: 5000 });
    expect(liveLine(peer({ since: 3000 }), false, [], undefined)).toMatchObject({
      seen: 3000,
      state: 'idle',
    });
    expect(liveLine(peer({ since: 3000 }), true, [], said)).toMatchObject({ seen: 5000, state: 'waits' });
    expect(liveLine(peer({ state: 'busy' }), false, [], said)).toMatchObject({
      seen: Infinity,
      state: 'busy',
    });
    const ended = endedLine({ name: 'a', agent: 'codex', seenAt: 7 }, said);
    expect(ended).toMatchObject({ seen: 7, state: 'ended', project: '', doing: 'hello' });
  });
});
