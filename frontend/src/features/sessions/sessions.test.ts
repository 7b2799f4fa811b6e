import { describe, expect, it } from 'vitest';
import type { Peer } from '../../lib/api';
import { message, peer } from '../../lib/sample';
import {
  byInterest,
  byProject,
  isNoteAbout,
  directChild,
  limitation,
  mailProblem,
  mailSentence,
  transportSentence,
  wakeWords,
} from './sessions';

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

describe('CHT-17 the composer says which way the words take', () => {
  const claude = { agent: 'claude', name: 'claude-web' };
  const off = { autoWake: false, wakeOnDirect: false };
  it.each<[Partial<Peer>, string]>([
    [{ sessionId: 't' }, 'Goes to codex’s queue, read at once.'],
    [
      { sessionId: 't', wake: 'slow' },
      'Goes to codex’s queue, read within 10 seconds: codex looks there that seldom without its background server.',
    ],
    [
      { sessionId: 't', state: 'busy' },
      'Goes to codex’s queue, read when it is idle; the running turn is not interrupted.',
    ],
    [
      { sessionId: 't', transport: 'tools only' },
      'Goes to codex’s queue; if codex does not take it, it waits in the inbox until the session looks there.',
    ],
    [{ sessionId: null }, 'Waits in its inbox: codex has not told its thread yet.'],
    [{ ...claude, transport: 'channel' }, 'Goes to its channel, which starts a turn with it.'],
    [
      { ...claude, transport: 'channel', state: 'busy' },
      'Goes to its channel, read at its next step; the running turn is not interrupted.',
    ],
    [
      { ...claude, transport: 'hooks' },
      'A wake hook starts a turn with it, of which claude tells its model that it is no user input; or its next turn shows it.',
    ],
    [{ ...claude, ...off, transport: 'mod' }, 'Its mod enters it as a prompt of yours.'],
    [
      { ...claude, transport: 'mod', state: 'busy' },
      'Its mod enters it as a prompt of yours when its turn has ended; the running turn is not interrupted.',
    ],
    [{ ...claude, wake: 'none' }, 'Read at its next turn; no wake hook waits now.'],
    [{ ...claude, ...off }, 'Read at its next turn; waking is off for this session.'],
    [{ agent: 'opencode', transport: 'plugin' }, 'Its plugin starts a turn with it.'],
    [
      { agent: 'opencode', transport: 'plugin', state: 'busy' },
      'Its plugin stores it for the next step; the running turn is not interrupted.',
    ],
    [{ agent: 'antigravity' }, 'Read at its next turn; an idle antigravity can not be woken.'],
    [
      { agent: 'antigravity', state: 'busy' },
      'Its hooks hand it over at the next safe step; the running turn is not interrupted.',
    ],
    [
      { ...claude, transport: 'tools only' },
      'Waits in its inbox until it looks there: no hook has reported from it yet.',
    ],
    [{ ...claude, transport: 'carrier pigeon' }, 'Goes by carrier pigeon, read at its next turn.'],
  ])('%j', (over, want) => {
    expect(transportSentence(peer(over))).toBe(want);
  });

  it('a note to a codex parent is mail, not its queue', () => {
    expect(mailSentence(peer({ sessionId: 't' }))).toBe(
      'A wake starts a turn with it, or its next turn shows it.',
    );
    expect(mailSentence(peer({ sessionId: 't', wake: 'failed' }))).toBe(
      'Read at its next turn; it could not be woken last time.',
    );
  });
});

describe('CHT-18 the wake policy in words', () => {
  it.each<[Partial<Peer>, RegExp]>([
    [{}, /^any mail/],
    [{ autoWake: false }, /^only mail to exactly its name or id; auto-wake is off/],
    [{ autoWake: false, wakeOnDirect: false }, /^none; it reads at its next turn/],
    [{ agent: 'antigravity' }, /^none: an idle antigravity/],
  ])('%j', (over, want) => {
    expect(wakeWords(peer(over))).toMatch(want);
  });
});

it('CHT-19 says why mail can not take its best way, and what to do', () => {
  const detail = 'it could not be woken while idle: this codex is too old to know the command `queue`.';
  expect(mailProblem(peer({ wake: 'failed', detail }))).toEqual({ what: 'It could not be woken.', detail });
  expect(mailProblem(peer({ transport: 'tools only', detail: 'No hook.' }))?.detail).toBe('No hook.');
  expect(transportSentence(peer({ sessionId: 't', wake: 'failed', detail }))).toContain(
    'if that fails as it did last time',
  );
  expect(mailProblem(peer({ detail: 'All is well.' }))).toBeNull();
  expect(mailProblem(peer({ transport: 'plugin', detail: 'Deaf.', problem: 'Deaf.' }))).toEqual({
    what: 'Something may not work.',
    detail: 'Deaf.',
  });
});

describe('CHT-10 native children', () => {
  it('each kind has its limitation in words', () => {
    expect(limitation(peer({ agent: 'codex' }))).toContain('only while its background server runs both');
    for (const agent of ['claude', 'opencode', 'antigravity'])
      expect(limitation(peer({ agent }))).toContain(`A native child of ${agent} takes no direct input.`);
  });

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
