// What the page says about decisions, without markup.

import type { Decision, Message, Scope } from '../../lib/api';
import { projectName } from '../../lib/path';

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
      .sort((a, b) => a.title.localeCompare(b.title) || a.folder.localeCompare(b.folder)),
    { title: 'Single sessions', folder: '', decisions: sessions },
  ];
  return groups.filter((group) => group.decisions.length > 0);
}

/** The message that told the sessions of a revision, where it is among those given. */
export function notification(decision: Decision, messages: Message[]): Message | undefined {
  return messages.find((m) => m.kind === 'decision' && m.conversation_id === `decision-${decision.id}`);
}
