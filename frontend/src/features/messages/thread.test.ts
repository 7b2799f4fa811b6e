import { describe, expect, it } from 'vitest';
import type { Message, Run } from '../../lib/api';
import { replyTarget, threadOf, whereIs } from './thread';

const message = (id: string, at: number, reply_to: string | null = null, conversation = 'c'): Message =>
  ({
    id,
    created_at: at,
    reply_to,
    conversation_id: conversation,
    from_name: 'api',
    from_agent: 'claude',
    deliveries: [],
  }) as unknown as Message;

const runs = [{ job: 'codex-job-1' }] as Run[];

describe('PGE-09 the thread of a message', () => {
  const lines = (of: Message, known: Message[]) =>
    threadOf(of, known).map(({ message, depth }) => `${'>'.repeat(depth)}${message.id}`);

  it('puts each answer under what it answers, the oldest first', () => {
    const [a, b, c, d] = [
      message('a', 1),
      message('b', 2, 'a'),
      message('c', 3, 'a'),
      message('d', 4, 'b'),
    ] as const;
    expect(lines(c, [d, b, a, message('other', 2, null, 'x')])).toEqual(['a', '>b', '>>d', '>c']);
  });

  it('begins at the edge where the parent is not known, and ends for two that answer each other', () => {
    expect(lines(message('b', 2, 'gone'), [])).toEqual(['b']);
    expect(lines(message('x', 1, 'y'), [message('y', 2, 'x')])).toEqual([]);
  });
});

describe('PGE-09 who can be answered, and who has a page', () => {
  it.each([
    ['a session', { from_name: 'api', from_agent: 'claude' }, 'api'],
    ['a session of another PC', { from_name: 'laptop/api', from_agent: 'claude' }, ''],
    ['a job', { from_name: 'codex-job-1', from_agent: 'codex' }, ''],
    ['the owner to one', { from_name: 'you', from_agent: 'owner', deliveries: [{ name: 'web' }] }, 'web'],
    [
      'the owner to all',
      { from_name: 'you', from_agent: 'owner', deliveries: [{ name: 'a' }, { name: 'b' }] },
      '',
    ],
  ])('%s', (_, part, want) => {
    expect(replyTarget({ ...message('m', 1), ...part } as Message, runs)).toBe(want);
  });

  it.each([
    ['api', 'claude', '#/sessions/api'],
    ['codex-job-1', 'codex', '#/runs/codex-job-1'],
    ['you', 'owner', ''],
    ['laptop/api', 'claude', ''],
  ])('%s', (name, agent, want) => {
    expect(whereIs(name, agent, runs)).toBe(want);
  });
});
