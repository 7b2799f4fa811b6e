// What the page says about messages, without markup.

import type { Message, Peer, Run } from '../../lib/api';
import { projectName } from '../../lib/path';
import { byName } from '../../lib/text';

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

/**
 * A decision is stored as one notification for each session it concerns; people
 * see it as one message with several recipients. The order is kept.
 */
export function joinNotifications(messages: Message[]): Message[] {
  const groups = new Map<string, Message[]>();
  for (const message of messages) {
    if (message.kind !== 'decision') continue;
    groups.set(message.conversation_id, [...(groups.get(message.conversation_id) ?? []), message]);
  }
  return messages.flatMap((message) => {
    const group = groups.get(message.conversation_id);
    if (message.kind !== 'decision' || group === undefined) return [message];
    const oldest = group.reduce((a, b) => (b.created_at < a.created_at ? b : a));
    return message === oldest ? [{ ...message, deliveries: group.flatMap((m) => m.deliveries) }] : [];
  });
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
  const sorted = (values: string[]) => [...new Set(values)].sort(byName);
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

/** Begins what a job's message says to the agent that reads it, after what both read. */
const FOR_AGENT = /\n+(?=Answer by message_subagent with job |Its work is on the branch )/g;

/**
 * Returns a message's text in two parts: what the owner reads, and what a job tells the agent that
 * gets its message, or ''.
 */
export function textParts(message: Message, runs: Pick<Run, 'job'>[]): [string, string] {
  const { body } = message;
  // The job's own words can hold the same line: Bridge's stands last.
  const last = [...body.matchAll(FOR_AGENT)].at(-1)?.index ?? -1;
  const at = runs.some(({ job }) => job === message.from_name) ? last : -1;
  return at < 0 ? [body, ''] : [body.slice(0, at), body.slice(at).trimStart()];
}
