// What the page says about sessions, without markup.

import type { Child, Message, Peer } from '../../lib/api';
import { projectName } from '../../lib/path';
import { byName } from '../../lib/text';

/** The live sessions by project folder, both in alphabetical order. */
export function byProject<P extends Pick<Peer, 'cwd' | 'name'>>(
  peers: P[],
): { project: string; folder: string; peers: P[] }[] {
  const groups = new Map<string, P[]>();
  for (const peer of peers) groups.set(peer.cwd, [...(groups.get(peer.cwd) ?? []), peer]);
  return [...groups]
    .map(([folder, members]) => ({
      project: projectName(folder),
      folder,
      peers: members.toSorted((a, b) => byName(a.name, b.name)),
    }))
    .sort((a, b) => byName(a.project, b.project) || byName(a.folder, b.folder));
}

/** Returns the state of a session as the page shows it. */
export const shownState = (peer: Peer): 'busy' | 'idle' | 'unknown' =>
  peer.unknownSince > 0 ? 'unknown' : peer.state;

/** With more sessions the menu folds the idle ones and has a filter. */
export const CROWD = 12;

/**
 * Returns the members of one project as the menu shows them: those that wait for the owner, then
 * those at work, then the others by name. In a crowd `idle` are the folded ones: not at work,
 * nothing unread, and not the one that is open.
 */
export function inMenu(
  peers: Peer[],
  { crowd, waits, open }: { crowd: boolean; waits: (name: string) => boolean; open: string },
) {
  const works = (p: Peer) => p.state === 'busy' || p.children.some((c) => c.state !== 'done');
  const sorted = peers.toSorted(
    (a, b) =>
      Number(waits(b.name)) - Number(waits(a.name)) ||
      Number(works(b)) - Number(works(a)) ||
      byName(a.name, b.name),
  );
  const shown = (p: Peer) => !crowd || waits(p.name) || works(p) || p.unread !== 0 || p.name === open;
  return { shown: sorted.filter(shown), idle: sorted.filter((p) => !shown(p)) };
}

/** Up to so many sessions are all told of; of more the others are folded together. */
const FEW = 8;
/** At most so many that are not quiet; a busy one is always told of. */
const MOST = 12;
const HOUR = 3_600_000;

/**
 * Who is worth a row of their own, those that wait for the owner and those at work first, and
 * who is quiet: not at work,
 * nothing unread, and silent for an hour. `last` is what each said last, by its name.
 */
export function byAttention(
  peers: Peer[],
  last: Map<string, Message>,
  now: number,
  waits: (name: string) => boolean = () => false,
) {
  const spoke = (p: Peer) => last.get(p.name)?.created_at ?? 0;
  const works = (p: Peer) => p.state === 'busy' || p.children.some((c) => c.state !== 'done');
  const sorted = peers.toSorted(
    (a, b) =>
      Number(waits(b.name)) - Number(waits(a.name)) ||
      Number(works(b)) - Number(works(a)) ||
      spoke(b) - spoke(a) ||
      byName(a.name, b.name),
  );
  if (peers.length <= FEW) return { awake: sorted, quiet: [] };
  const awake = sorted.filter(
    (p, i) => waits(p.name) || works(p) || (i < MOST && (p.unread !== 0 || now - spoke(p) < HOUR)),
  );
  return { awake, quiet: sorted.filter((p) => !awake.includes(p)).sort((a, b) => byName(a.name, b.name)) };
}

/** The children in their order of interest: those at work, then the others, the newest first. */
export function byInterest(children: Child[]): { working: Child[]; ended: Child[] } {
  const newestFirst = children.toReversed();
  return {
    working: newestFirst.filter((c) => c.state !== 'done'),
    ended: newestFirst.filter((c) => c.state === 'done'),
  };
}

/** What a child is called, also once it is not in the list any more. */
export function childTitle(peers: Peer[], name: string, id: string): string {
  const parent = peers.find((p) => p.name === name);
  return parent?.children.find((c) => c.id === id)?.title ?? `native child ${id}`;
}

/** The id of the native child that the owner's words were sent to directly, '' for any other message. */
export function directChild(message: Message): string {
  return / \(native child ([^)]*)\)$/.exec(message.to_target)?.[1] ?? '';
}

/** True for the owner's note to the parent about this child. */
export function isNoteAbout(message: Message, child: string): boolean {
  const [first = ''] = message.body.split('\n', 1);
  return (
    message.kind === 'owner' &&
    first.startsWith('A note about your native child ') &&
    first.endsWith(` (${child}):`)
  );
}
