// Numbers worth a glance, without markup: only what Bridge knows itself.

import type { AgentUsage, Hour, Run, SizePoint } from '../../lib/api';
import { byName, bytes } from '../../lib/text';
import { clock } from '../../lib/time';
import { isNear, isOver, resetWords } from '../runs/offers';

/** A line over the hours, from zero at the lower edge; '' without hours. */
export function spark(values: number[], width: number, height: number): string {
  if (values.length < 2) return '';
  const most = Math.max(1, ...values);
  const step = width / (values.length - 1);
  return values
    .map(
      (n, i) => `${i === 0 ? 'M' : 'L'}${(i * step).toFixed(1)} ${(height - (n / most) * height).toFixed(1)}`,
    )
    .join('');
}

/** The hours with the newest count of the last one's messages, which the whole page shows; null where that is not known. */
export function withLastHour(hours: Hour[], messages: number | null): Hour[] {
  const last = hours.at(-1);
  if (messages === null) return hours;
  return last === undefined ? [] : [...hours.slice(0, -1), { ...last, messages }];
}

/** Both in words: the last hour, the day, and its busiest hour. */
export function hoursWords(hours: Hour[], of: 'messages' | 'wakes'): string {
  const all = hours.map((h) => h[of]);
  const sum = all.reduce((a, b) => a + b, 0);
  return `${sum} in 24 hours, at most ${Math.max(0, ...all)} in one, ${all.at(-1) ?? 0} in the last`;
}

export interface Spent {
  agent: string;
  jobs: number;
  tokens: number;
  costUsd: number;
}

/** What the jobs that began today have spent, by kind; a job counts with all that it spent. */
export function spentToday(runs: Run[], now: number): Spent[] {
  const today = new Date(now).setHours(0, 0, 0, 0);
  const kinds = new Map<string, Spent>();
  for (const run of runs) {
    if (run.startedAt === null || run.startedAt < today) continue;
    const known = kinds.get(run.agent) ?? { agent: run.agent, jobs: 0, tokens: 0, costUsd: 0 };
    kinds.set(run.agent, {
      ...known,
      jobs: known.jobs + 1,
      tokens: known.tokens + run.tokens,
      costUsd: known.costUsd + run.costUsd,
    });
  }
  return [...kinds.values()].sort((a, b) => byName(a.agent, b.agent));
}

export interface Used {
  agent: string;
  /** "five hour 42 %, resets 16:00" */
  words: string;
  near: boolean;
  /** All that was told of it, and when. */
  title: string;
}

const limitName = (name: string) => name.replaceAll('_', ' ');

/** Of each agent that told of its limits the one that is nearest; one that was reset since says nothing any more. */
export function limitsUsed(told: AgentUsage[], now: number): Used[] {
  return told
    .flatMap((usage): Used[] => {
      const limits = usage.limits
        .filter((limit) => !isOver(limit, now))
        .sort((a, b) => b.usedPercent - a.usedPercent);
      const [first] = limits;
      if (first === undefined) return [];
      const each = limits.map((limit) =>
        [`${limitName(limit.name)} ${Math.round(limit.usedPercent)} %`, resetWords(limit, now)]
          .filter((words) => words !== '')
          .join(', '),
      );
      const title = `${each.join('; ')} (as of ${clock(usage.asOf, now)})`;
      return [{ agent: usage.agent, words: each[0] ?? '', near: isNear(first, now), title }];
    })
    .sort((a, b) => byName(a.agent, b.agent));
}

/** What the home took when it was measured last, and what took most of it; null where it never was. */
export function newestSize(points: SizePoint[], now: number): { words: string; title: string } | null {
  const newest = points.toSorted((a, b) => a.at - b.at).at(-1);
  if (newest === undefined) return null;
  const parts = Object.entries(newest.parts)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 3)
    .map(([name, size]) => `${name} ${bytes(size)}`);
  return {
    words: bytes(newest.total),
    title: [...parts, `measured ${clock(newest.at, now)}`].join(', '),
  };
}
