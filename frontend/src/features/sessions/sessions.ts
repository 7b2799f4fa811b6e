// What the page says about sessions, without markup.

import type { Peer } from '../../lib/api';
import { projectName } from '../../lib/path';

/** The live sessions by project folder, both in alphabetical order. */
export function byProject(peers: Peer[]): { project: string; folder: string; peers: Peer[] }[] {
  const groups = new Map<string, Peer[]>();
  for (const peer of peers) groups.set(peer.cwd, [...(groups.get(peer.cwd) ?? []), peer]);
  return [...groups]
    .map(([folder, members]) => ({
      project: projectName(folder),
      folder,
      peers: members.toSorted((a, b) => a.name.localeCompare(b.name)),
    }))
    .sort((a, b) => a.project.localeCompare(b.project) || a.folder.localeCompare(b.folder));
}

/** Whether mail to exactly this session may start a turn of an idle one. */
export function canWake(peer: Peer): boolean {
  if (peer.agent === 'antigravity' || peer.transport === 'tools only') return false;
  return peer.autoWake || peer.wakeOnDirect;
}

const TRANSPORTS: Record<string, string> = {
  hooks: 'Handed over by its hooks',
  channel: 'Goes over its channel',
  plugin: 'Goes through its plugin',
  queue: 'Goes to its queue',
  'tools only': 'Waits in its inbox until it looks',
};

/** How a message from the composer will reach this session, in one sentence. */
export function transportSentence(peer: Peer): string {
  const way = TRANSPORTS[peer.transport] ?? `Goes by ${peer.transport}`;
  if (peer.transport === 'tools only') return `${way}; nothing can wake it.`;
  if (peer.state === 'busy') return `${way} at its next safe step; the running turn is never interrupted.`;
  if (canWake(peer)) return `${way}; it is idle and will be woken.`;
  return `${way}; it is idle and reads at its next turn.`;
}

/** What the owner can not do with a native child. */
export const CHILD_LIMITATION = 'Takes no messages from here; write to its parent.';
