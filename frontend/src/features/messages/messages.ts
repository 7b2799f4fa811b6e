// What the page says about messages, without markup.

import type { Message, Peer } from '../../lib/api';
import { projectName } from '../../lib/path';

export interface Filter {
  text: string;
  project: string;
  kind: string;
  person: string;
}

export const NO_FILTER: Filter = { text: '', project: '', kind: '', person: '' };

export function isFiltered(filter: Filter): boolean {
  return Object.values(filter).some((value) => value !== '');
}

interface Party {
  name: string;
  agent: string;
}

/** Sender and recipients; the owner's name is "you". */
export function parties(message: Message): Party[] {
  return [{ name: message.from_name, agent: message.from_agent }, ...message.deliveries];
}

/** Whom the message is for, as said when it was sent. */
export function audience(message: Message): string {
  if (message.to_target === '*') return `everyone (${message.deliveries.length})`;
  return message.deliveries.map((d) => d.name).join(', ') || message.recipients || message.to_target;
}

/** The messages that pass; the project of a session that left is unknown. */
export function filterMessages(messages: Message[], filter: Filter, peers: Peer[]): Message[] {
  const text = filter.text.trim().toLowerCase();
  const projects = new Map(peers.map((p) => [p.name, projectName(p.cwd)]));
  return messages.filter((message) => {
    const all = parties(message);
    if (filter.kind !== '' && !all.some((p) => p.agent === filter.kind)) return false;
    if (filter.person !== '' && !all.some((p) => p.name === filter.person)) return false;
    if (filter.project !== '' && !all.some((p) => projects.get(p.name) === filter.project)) return false;
    return text === '' || [message.body, ...all.map((p) => p.name)].join('\n').toLowerCase().includes(text);
  });
}

/** What the filters can choose from. */
export function choices(messages: Message[], peers: Peer[]) {
  const all = [...messages.flatMap(parties), ...peers];
  const sorted = (values: string[]) => [...new Set(values)].sort((a, b) => a.localeCompare(b));
  return {
    projects: sorted(peers.map((p) => projectName(p.cwd))),
    kinds: sorted(all.map((p) => p.agent)),
    people: sorted(all.map((p) => p.name)),
  };
}

/**
 * Newly fetched messages (any order) joined with those known; oldest first.
 * Where the fetched ones do not reach back to what is known, messages between
 * are missing, so the known ones are dropped rather than shown with a gap.
 */
export function mergeMessages(known: Message[], fetched: Message[], limit: number): Message[] {
  const ids = new Set(known.map((m) => m.id));
  const gap = fetched.length >= limit && !fetched.some((m) => ids.has(m.id));
  const all = new Map([...(gap ? [] : known), ...fetched].map((m) => [m.id, m]));
  return [...all.values()].sort((a, b) => a.created_at - b.created_at || a.id.localeCompare(b.id));
}
