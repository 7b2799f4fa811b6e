// What needs the owner, as the page shows it. What is in the list is the server's to decide.

import type { Approval, Need, NeedSort, Question, Urgency } from '../../lib/api';
import type { Sign } from '../../ui/signs';
import { visibleParts } from '../../lib/visible';
import { isOpen } from '../approvals/approvals';
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
  mail: { word: 'unread', sign: 'waiting' },
  expired: { word: 'expired', sign: 'bad', bad: true },
  agent: { word: 'agent', sign: 'warn' },
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
  sort === 'approval' || sort === 'question' ? 'Answer' : sort === 'job-review' ? 'Review' : 'Look';

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
  const end = (one: Place) => one.until ?? Infinity;
  const fresh = present
    .filter((one) => !before.includes(one.key))
    .toSorted((a, b) => (end(a) === end(b) ? 0 : end(a) - end(b)) || a.since - b.since);
  return [...before, ...new Set(fresh.map((one) => one.key))];
}

/** Entries in the order of the page; rows that follow one another are together, cards by themselves. */
export function inGroups<T extends { key: string; isRow: boolean }>(
  order: string[],
  entries: T[],
): { key: string; first: T; all: T[] }[] {
  const groups: { key: string; first: T; all: T[] }[] = [];
  for (const key of order) {
    const entry = entries.find((one) => one.key === key);
    const last = groups.at(-1);
    if (entry === undefined) continue;
    if (entry.isRow && last?.first.isRow === true) last.all.push(entry);
    else groups.push({ key, first: entry, all: [entry] });
  }
  return groups;
}

/** What a row shows whole: one line, not long. */
const ROW = 120;

/**
 * Returns whether a permission can be given in its row: the row shows all of the command, which has no
 * hidden characters and no warning. Choices, and prompts that only their terminal answers, have a card.
 */
export function isPlainApproval(approval: Approval, now: number): boolean {
  const { detail, caution = '', onlyTold = '', choices } = approval;
  const isShort = detail !== '' && detail.length <= ROW && !detail.includes('\n');
  const isPlain = caution === '' && onlyTold === '' && !choices;
  return (
    isOpen(approval, now) && isShort && isPlain && !visibleParts(detail, true).some((part) => part.hidden)
  );
}

/** Returns whether a question can be answered in its row: it offers a few short answers and has no long text. */
export function isPlainQuestion({ state, options, context }: Question): boolean {
  const isShort = options.every(({ label }) => label.length <= 30) && context.length <= ROW;
  return state === 'open' && options.length > 0 && options.length <= 3 && isShort;
}
