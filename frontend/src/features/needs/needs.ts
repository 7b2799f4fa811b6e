// What needs the owner, as the page shows it. What is in the list is the server's to decide.

import type { Need, NeedSort, Urgency } from '../../lib/api';
import type { Sign } from '../../ui/signs';
import { duration } from '../runs/runs';

/** What each sort is called, and its sign. */
export const SORTS: Record<NeedSort, { word: string; sign: Sign; bad?: true }> = {
  offline: { word: 'offline', sign: 'warn' },
  storage: { word: 'storage', sign: 'bad', bad: true },
  approval: { word: 'permission', sign: 'waiting' },
  question: { word: 'question', sign: 'waiting' },
  'job-asks': { word: 'job', sign: 'waiting' },
  'job-ended': { word: 'job', sign: 'bad', bad: true },
  'job-review': { word: 'review', sign: 'good' },
  exchange: { word: 'exchange', sign: 'waiting' },
  mail: { word: 'unread', sign: 'waiting' },
  expired: { word: 'expired', sign: 'bad', bad: true },
  agent: { word: 'agent', sign: 'warn' },
  routes: { word: 'agent', sign: 'warn' },
};

/** Those that are still there: what is over by itself is gone before the server says so. */
export const stillThere = (needs: Need[], now: number) =>
  needs.filter((n) => n.until === null || n.until > now);

/** What it is about: the approval's id, the question's. */
export const subject = (need: Need) => need.id.slice(need.id.indexOf(':') + 1);

/** "9 min 40 s left", '' where nothing ends by itself. */
export const leftWords = (need: Need, now: number) =>
  need.until === null ? '' : `${duration(Math.max(0, need.until - now))} left`;

/** The answer that is offered beside the way there. */
export const wayWord = (sort: NeedSort) =>
  isAnswered(sort) ? 'Answer' : sort === 'job-review' ? 'Review' : 'Look';

/** It is answered by a card, wherever its row is. */
export const isAnswered = (sort: NeedSort) => sort === 'approval' || sort === 'question';

/**
 * Returns the rows of a list that shows only the first `most`: those of the server's order. While a
 * card is open nothing that stands there moves, and new rows come after it; what was answered in an
 * open card stays, with what became of it, until that is closed.
 */
export function inPlace(before: Need[], open: Need[], opened: string[], most: number): Need[] {
  const first = open.slice(0, most);
  if (!before.some(({ id }) => opened.includes(id))) return first;
  const kept = before.flatMap((need) => {
    const now = open.find(({ id }) => id === need.id);
    if (now !== undefined) return [now];
    return opened.includes(need.id) ? [{ ...need, until: null }] : [];
  });
  return [...kept, ...first.filter(({ id }) => !kept.some((need) => need.id === id))];
}

/** The headings of the page's groups, the most urgent first. */
export const URGENCIES: { urgency: Urgency; heading: string }[] = [
  { urgency: 'now', heading: 'Waiting for you' },
  { urgency: 'next', heading: 'Your decision lets work continue' },
  { urgency: 'info', heading: 'Good to know' },
];

/** How many badges count: what is more than news. */
export const pressing = (needs: Need[]) => needs.filter((n) => n.urgency !== 'info').length;

/** The sessions that wait for the owner. */
export const waitingSessions = (needs: Need[]) => new Set(needs.map((n) => n.by).filter((by) => by !== ''));

/** One thing on the page of needs, since when it is there, and when it ends by itself. */
export interface Place {
  key: string;
  since: number;
  until?: number | null;
}

/**
 * The order of the page: what ends first, then the oldest. What has its place keeps it while
 * others come.
 */
export function inOrder(before: string[], present: Place[]): string[] {
  const end = (place: Place) => place.until ?? Infinity;
  const fresh = present
    .filter((place) => !before.includes(place.key))
    .toSorted((a, b) => (end(a) === end(b) ? 0 : end(a) - end(b)) || a.since - b.since);
  return [...before, ...new Set(fresh.map((place) => place.key))];
}

/** Entries in the order of the page; rows that follow one another are together, cards by themselves. */
export function inGroups<T extends { key: string; isRow: boolean }>(
  order: string[],
  entries: T[],
): { key: string; first: T; all: T[] }[] {
  const groups: { key: string; first: T; all: T[] }[] = [];
  for (const key of order) {
    const entry = entries.find((other) => other.key === key);
    const last = groups.at(-1);
    if (entry === undefined) continue;
    if (entry.isRow && last?.first.isRow === true) last.all.push(entry);
    else groups.push({ key, first: entry, all: [entry] });
  }
  return groups;
}
