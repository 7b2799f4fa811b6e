import { afterEach, describe, expect, test, vi } from 'vitest';
import { api, type Message, type Peer, type State, type StateAnswer } from './api';
import { complete, fetchState } from './state';

const message = (id: string, body = id) => ({ id, body }) as Message;
const peer = (id: string, unread = 0) => ({ id, unread }) as Peer;
const state = (over: Partial<State>) =>
  ({
    revision: 1,
    tag: 't-1',
    messages: [message('m-1'), message('m-2')],
    peers: [peer('p-1')],
    ...over,
  }) as State;
const answer = (over: Partial<StateAnswer>) =>
  ({ ...state({ revision: 2, tag: 't-2' }), ...over }) as StateAnswer;

describe('PGE-12: the state is fetched as its changes', () => {
  const cases: { title: string; known: State | null; answer: StateAnswer; want: Partial<State> | null }[] = [
    {
      title: 'a whole answer is the state',
      known: state({}),
      answer: answer({ messages: [message('m-3')], peers: [] }),
      want: { messages: [message('m-3')], peers: [] },
    },
    {
      title: 'ids are the items that are known',
      known: state({}),
      answer: answer({ messages: [message('m-3'), 'm-1'], peers: ['p-1'] }),
      want: { messages: [message('m-3'), message('m-1')], peers: [peer('p-1')] },
    },
    {
      title: 'an item that changed replaces the known one',
      known: state({}),
      answer: answer({ messages: ['m-1', message('m-2', 'read')], peers: [peer('p-1', 3)] }),
      want: { messages: [message('m-1'), message('m-2', 'read')], peers: [peer('p-1', 3)] },
    },
    { title: 'an unknown message', known: state({}), answer: answer({ messages: ['m-9'] }), want: null },
    { title: 'an unknown session', known: state({}), answer: answer({ peers: ['p-9'] }), want: null },
    { title: 'an id without a known state', known: null, answer: answer({ peers: ['p-1'] }), want: null },
  ];
  test.each(cases)('$title', ({ known, answer, want }) => {
    const result = complete(known, answer);
    if (want === null) expect(result).toBeNull();
    else expect(result).toMatchObject({ revision: 2, tag: 't-2', ...want });
  });
});

describe('PGE-12: what is asked for', () => {
  afterEach(() => vi.restoreAllMocks());
  const asked = (...answers: StateAnswer[]) => {
    const spy = vi.spyOn(api, 'state');
    for (const each of answers) spy.mockResolvedValueOnce(each);
    return spy;
  };

  test('the first state whole, the next ones by the tag of the one before', async () => {
    const spy = asked(answer({ tag: 't-1' }), answer({ messages: ['m-1', 'm-2'], peers: ['p-1'] }));
    const first = await fetchState(null);
    const next = await fetchState(first);
    expect(spy.mock.calls).toEqual([[''], ['t-1']]);
    expect(next.messages).toBe(first.messages); // nothing of them is drawn again
    expect(next.peers).toBe(first.peers);
  });
  test('the whole one if an id is not known', async () => {
    const spy = asked(answer({ messages: ['m-9'] }), answer({ messages: [message('m-9')] }));
    expect((await fetchState(state({}))).messages).toEqual([message('m-9')]);
    expect(spy.mock.calls).toEqual([['t-1'], ['']]);
  });
  test('the whole one if the known one has no tag', async () => {
    const spy = asked(answer({}));
    await fetchState(state({ tag: '' }));
    expect(spy.mock.calls).toEqual([['']]);
  });
});
