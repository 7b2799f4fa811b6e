// What the page says about sessions, without markup.

import type { Child, Message, Peer } from '../../lib/api';
import { projectName } from '../../lib/path';
import { byName } from '../../lib/text';

/** The live sessions by project folder, both in alphabetical order. */
export function byProject(peers: Peer[]): { project: string; folder: string; peers: Peer[] }[] {
  const groups = new Map<string, Peer[]>();
  for (const peer of peers) groups.set(peer.cwd, [...(groups.get(peer.cwd) ?? []), peer]);
  return [...groups]
    .map(([folder, members]) => ({
      project: projectName(folder),
      folder,
      peers: members.toSorted((a, b) => byName(a.name, b.name)),
    }))
    .sort((a, b) => byName(a.project, b.project) || byName(a.folder, b.folder));
}

/** Whether the wake policy lets mail to exactly this session start a turn of an idle one. */
function mayWake(peer: Peer): boolean {
  return peer.autoWake || peer.wakeOnDirect;
}

/** Why an idle session waits for its own next turn, '' where a wake may begin one. */
function noWake(peer: Peer): string {
  if (peer.agent === 'antigravity') return 'an idle antigravity can not be woken';
  if (!mayWake(peer)) return 'waking is off for this session';
  if (queueFailed(peer)) return 'it could not be woken last time';
  return peer.wake === 'none' ? 'no wake hook waits now' : '';
}

/** True where codex's queue took nothing last time; the detail says why. */
function queueFailed(peer: Peer): boolean {
  return peer.wake === 'failed';
}

/** How the owner's words reach this session, in one sentence. */
export function transportSentence(peer: Peer): string {
  if (peer.transport === 'mod')
    return peer.state === 'busy'
      ? 'Its mod enters it as a prompt of yours when its turn has ended; the running turn is not interrupted.'
      : 'Its mod enters it as a prompt of yours.';
  if (peer.agent !== 'codex') return mailSentence(peer);
  if (peer.sessionId === null) return 'Waits in its inbox: codex has not told its thread yet.';
  if (peer.transport === 'tools only')
    return 'Goes to codex’s queue; if codex does not take it, it waits in the inbox until the session looks there.';
  if (peer.state === 'busy')
    return 'Goes to codex’s queue, read when it is idle; the running turn is not interrupted.';
  return queueFailed(peer)
    ? 'Goes to codex’s queue; if that fails as it did last time, it waits as mail for the next turn.'
    : peer.wake === 'slow'
      ? 'Goes to codex’s queue, read within 10 seconds: codex looks there that seldom without its background server.'
      : 'Goes to codex’s queue, read at once.';
}

/** How mail reaches this session, in one sentence. */
export function mailSentence(peer: Peer): string {
  if (peer.transport === 'tools only')
    return 'Waits in its inbox until it looks there: no hook has reported from it yet.';
  const busy = peer.state === 'busy';
  const why = busy ? '' : noWake(peer);
  if (why !== '') return `Read at its next turn; ${why}.`;
  switch (peer.transport) {
    case 'channel':
      return busy
        ? 'Goes to its channel, read at its next step; the running turn is not interrupted.'
        : 'Goes to its channel, which starts a turn with it.';
    case 'plugin':
      return busy
        ? 'Its plugin stores it for the next step; the running turn is not interrupted.'
        : 'Its plugin starts a turn with it.';
    case 'hooks':
    case 'mod': // a note to a parent
      if (busy) return 'Its hooks hand it over at the next safe step; the running turn is not interrupted.';
      return peer.agent === 'claude'
        ? 'A wake hook starts a turn with it, of which claude tells its model that it is no user input; or its next turn shows it.'
        : 'A wake starts a turn with it, or its next turn shows it.';
    default:
      return `Goes by ${peer.transport}, read at its next ${busy ? 'step' : 'turn'}.`;
  }
}

/** Which mail may start a turn of this session while it is idle, in words. */
export function wakeWords(peer: Peer): string {
  if (peer.agent === 'antigravity') return 'none: an idle antigravity reads at its next turn';
  if (peer.autoWake) return 'any mail that may wake; auto-wake is on';
  return peer.wakeOnDirect
    ? 'only mail to exactly its name or id; auto-wake is off'
    : 'none; it reads at its next turn';
}

/** What keeps mail from its best way here, and what to do about it; null where nothing does. */
export function mailProblem(peer: Peer): { what: string; detail: string } | null {
  if (peer.transport === 'tools only') return { what: 'Only its inbox is open.', detail: peer.detail };
  if (queueFailed(peer)) return { what: 'It could not be woken.', detail: peer.detail };
  return peer.problem === '' ? null : { what: 'Something may not work.', detail: peer.detail };
}

/** Whether the owner may write to a native child itself. */
export function takesDirect(agent: string): boolean {
  return agent === 'codex';
}

/** What the owner can not do with a native child, in a few words. */
export function shortLimitation(agent: string): string {
  return takesDirect(agent) ? 'direct input where codex takes it' : 'only through its parent';
}

/** What the owner can not do with a native child of this session. */
export function limitation(peer: Peer): string {
  return takesDirect(peer.agent)
    ? `codex takes words for a child only while its background server runs both; it reads them after its turn. Where codex takes none, a note to ${peer.name} carries them.`
    : `A native child of ${peer.agent} takes no direct input. A note to ${peer.name} names it and carries your words; what ${peer.name} does with them is its own turn’s matter.`;
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
