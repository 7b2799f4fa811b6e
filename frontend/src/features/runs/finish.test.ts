import { describe, expect, it } from 'vitest';
import { Failed, type Landing, type Worktree } from '../../lib/api';
import { conflictsOf, doneWords, isSettled, landedWords, standingWords, undoWords } from './finish';

const squash: Landing = { action: 'squash', state: 'done', at: 10, commit: '3056dcc0a1b2', on: 'main' };
const worktree = (landed: Landing | null): Worktree => ({
  path: '/w',
  repository: '/src',
  bytes: 1,
  stays: '',
  reclaimedAt: null,
  landing: landed,
  landed,
});

describe('PGE-11 what an undo takes back, in words', () => {
  it.each<[Landing, string]>([
    [squash, 'Landed as 3056dcc on main'],
    [{ ...squash, action: 'merge', on: '' }, 'Landed as 3056dcc'],
    [{ ...squash, action: 'apply' }, 'Applied: staged in your checkout'],
    [{ ...squash, state: 'staged' }, 'Staged in your checkout, not committed'],
    [{ action: 'discard', state: 'done', at: 1 }, 'Discarded'],
  ])('%j', (landed, words) => {
    expect(standingWords(landed)).toBe(words);
    expect(undoWords(landed)).not.toBe('');
  });

  it('names the branch that gets the commit', () => {
    expect(undoWords(squash)).toContain('adds a commit to main');
    expect(undoWords({ ...squash, on: '' })).toContain('the branch of your checkout');
  });

  it('says that it was undone', () => {
    expect(doneWords({ action: 'undo', commit: '3056dcc0a1b2' })).toBe('Landing undone: 3056dcc0a1.');
    expect(doneWords({ action: 'undo', commit: '' })).toBe('Landing undone.');
    expect(landedWords({ action: 'undo', state: 'staged', at: 1 })).toContain('The undo was interrupted');
  });
});

it.each<[string, number | null, Landing | null, boolean]>([
  ['after a landing', 5, squash, true],
  ['of a job that goes on', null, squash, true],
  ['of a later run', 11, squash, false],
  ['after nothing', 5, null, false],
  ['of what is only staged', 5, { ...squash, action: 'apply' }, false],
  ['of an interrupted landing', 5, { ...squash, state: 'staged' }, false],
  ['of what was dropped', 5, { ...squash, action: 'discard' }, true],
])('PGE-11 an undo alone is offered %s', (_, endedAt, landed, settled) => {
  expect(isSettled({ endedAt, worktree: worktree(landed) })).toBe(settled);
});

it('PGE-11 a refusal names its conflicts', () => {
  expect(conflictsOf(new Failed('no', 409, { conflicts: ['a.go', 7] }))).toEqual(['a.go']);
  expect(conflictsOf(new Failed('no', 409))).toEqual([]);
  expect(conflictsOf(new Error('no'))).toEqual([]);
});
