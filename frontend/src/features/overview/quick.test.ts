import { describe, expect, it } from 'vitest';
import type { Question } from '../../lib/api';
import { approval } from '../../lib/sample';
import { allowsInRow, choosesInRow } from './quick';

const question = (over: Partial<Question> = {}): Question => ({
  id: 'q',
  by: 'asker',
  agent: 'claude',
  project: '',
  title: 'Which port?',
  context: '4777 is taken.',
  topic: '',
  options: [
    { id: '1', label: '4778', consequence: 'The tests run as they are.' },
    { id: '2', label: 'A free one', consequence: 'Three tests are rewritten.' },
  ],
  blocking: false,
  state: 'open',
  askedAt: 1,
  endedAt: null,
  answer: null,
  ...over,
});

const short = () => approval({ kind: 'command', state: 'asked', detail: 'npm test' });

describe('PGE-07 a request is answered by one click where its row shows all of it', () => {
  it('allows a short command, and nothing else', () => {
    expect(allowsInRow(short())).toBe(true);
    expect(allowsInRow({ ...short(), detail: `echo ${'é'.repeat(235)}` })).toBe(true);
    const others = {
      'too long': { detail: `echo ${'é'.repeat(236)}` },
      'too many lines': { detail: 'a\nb\nc\nd' },
      'a hidden character': { detail: 'rm\u200b -rf build' },
      'a turned direction': { detail: 'rm \u202egpj' },
      'a change': { kind: 'change', detail: 'main.go' },
      'an edit': { kind: 'edit', detail: 'main.go' },
      'lines of a diff': { detail: '@@ -1 +1 @@' },
      'no detail': { detail: '' },
      'a warning': { caution: 'It also starts the next turn.' },
      'answered in its terminal alone': { onlyTold: 'it has no background server' },
      'its own choices': { choices: [{ question: 'Which?', options: [{ label: 'A' }] }] },
      answered: { state: 'answered' as const },
    };
    for (const [what, over] of Object.entries(others))
      expect([what, allowsInRow({ ...short(), ...over })]).toEqual([what, false]);
    expect(allowsInRow(undefined)).toBe(false);
  });

  it('offers up to four short options', () => {
    expect(choosesInRow(question())).toBe(true);
    const option = (id: number) => ({ id: `${id}`, label: `${id}`, consequence: '' });
    expect(choosesInRow(question({ options: [1, 2, 3, 4].map(option) }))).toBe(true);
    const others: Record<string, Partial<Question>> = {
      'in words': { options: [] },
      'five options': { options: [1, 2, 3, 4, 5].map(option) },
      'a long option': { options: [{ ...option(1), label: 'x'.repeat(41) }] },
      'a long consequence': { options: [{ ...option(1), consequence: 'x'.repeat(241) }] },
      'a hidden character': { options: [{ ...option(1), label: 'A\u200b' }] },
      'a long context': { context: 'a\nb\nc\nd' },
      answered: { state: 'answered' },
    };
    for (const [what, over] of Object.entries(others))
      expect([what, choosesInRow(question(over))]).toEqual([what, false]);
    expect(choosesInRow(undefined)).toBe(false);
  });
});
