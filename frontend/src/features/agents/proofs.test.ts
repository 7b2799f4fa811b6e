import { describe, expect, it } from 'vitest';
import { proofWords } from './proofs';

const proof = { version: '1.2.3', at: 1, problem: '', broken: [] };

describe('CAN-02 what came of trying an agent', () => {
  it('says which version works', () => {
    expect(proofWords(proof)).toEqual({
      first: 'Bridge tried version 1.2.3: all routes work.',
      more: [],
      isGood: true,
    });
  });

  it('says what is broken, a sentence each', () => {
    const broken = ['Wake is broken since 1.2.3: mail waits for the next prompt.'];
    expect(proofWords({ ...proof, broken })).toEqual({
      first: 'Bridge tried version 1.2.3: not all routes work.',
      more: broken,
      isGood: false,
    });
  });

  it('says why they could not be tried, with one full stop', () => {
    for (const problem of ['the agent ended', 'the agent ended.'])
      expect(proofWords({ ...proof, problem })).toEqual({
        first: 'Bridge could not try version 1.2.3: the agent ended.',
        more: [],
        isGood: false,
      });
  });
});
