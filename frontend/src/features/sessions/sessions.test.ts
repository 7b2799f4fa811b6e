import { describe, expect, it } from 'vitest';
import { message, peer } from '../../lib/sample';
import { byInterest, byProject, directChild, isNoteAbout } from './sessions';

it('groups sessions by folder, all in order', () => {
  const groups = byProject([
    peer({ id: '1', name: 'opencode-web', cwd: '/w/web' }),
    peer({ id: '2', name: 'claude-web', cwd: '/w/web' }),
    peer({ id: '3', name: 'codex-api', cwd: '/w/api' }),
  ]);
  expect(groups.map((g) => [g.project, ...g.peers.map((p) => p.name)])).toEqual([
    ['api', 'codex-api'],
    ['web', 'claude-web', 'opencode-web'],
  ]);
});

describe('CHT-10 native children', () => {
  it('those at work come first, then the ended, the newest first', () => {
    const child = (id: string, state: string) => ({ id, title: id, state });
    const { working, ended } = byInterest([
      child('a', 'busy'),
      child('b', 'done'),
      child('c', 'busy'),
      child('d', 'done'),
    ]);
    expect([working, ended].map((list) => list.map((c) => c.id).join(' '))).toEqual(['c a', 'd b']);
  });

  it('CHT-10 words that went to a child itself are told by whom they are for', () => {
    expect(directChild(message({ to_target: 'codex-web (native child 01a1-fc)' }))).toBe('01a1-fc');
    expect(directChild(message({ to_target: 'codex-web' }))).toBe('');
  });

  it('CHT-11 a note to the parent is known by its first line', () => {
    const note = (body: string, kind: 'owner' | 'message' = 'owner') => message({ kind, body });
    const first = 'A note about your native child "explore (it)" (c-1):\n\nlook';
    expect(isNoteAbout(note(first), 'c-1')).toBe(true);
    expect(isNoteAbout(note(first), '1')).toBe(false);
    expect(isNoteAbout(note(first, 'message'), 'c-1')).toBe(false);
    expect(isNoteAbout(note('look (c-1):'), 'c-1')).toBe(false);
  });
});
