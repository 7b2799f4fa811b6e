import { afterEach, describe, expect, it, vi } from 'vitest';
import { api, Failed, Unreachable, type ChatDelivery } from '../../lib/api';
import { BODY_MAX, bodyProblem, canSend, resultStatus, sendStatus, type Status } from './chat';
import { Chat, chatOf } from './chats.svelte';

const queued: Status = { outcome: 'queued', words: 'Waits.', transport: 'bridge', receipt: 'r-1' };

afterEach(() => vi.restoreAllMocks());

describe('CHT-17 drafts and status per chat', () => {
  it('survive switching chats', () => {
    chatOf('session:a').draft = 'half a thought';
    chatOf('session:b').draft = 'another';
    expect(chatOf('session:a').draft).toBe('half a thought');
    expect(chatOf('session:a').status).toBeNull();
  });

  it('survive a reload, until they are sent', async () => {
    const chat = chatOf('session:f');
    chat.draft = 'half a thought';
    expect(new Chat('session:f').draft).toBe('half a thought');
    expect(new Chat('session:g').draft).toBe('');
    await chat.send(() => Promise.resolve(queued));
    expect(new Chat('session:f').draft).toBe('');
  });

  it('clears the draft only once the server has it', async () => {
    const chat = chatOf('session:c');
    chat.draft = 'hello';
    await chat.send(() => Promise.reject(new Error('Bridge does not answer.')));
    expect([chat.draft, chat.status?.outcome, chat.status?.words]).toEqual([
      'hello',
      'failed',
      'Bridge does not answer.',
    ]);
    expect(chat.sent).toEqual([]);
    await chat.send(() => Promise.resolve(queued));
    expect([chat.draft, chat.status, chat.sending]).toEqual(['', queued, false]);
    expect(chat.sent).toMatchObject([{ body: 'hello', status: queued }]);
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
    expect(chat.status?.outcome).toBe('not-supported');
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

describe('CHT-02 the answer is shown as it is', () => {
  it.each([
    ['queued', 'Stored; web reads it when it is back.', 'Stored; web reads it when it is back.'],
    ['queued', "It goes to codex's queue.", "It goes to codex's queue."],
    [
      'unconfirmed',
      'Unconfirmed: codex did not answer in 10s. It is not sent again by itself.',
      'codex did not answer in 10s. It is not sent again by itself.',
    ],
    ['not-supported', 'A native child takes no direct input.', 'A native child takes no direct input.'],
    ['delivered', '', ''],
  ] as const)('%s: %s', (state, detail, words) => {
    expect(resultStatus({ state, transport: 'bridge', receipt: 'r-1', detail })).toEqual({
      outcome: state,
      words,
      transport: 'bridge',
      receipt: 'r-1',
    });
  });

  it('counts those who are away', () => {
    const recipients = [
      { name: 'a', online: true, wake: true },
      { name: 'b', online: false, wake: false },
    ];
    expect(sendStatus({ id: 'm', conversationId: 'c', recipients }).words).toBe(
      'stored for 2 sessions; a wake was asked for 1; 1 not connected.',
    );
  });
});

describe('CHT-09 a receipt is followed', () => {
  const answer = (state: ChatDelivery['state']) =>
    vi
      .spyOn(api, 'chatDelivery')
      .mockResolvedValue({ id: 'r-1', state, transport: 'bridge', updatedAt: Date.now() });
  const chatWith = (status: Status) => {
    const chat = chatOf(`session:${Math.random()}`);
    chat.status = status;
    return chat;
  };

  it('until it was read, and not asked for again', async () => {
    const chat = chatWith(queued);
    const asked = answer('queued');
    await chat.follow();
    expect(chat.status).toBe(queued);
    answer('delivered');
    await chat.follow();
    expect(chat.status).toMatchObject({ outcome: 'delivered', receipt: null });
    expect(chat.status?.words).toMatch(/^read \d\d:\d\d\.$/);
    await chat.follow();
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('from unclear to stored, and from stored to lost', async () => {
    const chat = chatWith({ ...queued, outcome: 'unconfirmed' });
    answer('queued');
    await chat.follow();
    expect(chat.status).toMatchObject({ outcome: 'queued', receipt: 'r-1' });
    answer('unconfirmed');
    await chat.follow();
    expect(chat.status).toMatchObject({ outcome: 'unconfirmed', receipt: 'r-1' });
  });

  it('as long as the dashboard that gave it lives', async () => {
    const chat = chatWith(queued);
    const asked = vi.spyOn(api, 'chatDelivery').mockRejectedValue(new Unreachable('gone'));
    await chat.follow();
    expect(chat.status).toBe(queued);
    asked.mockRejectedValue(new Failed('this dashboard gave no such receipt'));
    await chat.follow();
    expect(chat.status).toEqual({ ...queued, receipt: null });
  });

  it('never over the status of a newer message', async () => {
    const chat = chatWith(queued);
    answer('delivered');
    const following = chat.follow();
    chat.status = null;
    await following;
    expect(chat.status).toBeNull();
  });
});
