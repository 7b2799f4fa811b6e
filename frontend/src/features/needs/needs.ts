// What needs the owner, judged from what the page knows. Nothing here guesses:
// each item names what is true and what can be done.

import type { Message, State, StorageSummary } from '../../lib/api';
import type { Phase } from '../../lib/live';
import type { Place } from '../../lib/route';
import { count } from '../../lib/text';
import { age } from '../../lib/time';

/** Mail that nobody picked up for this long is worth the owner's glance, in ms. */
export const UNREAD_TOO_LONG = 15 * 60_000;

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
  return [...needs, ...damaged(state.storage), ...unreadTooLong(state, now), ...expired(state.messages)];
}

const brokerOffline: Need = {
  id: 'broker-offline',
  sort: 'offline',
  title: 'The broker is offline',
  detail: 'Sessions can not send or receive. It starts with the next session, or by bridge open.',
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

function unreadTooLong(state: State, now: number): Need[] {
  const waiting = new Map<string, Message[]>();
  for (const message of state.messages) {
    // Decisions wake nobody and wait for the next turn by design.
    if (message.kind === 'decision' || now - message.created_at < UNREAD_TOO_LONG) continue;
    for (const delivery of message.deliveries) {
      if (delivery.stage !== 'durable' && delivery.stage !== 'woken') continue;
      waiting.set(delivery.name, [...(waiting.get(delivery.name) ?? []), message]);
    }
  }
  return [...waiting].map(([name, messages]) => unreadNeed(name, messages, state, now));
}

function unreadNeed(name: string, messages: Message[], state: State, now: number): Need {
  const oldest = messages.reduce((a, b) => (a.created_at <= b.created_at ? a : b));
  const peer = state.peers.find((p) => p.name === name);
  const why =
    peer === undefined
      ? 'It is not connected; the mail waits for it.'
      : peer.state === 'busy'
        ? 'It is busy and has not reached a step at which it takes mail.'
        : 'It is idle; give it a turn, and it reads.';
  return {
    id: `unread:${name}:${oldest.id}`,
    sort: 'unread',
    title: `${name} has not read ${count(messages.length, 'message')} for ${age(oldest.created_at, now)}`,
    detail: why,
    place: { page: 'session', name },
    message: oldest.id,
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
