import { describe, expect, it } from 'vitest';
import { approval } from '../../lib/sample';
import { answererWords } from '../approvals/approvals';
import { allowsWords, takenWords, usesWords, wishOf } from './rules';
import type { Rule } from '../../lib/api';

const offer = { exact: true, words: ['go', 'test', './x'], least: 2, folder: '/src/api', why: '' };
const rule: Rule = {
  id: 'rule-1',
  agent: 'codex',
  kind: 'command',
  tool: 'shell',
  match: 'prefix',
  text: '',
  words: ['go', 'test'],
  folder: '/src/api',
  says: '',
  until: null,
  madeAt: 1,
  uses: 0,
  lastUse: null,
  lastFor: '',
};

describe('NED-04 from now on', () => {
  it('asks for what was chosen, and nothing more', () => {
    expect(wishOf(offer, { words: null, everywhere: false, span: '' }, 1000)).toEqual({
      match: 'exact',
      folder: 'this',
    });
    expect(wishOf(offer, { words: 2, everywhere: true, span: 'hour' }, 1000)).toEqual({
      match: 'prefix',
      words: ['go', 'test'],
      folder: 'all',
      until: 3_601_000,
    });
  });

  it('says what would be allowed, and who has answered', () => {
    expect(allowsWords(approval(), { words: null, everywhere: false, span: '' })).toContain('Exactly');
    expect(allowsWords(approval(), { words: 2, everywhere: false, span: '' })).toContain('begins');
    expect(answererWords('rule:rule-0a1b2c3d')).toBe('your rule');
  });

  it('says what became of a rule that was taken back', () => {
    expect(usesWords(rule)).toBe('never used');
    expect(usesWords({ ...rule, uses: 2 })).toBe('used 2 times');
    const words = takenWords({ rule, asked: ['a', 'b'], handed: ['c'] });
    expect(words).toContain('2 questions');
    expect(words).toContain('1 answer');
    expect(takenWords({ rule, asked: [], handed: [] })).toBe('Taken back: it allows nothing any more.');
  });
});
