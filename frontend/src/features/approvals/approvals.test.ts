import { beforeEach, describe, expect, it, vi } from 'vitest';
import { api, Failed } from '../../lib/api';
import { approval } from '../../lib/sample';
import { Answer, newer } from './answers.svelte';
import { answersOf, askWords, fateOf, isDiff, isOpen, missing, shareLeft, timeLeft } from './approvals';

beforeEach(() => void vi.restoreAllMocks());

describe('JOB-07 a question in words', () => {
  it('is open while nobody answered and its time is not over', () => {
    expect(isOpen(approval(), 600_999)).toBe(true);
    expect(isOpen(approval(), 601_000)).toBe(false);
    expect(isOpen(approval({ state: 'answered' }), 2000)).toBe(false);
  });

  it('says the time that is left, and its share', () => {
    expect(timeLeft(approval(), 1000)).toBe('10 min 00 s');
    expect(timeLeft(approval(), 599_500)).toBe('2 s');
    expect(timeLeft(approval(), 700_000)).toBe('');
    expect(shareLeft(approval(), 301_000)).toBe(0.5);
    expect(shareLeft(approval(), 0)).toBe(1);
  });

  it('never says that something was done before its agent did it', () => {
    const said = (over: object) => fateOf(approval({ answeredBy: 'owner', answeredAt: 2000, ...over }), 3000);
    expect(said({ state: 'answered', decision: 'allow' })).toMatchObject({ word: 'Answered', tone: 'warn' });
    expect(said({ state: 'answered', decision: 'allow' }).words).toContain('does not have it yet');
    expect(said({ state: 'delivered', decision: 'allow' }).words).toContain('has not acted on it yet');
    expect(said({ state: 'applied', decision: 'allow' })).toMatchObject({ word: 'Applied', tone: 'good' });
    expect(said({ state: 'applied', decision: 'deny' }).tone).not.toBe('good');
    expect(said({ state: 'withdrawn' }).words).toContain('nothing was done');
    expect(said({ state: 'expired' }).words).toContain('denied');
  });

  it('names who answered', () => {
    const told = (answeredBy: string) =>
      fateOf(approval({ state: 'applied', decision: 'deny', answeredBy }), 3000).words;
    expect(told('owner')).toContain('denied by you');
    expect(told('claude-api')).toContain('denied by claude-api');
  });

  it('names what is asked for', () => {
    expect(askWords(approval())).toBe('Run a command');
    expect(askWords(approval({ kind: 'change' }))).toBe('Change files');
    expect(askWords(approval({ kind: 'tool', what: 'WebFetch' }))).toBe('Use WebFetch');
    expect(isDiff('x\n@@ -1 +1 @@\n-a')).toBe(true);
    expect(isDiff('git diff')).toBe(false);
  });
});

describe('JOB-07 the owner’s answer', () => {
  it('gives a reason with a refusal alone, and once', async () => {
    const post = vi
      .spyOn(api, 'answerApproval')
      .mockResolvedValue(approval({ state: 'answered', decision: 'deny' }));
    const answer = new Answer('a-1');
    answer.reason = ' not now ';
    await Promise.all([answer.give('deny'), answer.give('deny')]);
    expect(post.mock.calls).toEqual([['a-1', 'deny', 'not now']]);
    expect(answer.record?.state).toBe('answered');
    await answer.give('allow');
    expect(post).toHaveBeenLastCalledWith('a-1', 'allow', '');
  });

  it('shows who was quicker', async () => {
    const record = approval({ state: 'applied', decision: 'deny', answeredBy: 'claude-api' });
    vi.spyOn(api, 'answerApproval').mockRejectedValue(
      new Failed('it was answered already: deny by claude-api', 409, { approval: record }),
    );
    const answer = new Answer('a-1');
    await answer.give('allow');
    expect(answer.record).toEqual(record);
    expect(answer.problem).toContain('answered already');
  });

  it('stays with the question where nothing came back', async () => {
    vi.spyOn(api, 'answerApproval').mockRejectedValue(new Error('Bridge does not answer.'));
    const answer = new Answer('a-1');
    await answer.give('allow');
    expect([answer.record, answer.problem, answer.sending]).toEqual([null, 'Bridge does not answer.', null]);
  });

  it('is told by whoever knows more', () => {
    const asked = approval();
    const answered = approval({ state: 'answered' });
    const applied = approval({ state: 'applied' });
    expect(newer(asked, answered)).toBe(answered);
    expect(newer(applied, answered)).toBe(applied);
    expect(newer(asked, null)).toBe(asked);
  });
});

describe('NED-02 what a model asks itself', () => {
  const options = [{ label: 'Red' }, { label: 'Blue' }];
  const choices = [
    { question: 'One?', options, words: true },
    { question: 'Some?', options, several: true, words: true },
  ];

  it('is answered by labels in their order, and words last', () => {
    expect(answersOf(choices, [['Red'], ['Blue', 'Red', 'gone']], ['', ' green '])).toEqual([
      ['Red'],
      ['Red', 'Blue', 'green'],
    ]);
    expect(answersOf(choices, [[], []], [' own ', 'Red'])).toEqual([['own'], ['Red']]);
    expect(answersOf(choices, [], [])).toEqual([[], []]);
  });

  it('counts what has no answer', () => {
    expect(missing(choices, [[], []])).toBe(2);
    expect(missing(choices, [['Red'], []])).toBe(1);
    expect(missing(choices, [['Red'], ['x']])).toBe(0);
  });

  it('is said to be chosen, and at the terminal to be answered', () => {
    const prompt = { job: '', session: 's', kind: 'question', answeredBy: 'owner', answeredAt: 2000 };
    const chosen = approval({ ...prompt, state: 'applied', decision: 'allow', answers: [['Red']] });
    expect(fateOf(chosen, 3000).words).toContain('chosen by you');
    const there = approval({ ...prompt, state: 'withdrawn', elsewhere: 'allowed' });
    expect(fateOf(there, 3000).words).toBe('it was answered there.');
  });
});
