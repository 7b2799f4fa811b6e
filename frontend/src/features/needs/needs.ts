// What needs the owner, judged from what the page knows. Nothing here guesses:
// each item names what is true and what can be done.

import type { Message, Overdue, Peer, State, StorageSummary } from '../../lib/api';
import type { Phase } from '../../lib/live';
import type { Place } from '../../lib/route';
import { count } from '../../lib/text';
import { age } from '../../lib/time';

export interface Need {
  /** Stable, so that "seen" stays seen. */
  id: string;
  sort: 'offline' | 'storage' | 'unread' | 'expired';
  title: string;
  detail: string;
  /** Where to look, or null. */
  place: Place | null;
  /** The message to look at, or null. */
  message: string | null;
  /** The owner may put it away: it is news, not a state. */
  dismissible: boolean;
}

/** Everything that needs the owner, the worst first. */
export function findNeeds(state: State | null, phase: Phase, now: number): Need[] {
  const needs: Need[] = [];
  if (state?.broker.state === 'offline' && phase === 'offline') needs.push(brokerOffline);
  if (state === null) return needs;
  return [
    ...needs,
    ...damaged(state.storage),
    ...state.overdue.map((o) => unread(o, state.peers, now)),
    ...expired(state.messages),
  ];
}

const brokerOffline: Need = {
  id: 'broker-offline',
  sort: 'offline',
  title: 'The broker is offline',
  detail: 'Sessions cannot send or receive. It starts with the next session, or by bridge open.',
  place: null,
  message: null,
  dismissible: false,
};

function damaged({ errors, warnings }: StorageSummary): Need[] {
  if (errors === 0) return [];
  return [
    {
      id: `storage:${errors}`,
      sort: 'storage',
      title: `The storage has ${count(errors, 'error')}`,
      detail: `${warnings === 0 ? '' : `And ${count(warnings, 'warning')}. `}Storage says what is wrong and what to do.`,
      place: { page: 'storage' },
      message: null,
      dismissible: false,
    },
  ];
}

/** What is unread for too long is the server's to say. */
function unread({ id, name, messages, oldest, since }: Overdue, peers: Peer[], now: number): Need {
  const peer = peers.find((p) => p.id === id);
  const why =
    peer === undefined
      ? 'It is not connected; the mail waits for it.'
      : peer.state === 'busy'
        ? 'It is busy and has not reached a step at which it takes mail.'
        : 'It is idle; give it a turn, and it reads.';
  return {
    id: `unread:${name}:${oldest}`,
    sort: 'unread',
    title: `${name} has not read ${count(messages, 'message')} for ${age(since, now)}`,
    detail: why,
    place: { page: 'session', name },
    message: oldest,
    dismissible: true,
  };
}

function expired(messages: Message[]): Need[] {
  return messages.flatMap((message) =>
    message.deliveries
      .filter((delivery) => delivery.stage === 'expired')
      .map((delivery) => ({
        id: `expired:${message.id}:${delivery.id}`,
        sort: 'expired' as const,
        title: `A message from ${message.from_name} to ${delivery.name} expired unread`,
        detail: delivery.note === '' ? 'It is kept in the archive and was not handed over.' : delivery.note,
        place: { page: 'session' as const, name: delivery.name },
        message: message.id,
        dismissible: true,
      })),
  );
}
