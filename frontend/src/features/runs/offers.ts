// What the agents' own programs tell of their limits and models, without markup.

import type { AgentModels, AgentUsage } from '../../lib/api';
import { byName } from '../../lib/text';
import { clock } from '../../lib/time';

type Limit = AgentUsage['limits'][number];

/** From how much on a limit is near, in percent. */
const NEAR = 90;

export const isNear = (limit: Limit, now: number) => limit.usedPercent >= NEAR && !isOver(limit, now);

/** It was reset since its agent was asked, so that what it told of it counts no more. */
export const isOver = ({ resetsAt }: Limit, now: number) => resetsAt !== null && resetsAt <= now;

/** When a limit is reset, '' where its agent does not tell. */
export function resetWords(limit: Limit, now: number): string {
  if (limit.resetsAt === null) return '';
  return `${isOver(limit, now) ? 'was reset' : 'resets'} ${clock(limit.resetsAt, now)}`;
}

/** The models to choose from, each once, and what is to be known of it beside its id. */
export function modelChoices(told: AgentModels[]): { id: string; about: string }[] {
  const each = new Map(told.flatMap((t) => t.models).map((m) => [m.id, m]));
  return [...each.values()].map((m) => ({
    id: m.id,
    about: [m.name === m.id ? '' : m.name, m.default ? 'its own choice' : '']
      .filter((w) => w !== '')
      .join(', '),
  }));
}

/** The efforts that a model takes; those of all where that one is not known. */
export function effortChoices(told: AgentModels[], model: string): string[] {
  const all = told.flatMap((t) => t.models);
  const meant = all.filter((m) => (model === '' ? m.default : m.id === model));
  const efforts = (meant.length > 0 ? meant : all).flatMap((m) => m.efforts);
  return [...new Set(efforts)];
}

/** The agents by name, those that tell of a limit first. */
export function inOrder(told: AgentUsage[]): AgentUsage[] {
  const silent = (t: AgentUsage) => Number(t.limits.length === 0);
  return [...told].sort((a, b) => silent(a) - silent(b) || byName(a.agent, b.agent));
}
