import { describe, expect, test } from 'vitest';
import type { Decision, Scope } from '../../lib/api';
import { draftOf, foldersOf, fromPC, problemOf, reached, scopeOf } from './pinning';

const decision = (topic: string, scope: Scope, author = 'api'): Decision => ({
  id: topic,
  topic,
  text: 'words',
  scope,
  author: { id: author, name: author, agent: 'codex' },
  createdAt: 1,
  sourceMessageId: null,
  supersedes: null,
  current: true,
});
const sessions = [
  { id: 'p1', name: 'api', cwd: '/shop', sessionId: 's1' },
  { id: 'p2', name: 'web', cwd: '/shop', sessionId: null },
  { id: 'p3', name: 'docs', cwd: '/docs', sessionId: 's3' },
];

describe('PGE-04 what the owner pins', () => {
  test('folders are those of sessions and of decisions, each once', () => {
    const decisions = [decision('a', { project: '/old' }), decision('b', { project: '/docs' })];
    expect(foldersOf(sessions, decisions)).toEqual(['/docs', '/old', '/shop']);
  });

  test.each<Scope>(['all', { project: '/shop' }, { sessions: ['api', 'web'] }])(
    'a revision begins with the scope %j',
    (scope) => {
      const draft = draftOf(decision('db', scope), ['/docs']);
      expect(draft).toMatchObject({ topic: 'db', text: 'words' });
      expect(scopeOf(draft)).toEqual(scope);
    },
  );

  test('says what is missing', () => {
    const draft = draftOf(null, []);
    expect(problemOf(draft)).toBe('Give it a topic.');
    draft.topic = 'db';
    draft.text = '  ';
    expect(problemOf(draft)).toBe('Write the decision.');
    draft.text = 'x';
    expect(problemOf(draft)).toBe('');
    for (const whom of ['project', 'sessions'] as const) {
      expect(problemOf({ ...draft, for: whom })).toBe('Choose for whom it is.');
    }
  });

  test.each<[Scope | null, number]>([
    ['all', 3],
    [{ project: '/shop' }, 2],
    [{ project: '/nowhere' }, 0],
    [{ sessions: ['api', 's3', 'gone'] }, 2],
    [null, 0],
  ])('%j reaches %i sessions', (scope, want) => {
    expect(reached(scope, sessions)).toBe(want);
  });

  test('SEC-12 a PC is named before the slash', () => {
    const all = [
      decision('a', 'all', 'laptop/api'),
      decision('b', 'all', 'laptop'),
      decision('c', 'all', 'laptop-2/api'),
    ];
    expect(fromPC(all, 'Laptop').map((d) => d.topic)).toEqual(['a']);
  });
});
