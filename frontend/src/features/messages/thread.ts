// The thread of a message and whom it can be answered to, without markup.

import type { Message, Run } from '../../lib/api';
import { href } from '../../lib/route';

export interface ThreadLine {
  message: Message;
  /** How many messages it is below the first one of its thread. */
  depth: number;
}

/** So deep a thread is indented; what is deeper stands under it. */
const DEEPEST = 6;

/**
 * Returns the messages of one conversation as they answer each other: each after the message that it
 * answers, the oldest first. One whose parent is not known begins at the edge.
 */
export function threadOf(message: Message, known: Message[]): ThreadLine[] {
  const all = new Map([...known, message].map((m) => [m.id, m]));
  const members = [...all.values()]
    .filter((m) => m.conversation_id === message.conversation_id)
    .sort((a, b) => a.created_at - b.created_at || a.id.localeCompare(b.id));
  const ids = new Set(members.map((m) => m.id));
  const lines: ThreadLine[] = [];
  const seen = new Set<string>();
  const add = (message: Message, depth: number) => {
    if (seen.has(message.id)) return; // two that answer each other cannot be, but must not hang the page
    seen.add(message.id);
    lines.push({ message, depth: Math.min(depth, DEEPEST) });
    for (const other of members) if (other.reply_to === message.id) add(other, depth + 1);
  };
  for (const message of members) if (message.reply_to === null || !ids.has(message.reply_to)) add(message, 0);
  return lines;
}

/** Returns the session that a reply goes to: the sender, or whom the owner wrote to; '' where there is none. */
export function replyTarget(message: Message, runs: Run[]): string {
  const name =
    message.from_agent === 'owner'
      ? message.deliveries.length === 1
        ? (message.deliveries[0]?.name ?? '')
        : ''
      : message.from_name;
  return name.includes('/') || runs.some((run) => run.job === name) ? '' : name;
}

/** Returns the address of a sender or a recipient: its session, or its job; '' where it has no page. */
export function whereIs(name: string, agent: string, runs: Run[]): string {
  if (agent === 'owner' || name === '' || name.includes('/')) return '';
  return runs.some((run) => run.job === name)
    ? href({ page: 'run', job: name, tab: '' })
    : href({ page: 'session', name });
}
