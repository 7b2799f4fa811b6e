// The list of all sessions, as the page shows it: its lines, their order and the filter.

import type { EndedSession, Message, Peer, Run } from '../../lib/api';
import { projectName } from '../../lib/path';
import { byName, excerpt, oneLine } from '../../lib/text';
import { isEnded } from '../runs/runs';
import { byInterest, shownState } from './sessions';

export type ListState = 'waits' | 'busy' | 'unknown' | 'idle' | 'ended';

/** One line of the list. */
export interface Line {
  name: string;
  agent: string;
  /** The name of its folder, '' where it is not known. */
  project: string;
  folder: string;
  state: ListState;
  /** What it does now, or what it said last. */
  doing: string;
  /** Null where it is not known. */
  unread: number | null;
  /** When it last did something that Bridge saw; Infinity while it works. */
  seen: number;
}

/** The columns that the list can be sorted by, and what they are called. */
export const COLUMNS = {
  state: 'State',
  name: 'Name',
  agent: 'Agent',
  project: 'Project',
  doing: 'Now doing',
  unread: 'Unread',
  seen: 'Last seen',
} as const;
export type Column = keyof typeof COLUMNS;

const isColumn = (word: string): word is Column => Object.hasOwn(COLUMNS, word);

/** Reads the order from the address: "name", or "-name" for the other way round. By state without one. */
export function readOrder(word: string): { by: Column; turned: boolean } {
  const by = word.replace(/^-/, '');
  return isColumn(by) ? { by, turned: word.startsWith('-') } : { by: 'state', turned: false };
}

/** Returns the order for the address after a click on that column: the same column turns it round. */
export function nextOrder(order: { by: Column; turned: boolean }, column: Column): string {
  const turned = order.by === column && !order.turned;
  if (column === 'state' && !turned) return '';
  return turned ? `-${column}` : column;
}

const STATES: ListState[] = ['waits', 'busy', 'unknown', 'idle', 'ended'];

/** Orders two lines by a column: who waits first, most unread first, last seen first, words by the alphabet. */
function compare(a: Line, b: Line, by: Column): number {
  switch (by) {
    case 'state':
      return STATES.indexOf(a.state) - STATES.indexOf(b.state);
    case 'unread':
      return (b.unread ?? Number.MAX_VALUE) - (a.unread ?? Number.MAX_VALUE);
    case 'seen':
      return a.seen === b.seen ? 0 : b.seen - a.seen;
    default:
      // What has no word comes last.
      return Number(a[by] === '') - Number(b[by] === '') || byName(a[by], b[by]);
  }
}

/** Returns the lines in that order; equal ones by their name. */
export function sorted(lines: Line[], { by, turned }: { by: Column; turned: boolean }): Line[] {
  return lines.toSorted((a, b) => (turned ? -1 : 1) * compare(a, b, by) || byName(a.name, b.name));
}

/** Returns the lines that have all words of `find` in name, agent, project or folder, and that state if one is given. */
export function matching(lines: Line[], find: string, state: string): Line[] {
  const words = find.toLowerCase().split(/\s+/);
  return lines.filter((line) => {
    const text = `${line.name} ${line.agent} ${line.project} ${line.folder}`.toLowerCase();
    const fits = state === 'unread' ? line.unread !== 0 : state === '' || line.state === state;
    return fits && words.every((word) => text.includes(word));
  });
}

/** Returns what a session does now: its own children and jobs at work, else what it said last. */
export function doingNow(peer: Peer, runs: Run[], last: Message | undefined): string {
  const jobs = runs.filter((run) => run.by === peer.name && !isEnded(run)).map((run) => run.title);
  const work = [...byInterest(peer.children).working.map((child) => child.title), ...jobs];
  if (work.length > 0) return `${work[0]}${work.length > 1 ? `, and ${work.length - 1} more` : ''}`;
  return last === undefined ? '' : excerpt(oneLine(last.body), 90).text;
}

/** Returns the line of a live session. */
export function liveLine(peer: Peer, waits: boolean, runs: Run[], last: Message | undefined): Line {
  return {
    name: peer.name,
    agent: peer.agent,
    project: projectName(peer.cwd),
    folder: peer.cwd,
    state: waits ? 'waits' : shownState(peer),
    doing: doingNow(peer, runs, last),
    unread: peer.unread,
    seen: peer.state === 'busy' ? Infinity : Math.max(peer.since, last?.created_at ?? 0),
  };
}

/** Returns the line of an ended session. Its folder is not kept. */
export function endedLine(session: EndedSession, last: Message | undefined): Line {
  const doing = last === undefined ? '' : excerpt(oneLine(last.body), 90).text;
  const { name, agent, seenAt } = session;
  return { name, agent, project: '', folder: '', state: 'ended', doing, unread: 0, seen: seenAt };
}

/** Returns what each session said last, by its name. A decision is told anew to each session that starts, so it counts as nothing. */
export function lastWords(messages: Message[]): Map<string, Message> {
  const words = messages.filter((m) => m.kind !== 'decision').toReversed();
  return new Map(words.map((m) => [m.from_name, m]));
}
