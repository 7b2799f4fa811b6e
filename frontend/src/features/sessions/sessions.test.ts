import { describe, expect, it } from 'vitest';
import type { Message, Peer } from '../../lib/api';
import { message, peer } from '../../lib/sample';
import { byAttention, byInterest, byProject, directChild, isNoteAbout } from './sessions';

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

describe('byAttention', () => {
  const NOW = 100 * 3_600_000;
  const many = (n: number, over: (i: number) => Partial<Peer> = () => ({})) =>
    Array.from({ length: n }, (_, i) => peer({ id: `p-${i}`, name: `s-${i}`, ...over(i) }));
  const spoke = (name: string, minutes: number): [string, Message] => [
    name,
    message({ from_name: name, created_at: NOW - minutes * 60_000 }),
  ];
  const names = (list: Peer[]) => list.map((p) => p.name);

  it('DSK-06 tells of all while they are few, those at work first', () => {
    const peers = many(8, (i) => ({ state: i === 5 ? 'busy' : 'idle' }));
    const { awake, quiet } = byAttention(peers, new Map([spoke('s-3', 70)]), NOW);
    expect(names(awake).slice(0, 3)).toEqual(['s-5', 's-3', 's-0']);
    expect([awake.length, quiet.length]).toEqual([8, 0]);
  });

  it('DSK-06 folds those of many that are silent for an hour', () => {
    const peers = many(9, (i) => ({ unread: i === 4 ? 1 : 0 }));
    const { awake, quiet } = byAttention(peers, new Map([spoke('s-3', 59), spoke('s-2', 60)]), NOW);
    expect(names(awake)).toEqual(['s-3', 's-4']);
    expect(names(quiet)).toEqual(['s-0', 's-1', 's-2', 's-5', 's-6', 's-7', 's-8']);
  });

  it('DSK-06 tells of twelve, but of everyone at work', () => {
    const last = new Map(many(56).map((p, i) => spoke(p.name, i)));
    expect(names(byAttention(many(56), last, NOW).awake)).toHaveLength(12);
    const busy = many(56, (i) => ({ state: i < 20 ? 'busy' : 'idle' }));
    expect(names(byAttention(busy, last, NOW).awake)).toHaveLength(20);
    const parents = many(56, (i) =>
      i < 20 ? { children: [{ id: 'c', title: 'explore', state: 'busy' }] } : {},
    );
    expect(names(byAttention(parents, last, NOW).awake)).toHaveLength(20);
  });
});
