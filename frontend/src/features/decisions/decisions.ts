// What the page says about decisions, without markup.

import type { Decision, Decisions, Message, Scope, UnreadableDecision } from '../../lib/api';
import { projectName } from '../../lib/path';
import { byName } from '../../lib/text';
import { wasRead, words } from '../delivery/delivery';

/** Whom a decision holds for, in words. */
export function scopeWords(scope: Scope): string {
  if (scope === 'all') return 'everywhere';
  if ('project' in scope) return projectName(scope.project);
  return scope.sessions.join(', ');
}

/** The exact scope, for hovering and details. */
export function scopeTitle(scope: Scope): string {
  if (scope === 'all') return 'all sessions';
  return 'project' in scope ? `sessions in ${scope.project}` : `only ${scope.sessions.join(', ')}`;
}

/** Why nobody is told of a stored decision. */
export function unreadableWords(decision: UnreadableDecision): string {
  const words = `A decision on “${decision.topic}” (${decision.id}) is in force for nobody: ${decision.why}.`;
  return decision.newer ? `${words} A newer Bridge may have recorded it.` : words;
}

export interface Group {
  title: string;
  /** The folder behind the title, or ''. */
  folder: string;
  decisions: Decision[];
}

/** Current decisions: those that hold everywhere, then by project, then those for single sessions. */
export function groupDecisions(decisions: Decision[]): Group[] {
  const everywhere = decisions.filter((d) => d.scope === 'all');
  const sessions = decisions.filter((d) => d.scope !== 'all' && 'sessions' in d.scope);
  const projects = new Map<string, Decision[]>();
  for (const decision of decisions) {
    if (decision.scope === 'all' || !('project' in decision.scope)) continue;
    const { project } = decision.scope;
    projects.set(project, [...(projects.get(project) ?? []), decision]);
  }
  const groups: Group[] = [
    { title: 'Everywhere', folder: '', decisions: everywhere },
    ...[...projects]
      .map(([folder, members]) => ({ title: projectName(folder), folder, decisions: members }))
      .sort((a, b) => byName(a.title, b.title) || byName(a.folder, b.folder)),
    { title: 'Single sessions', folder: '', decisions: sessions },
  ];
  return groups.filter((group) => group.decisions.length > 0);
}

/** In which order decisions are listed. */
export type Order = 'newest' | 'scope';

/** Current decisions as one group without a title, newest first, or by scope. */
export function inOrder(decisions: Decision[], order: Order): Group[] {
  if (order === 'scope') return groupDecisions(decisions);
  const newest = [...decisions].sort((a, b) => b.createdAt - a.createdAt);
  return newest.length === 0 ? [] : [{ title: '', folder: '', decisions: newest }];
}

/** The message that told the sessions of a revision, where it is among those given. */
export function notification(decision: Decision, messages: Message[]): Message | undefined {
  return messages.find((m) => m.kind === 'decision' && m.conversation_id === `decision-${decision.id}`);
}

/** A session that was told of a revision. */
export interface Told {
  name: string;
  agent: string;
  read: boolean;
  /** It will never be read: the notice expired. */
  lost: boolean;
  /** How far it came, in words. */
  how: string;
}

/** What a revision is now, in a word. */
export function stateWords({ current, withdrawn }: Decision): string {
  if (withdrawn === true) return 'withdrawn';
  return current ? 'current' : 'superseded';
}

/** The revision that one replaced, where it is among those given. */
export const replacedBy = (decision: Decision, history: Decision[]) =>
  decision.supersedes === null ? undefined : history.find((d) => d.id === decision.supersedes);

/** The revisions that other PCs of a team made at the same time as this one. */
export const togetherWith = (decision: Decision, { decisions, atOnce = {} }: Decisions) =>
  decisions.filter((d) => atOnce[d.id] === decision.id || atOnce[decision.id] === d.id);

/** Who was told of a revision, each once and by name: a session that starts anew is told anew. */
export function toldBy(notice: Message | undefined, now: number): Told[] {
  const told = new Map<string, Told>();
  for (const delivery of notice?.deliveries ?? []) {
    const { name, agent, stage } = delivery;
    if (told.get(name)?.read === true) continue;
    const lost = stage === 'expired' || stage === 'refused';
    told.set(name, { name, agent, read: wasRead(delivery), lost, how: words(delivery, now) });
  }
  return [...told.values()].sort((a, b) => byName(a.name, b.name));
}

/**
 * What a notification tells people: the topic, and the decision as it was put.
 * The rest of its body is for the session that reads it. Null for any other message.
 */
export function pinned(message: Message): { topic: string; text: string } | null {
  if (message.kind !== 'decision') return null;
  const parts = /^Decision on "((?:[^"\\]|\\.)+)"[^\n]*:\n\n([^]+)\n\nThe tool `decisions` [^\n]*$/.exec(
    message.body,
  );
  const [, topic, text] = parts ?? [];
  if (topic === undefined || text === undefined) return null;
  return { topic: topic.replace(/\\(.)/g, '$1'), text };
}
