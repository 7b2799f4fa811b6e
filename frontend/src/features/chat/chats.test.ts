import { describe, expect, it, vi } from 'vitest';
import { BODY_MAX, bodyProblem, canSend, resultStatus, sendStatus } from './chat';
import { chatOf } from './chats.svelte';

describe('CHT-17 drafts and status per chat', () => {
  it('survive switching chats', () => {
    chatOf('session:a').draft = 'half a thought';
    chatOf('session:b').draft = 'another';
    expect(chatOf('session:a').draft).toBe('half a thought');
    expect(chatOf('session:a').status).toBeNull();
  });

  it('clears the draft only once the server has it', async () => {
    const chat = chatOf('session:c');
    chat.draft = 'hello';
    await chat.send(() => Promise.reject(new Error('Bridge does not answer.')));
    expect([chat.draft, chat.status?.tone, chat.status?.words]).toEqual([
      'hello',
      'bad',
      'Not sent. Bridge does not answer.',
    ]);
    await chat.send(() => Promise.resolve({ tone: 'plain', words: 'Stored.', receipt: null }));
    expect([chat.draft, chat.status?.words, chat.sending]).toEqual(['', 'Stored.', false]);
  });

  it('keeps the draft of what was not supported', async () => {
    const chat = chatOf('session:d');
    chat.draft = 'to a child';
    await chat.send(() =>
      Promise.resolve(
        resultStatus({ state: 'not-supported', transport: 'parent', receipt: null, detail: '' }),
      ),
    );
    expect(chat.draft).toBe('to a child');
  });

  it('sends nothing twice and nothing empty', async () => {
    const chat = chatOf('session:e');
    const transmit = vi.fn(() => new Promise<never>(() => undefined));
    chat.draft = '  \n';
    void chat.send(transmit);
    expect(transmit).not.toHaveBeenCalled();
    chat.draft = 'x';
    void chat.send(transmit);
    void chat.send(transmit);
    expect(transmit).toHaveBeenCalledTimes(1);
  });
});

describe('what may be sent', () => {
  it.each([
    ['', false],
    ['   ', false],
    ['x', true],
    ['x'.repeat(BODY_MAX), true],
    ['😀'.repeat(BODY_MAX), true],
    ['x'.repeat(BODY_MAX + 1), false],
  ])('case %#', (text, want) => {
    expect(canSend(text)).toBe(want);
  });
  it('says how much is too much', () => {
    expect(bodyProblem('x'.repeat(BODY_MAX + 1200))).toBe('1,200 characters too long');
  });
});

describe('what became of it', () => {
  const result = (state: Parameters<typeof resultStatus>[0]['state']) =>
    resultStatus({ state, transport: 'bridge', receipt: 'r-1', detail: 'Why.' });
  it('is never called delivered when it is only queued', () => {
    expect(result('queued')).toEqual({ tone: 'plain', words: 'Stored. Why.', receipt: 'r-1' });
    expect(result('delivered').tone).toBe('good');
    expect(result('unconfirmed').words).toBe('Unconfirmed, and not sent again by itself. Why.');
    expect(result('not-supported')).toMatchObject({ tone: 'bad', words: 'Not sent. Why.' });
  });
  it('counts those who are away', () => {
    const recipients = [
      { name: 'a', online: true, wake: true },
      { name: 'b', online: false, wake: false },
    ];
    expect(sendStatus({ id: 'm', conversationId: 'c', recipients }).words).toBe(
      'Stored for 2 sessions; a wake was asked for 1; 1 not connected.',
    );
  });
});
