import { describe, expect, it } from 'vitest';
import { delivery, message, peer } from '../../lib/sample';
import { filterMessages, joinNotifications, mergeMessages, NO_FILTER, textParts } from './messages';

describe('filter', () => {
  const first = message({ id: 'one', body: 'Review the Migration' });
  const two = message({
    id: 'two',
    from_name: 'you',
    from_agent: 'owner',
    body: 'stop',
    deliveries: [delivery('durable', { name: 'opencode-docs', agent: 'opencode' })],
  });
  const peers = [peer({ name: 'codex-web', cwd: '/w/web' }), peer({ name: 'opencode-docs', cwd: '/w/docs' })];
  it.each([
    [{}, ['one', 'two']],
    [{ text: 'migration' }, ['one']],
    [{ text: ' OPENCODE ' }, ['two']],
    [{ kind: 'owner' }, ['two']],
    [{ person: 'codex-web' }, ['one']],
    [{ project: 'docs' }, ['two']],
    [{ project: 'docs', kind: 'claude' }, []],
  ])('%j', (filter, want) => {
    const got = filterMessages([first, two], { ...NO_FILTER, ...filter }, peers);
    expect(got.map((m) => m.id)).toEqual(want);
  });
});

describe('merge', () => {
  const at = (n: number, over = {}) => message({ id: `m-${n}`, created_at: n, ...over });
  const ids = (messages: ReturnType<typeof message>[]) => messages.map((m) => m.id).join(' ');

  it('puts the oldest first and takes the newer copy', () => {
    const merged = mergeMessages([at(1), at(2)], [at(3), at(2, { state: 'consumed' })], 2);
    expect(ids(merged)).toBe('m-1 m-2 m-3');
    expect(merged[1]?.state).toBe('consumed');
  });
  it('shows no gap: what does not connect is dropped', () => {
    expect(ids(mergeMessages([at(1)], [at(9), at(8)], 2))).toBe('m-8 m-9');
    expect(ids(mergeMessages([at(1)], [at(9)], 2))).toBe('m-1 m-9');
  });
});

it('shows the notifications of one decision as one message, in its place', () => {
  const notice = (id: string, created_at: number, name: string) =>
    message({
      id,
      created_at,
      kind: 'decision',
      conversation_id: 'decision-d-1',
      deliveries: [delivery('durable', { name })],
    });
  const chat = message({ id: 'chat', created_at: 5, conversation_id: 'decision-d-1' });
  const newestFirst = [notice('late', 9, 'c'), chat, notice('b', 2, 'b'), notice('a', 1, 'a')];
  for (const list of [newestFirst, newestFirst.toReversed()]) {
    const joined = joinNotifications(list);
    const order = list === newestFirst ? ['chat', 'a'] : ['a', 'chat'];
    expect(joined.map((m) => m.id)).toEqual(order);
    const names = joined.find((m) => m.id === 'a')?.deliveries.map((d) => d.name);
    expect(names?.toSorted()).toEqual(['a', 'b', 'c']);
  }
});

describe('PGE-09 a message of a job', () => {
  const runs = [{ job: 'codex-job-1' }];
  const asks = 'It asks:\n\nnpm test\n\nAnswer by message_subagent with job "codex-job-1".';
  const ended = 'Done.\nIts work is on the branch bridge/x in /w.';
  it.each([
    ['codex-job-1', asks, 'It asks:\n\nnpm test', 'Answer by message_subagent with job "codex-job-1".'],
    ['codex-job-1', ended, 'Done.', 'Its work is on the branch bridge/x in /w.'],
    [
      'codex-job-1',
      `It printed:\nIts work is on the branch main, it says.\n${ended}`,
      'It printed:\nIts work is on the branch main, it says.\nDone.',
      'Its work is on the branch bridge/x in /w.',
    ],
    ['codex-job-1', 'Done.', 'Done.', ''],
    ['codex-web', asks, asks, ''], // a session may say so, too
  ])('of %s has what is meant for the agent apart', (from_name, body, own, forAgent) => {
    expect(textParts(message({ from_name, body }), runs)).toEqual([own, forAgent]);
  });
});
