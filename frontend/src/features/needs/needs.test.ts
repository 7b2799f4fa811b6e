import { describe, expect, it } from 'vitest';
import { approval, need, question } from '../../lib/sample';
import {
  inGroups,
  inOrder,
  isPlainApproval,
  isPlainQuestion,
  leftWords,
  pressing,
  SORTS,
  stillThere,
  subject,
  waitingSessions,
  wayWord,
} from './needs';

describe('NED-01 needs you', () => {
  it('keeps the order of the server, and drops what is over by itself', () => {
    const list = [need({ id: 'a' }), need({ id: 'b', until: 100 }), need({ id: 'c', until: 101 })];
    expect(stillThere(list, 100).map((n) => n.id)).toEqual(['a', 'c']);
    expect(stillThere(list, 99).map((n) => n.id)).toEqual(['a', 'b', 'c']);
  });

  it('knows what it is about', () => {
    expect(subject(need({ id: 'approval:0198-a' }))).toBe('0198-a');
    expect(subject(need({ id: 'mail:codex-web:m-1' }))).toBe('codex-web:m-1');
  });

  it('says how long is left where something ends by itself', () => {
    expect(leftWords(need(), 0)).toBe('');
    expect(leftWords(need({ until: 580_000 }), 0)).toBe('9 min 40 s left');
    expect(leftWords(need({ until: 1 }), 5_000)).toBe('0 s left');
  });

  it('has a word and a sign for each sort, and offers what can be done', () => {
    for (const { word, sign } of Object.values(SORTS)) expect([word, sign]).not.toContain('');
    expect([wayWord('question'), wayWord('job-review'), wayWord('mail')]).toEqual([
      'Answer',
      'Review',
      'Look',
    ]);
  });

  it('NED-01 shows the oldest first, and moves nothing that stands when older things come', () => {
    const first = inOrder(
      [],
      [
        { key: 'b', since: 2 },
        { key: 'a', since: 1 },
        { key: 'b', since: 2 },
      ],
    );
    expect(first).toEqual(['a', 'b']);
    const later = inOrder(first, [
      { key: 'b', since: 2 },
      { key: 'd', since: 1 },
      { key: 'c', since: 0 },
    ]);
    expect(later).toEqual(['a', 'b', 'c', 'd']);
  });

  it('shows cards by themselves and rows that follow one another together', () => {
    const entries = ['a', 'B', 'C', 'd'].map((key) => ({ key, isRow: key < 'a' }));
    const keys = (order: string[]) => inGroups(order, entries).map(({ all }) => all.map(({ key }) => key));
    expect(keys(['a', 'B', 'C', 'gone', 'd'])).toEqual([['a'], ['B', 'C'], ['d']]);
    expect(keys(['B', 'a', 'C'])).toEqual([['B'], ['a'], ['C']]);
  });

  it('PGE-02 shows what ends first before what is older, and counts no news', () => {
    const order = inOrder(
      [],
      [
        { key: 'old', since: 1, until: null },
        { key: 'late', since: 3, until: 90 },
        { key: 'soon', since: 2, until: 20 },
      ],
    );
    expect(order).toEqual(['soon', 'late', 'old']);
    expect(pressing([need({ urgency: 'now' }), need({ urgency: 'next' }), need()])).toBe(2);
  });

  it('PGE-01 knows which sessions wait for the owner', () => {
    const list = [need({ by: 'web' }), need(), need({ by: 'web' }), need({ by: 'api' })];
    expect([...waitingSessions(list)]).toEqual(['web', 'api']);
  });
});

describe('PGE-07 an answer in its row', () => {
  it('PGE-07 is offered for a permission only where the row shows all of it', () => {
    const plain = approval({ detail: 'git commit', state: 'asked', expiresAt: null });
    expect(isPlainApproval(plain, 0)).toBe(true);
    for (const over of [
      { detail: '' },
      { detail: 'a\nb' },
      { detail: 'x'.repeat(121) },
      { detail: 'rm \u202e-rf' },
      { caution: 'It rejects the others, too.' },
      { onlyTold: 'it runs in the background' },
      { choices: [{ question: 'Which?', header: '', multiple: false, options: [] }] },
      { state: 'answered' as const },
      { expiresAt: -1 },
    ])
      expect(isPlainApproval({ ...plain, ...over } as typeof plain, 0), JSON.stringify(over)).toBe(false);
  });

  it('PGE-07 is offered for a question with a few short answers', () => {
    const options = ['Yes', 'No'].map((label, i) => ({ id: String(i + 1), label, consequence: '' }));
    const plain = question({ state: 'open', options, context: '' });
    expect(isPlainQuestion(plain)).toBe(true);
    for (const over of [
      { options: [] },
      { options: [...options, ...options] },
      { options: [{ id: '1', label: 'x'.repeat(31), consequence: '' }] },
      { context: 'x'.repeat(121) },
      { state: 'answered' as const },
    ])
      expect(isPlainQuestion({ ...plain, ...over }), JSON.stringify(over)).toBe(false);
  });
});
