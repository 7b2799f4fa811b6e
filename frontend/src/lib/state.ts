// The state, fetched as its changes: Bridge sends a message or session that the page has
// already as its id alone. With long messages the whole state is megabytes.

import { api, type State, type StateAnswer } from './api';
import { share } from './share';

/**
 * Returns the state that an answer stands for: each id in it is the item with that id of
 * `known`. It returns null if one is not in it.
 */
export function complete(known: State | null, answer: StateAnswer): State | null {
  const messages = items(known?.messages ?? [], answer.messages);
  const peers = items(known?.peers ?? [], answer.peers);
  return messages === null || peers === null ? null : { ...answer, messages, peers };
}

function items<T extends { id: string }>(known: T[], answer: (T | string)[]): T[] | null {
  const byId = new Map(known.map((item) => [item.id, item]));
  const list = [];
  for (const each of answer) {
    const item = typeof each === 'string' ? byId.get(each) : each;
    if (item === undefined) return null;
    list.push(item);
  }
  return list;
}

/** Fetches the state, which shares the parts that did not change with the one that is known. */
export async function fetchState(known: State | null): Promise<State> {
  const changes = known === null || known.tag === '' ? null : complete(known, await api.state(known.tag));
  const state = changes ?? complete(null, await api.state(''));
  if (state === null) throw new Error('Bridge sent a part of its state.');
  return share(known, state);
}
