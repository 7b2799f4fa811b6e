import { describe, expect, it } from 'vitest';
import { decision, delivery, message } from '../../lib/sample';
import {
  groupDecisions,
  inOrder,
  notification,
  pinned,
  scopeTitle,
  scopeWords,
  togetherWith,
  toldBy,
  unreadableWords,
} from './decisions';

it('HUB-06 revisions of one moment name each other', () => {
  const first = decision({ id: '1' });
  const decisions = [decision({ id: '3' }), decision({ id: '2' }), first];
  const atOnce = { '1': '2', '2': '3' };
  const named = decisions.map((d) => togetherWith(d, { decisions, atOnce }).map((o) => o.id));
  expect(named).toEqual([['2'], ['3', '1'], ['2']]);
  expect(togetherWith(first, { decisions })).toEqual([]);
});

describe('DEC-21 scope of a decision', () => {
  it.each([
    ['all' as const, 'everywhere', 'all sessions'],
    [{ project: '/home/anna/web' }, 'web', 'sessions in /home/anna/web'],
    [{ sessions: ['a', 'b'] }, 'a, b', 'only a, b'],
  ])('%j', (scope, words, title) => {
    expect([scopeWords(scope), scopeTitle(scope)]).toEqual([words, title]);
  });

  it('groups: everywhere, projects by name, single sessions', () => {
    const groups = groupDecisions([
      decision({ id: '1', scope: { sessions: ['a'] } }),
      decision({ id: '2', scope: { project: '/x/web' } }),
      decision({ id: '3', scope: { project: '/x/api' } }),
      decision({ id: '4' }),
      decision({ id: '5', scope: { project: '/y/web' } }),
    ]);
    expect(groups.map((g) => [g.title, g.folder, g.decisions.map((d) => d.id).join(' ')])).toEqual([
      ['Everywhere', '', '4'],
      ['api', '/x/api', '3'],
      ['web', '/x/web', '2'],
      ['web', '/y/web', '5'],
      ['Single sessions', '', '1'],
    ]);
  });
});

it('PGE-04 decisions are listed newest first, or by scope', () => {
  const list = [
    decision({ id: '1', createdAt: 1 }),
    decision({ id: '3', createdAt: 3, scope: { project: '/x/api' } }),
    decision({ id: '2', createdAt: 2 }),
  ];
  const ids = (order: 'newest' | 'scope') =>
    inOrder(list, order).map((g) => [g.title, g.decisions.map((d) => d.id).join(' ')]);
  expect(ids('newest')).toEqual([['', '3 2 1']]);
  expect(ids('scope')).toEqual([
    ['Everywhere', '1 2'],
    ['api', '3'],
  ]);
  expect(inOrder([], 'newest')).toEqual([]);
});

it('finds the message that told of a decision, and takes no other for it', () => {
  const told = message({ kind: 'decision', conversation_id: 'decision-d-1' });
  expect(notification(decision(), [message({ conversation_id: 'decision-d-1' }), told])).toBe(told);
  expect(notification(decision({ id: 'd-2' }), [told])).toBeUndefined();
});

it('DEC-21 names who was told of a revision, each once, and whether it read', () => {
  const notice = message({
    kind: 'decision',
    deliveries: [
      delivery('durable', { name: 'web-10' }),
      delivery('consumed', { name: 'api', agent: 'claude', note: 'read 14:02' }),
      delivery('durable', { name: 'api', agent: 'claude' }),
      delivery('expired', { name: 'web-9' }),
      delivery('answered', { name: 'web-9' }),
    ],
  });
  expect(toldBy(notice, 0).map((t) => [t.name, t.read])).toEqual([
    ['api', true],
    ['web-9', true],
    ['web-10', false],
  ]);
  const missed = message({ kind: 'decision', deliveries: [delivery('expired')] });
  expect(toldBy(missed, 0)).toMatchObject([{ read: false, lost: true, how: 'expired unread' }]);
  expect(toldBy(notice, 0)[0]).toEqual({
    name: 'api',
    agent: 'claude',
    read: true,
    lost: false,
    how: 'read 14:02',
  });
  expect(toldBy(undefined, 0)).toEqual([]);
});

describe('what a notification tells people', () => {
  const note = (first: string, text: string) =>
    `${first}:\n\n${text}\n\nThe tool \`decisions\` lists what is in force; \`history: true\` adds what was replaced.`;
  it.each([
    ['Decision on "db", pinned for all sessions by api', 'PostgreSQL.', 'db'],
    [
      'Decision on "say \\"no\\"" (it replaces the earlier one), pinned for /x by a',
      'One.\n\nThe tool says: two.',
      'say "no"',
    ],
  ])('%s', (first, text, topic) => {
    expect(pinned(message({ kind: 'decision', body: note(first, text) }))).toEqual({ topic, text });
  });
  it('is nothing for other messages, and for words that it does not know', () => {
    expect(
      pinned(message({ body: note('Decision on "db", pinned for all sessions by api', 'x') })),
    ).toBeNull();
    expect(pinned(message({ kind: 'decision', body: 'We use PostgreSQL.' }))).toBeNull();
  });
});

describe('STO-18 a decision that cannot be read', () => {
  it('STO-18 is named with its topic and the reason', () => {
    const odd = { id: 'd7', topic: 'db', why: 'its scope names nobody', newer: false };
    expect(unreadableWords(odd)).toBe(
      'A decision on “db” (d7) is in force for nobody: its scope names nobody.',
    );
    expect(unreadableWords({ ...odd, newer: true })).toMatch(/ A newer Bridge may have recorded it\.$/);
  });
});
