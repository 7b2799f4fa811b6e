// What the owner fills in to pin a decision, without markup.

import type { Decision, Peer, Scope } from '../../lib/api';
import { byName } from '../../lib/text';

export interface Draft {
  topic: string;
  text: string;
  for: 'all' | 'project' | 'sessions';
  project: string;
  sessions: string[];
}

type Member = Pick<Peer, 'id' | 'name' | 'cwd' | 'sessionId'>;

/** The folders that a decision can be for: those of sessions and of other decisions. */
export function foldersOf(sessions: Member[], decisions: Decision[]): string[] {
  const folders = new Set(sessions.map((s) => s.cwd).filter((folder) => folder !== ''));
  for (const { scope } of decisions) if (scope !== 'all' && 'project' in scope) folders.add(scope.project);
  return [...folders].sort(byName);
}

/** The draft of a revision, or of a new decision. */
export function draftOf(revised: Decision | null, folders: string[]): Draft {
  const draft: Draft = { topic: '', text: '', for: 'all', project: folders[0] ?? '', sessions: [] };
  if (revised === null) return draft;
  const { topic, text, scope } = revised;
  if (scope === 'all') return { ...draft, topic, text };
  if ('project' in scope) return { ...draft, topic, text, for: 'project', project: scope.project };
  return { ...draft, topic, text, for: 'sessions', sessions: [...scope.sessions] };
}

/** Whom the draft is for; null where nothing is chosen. */
export function scopeOf(draft: Draft): Scope | null {
  if (draft.for === 'all') return 'all';
  if (draft.for === 'project') return draft.project === '' ? null : { project: draft.project };
  return draft.sessions.length === 0 ? null : { sessions: [...draft.sessions] };
}

/** What has to be filled in first, in a sentence, or ''. */
export function problemOf(draft: Draft): string {
  if (draft.topic.trim() === '') return 'Give it a topic.';
  if (draft.text.trim() === '') return 'Write the decision.';
  return scopeOf(draft) === null ? 'Choose for whom it is.' : '';
}

/** How many of the connected sessions a decision is for. */
export function reached(scope: Scope | null, sessions: Member[]): number {
  if (scope === null) return 0;
  if (scope === 'all') return sessions.length;
  if ('project' in scope) return sessions.filter((s) => s.cwd === scope.project).length;
  return sessions.filter((s) =>
    [s.id, s.name, s.sessionId].some((word) => word !== null && scope.sessions.includes(word)),
  ).length;
}

/** The decisions that came from a paired PC. */
export const fromPC = (decisions: Decision[], pc: string): Decision[] =>
  decisions.filter((d) => d.author.name.toLowerCase().startsWith(`${pc.toLowerCase()}/`));
