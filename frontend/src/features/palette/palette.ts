// What the command palette offers and which of it fits what was typed, without markup.

import type { Peer, Run } from '../../lib/api';
import { href, type Place } from '../../lib/route';
import { byName } from '../../lib/text';
import { titleOf } from '../runs/runs';

export type Sort = 'place' | 'action' | 'session' | 'job' | 'topic';

export interface Item {
  sort: Sort;
  label: string;
  /** What else it is found by. */
  more: string;
  place: Place;
  /** What has the focus there, and whether it is pressed at once. */
  at?: string;
  press?: true;
}

/** What each sort is called beside its items. */
export const SORTS: Record<Sort, string> = {
  place: 'page',
  action: 'action',
  session: 'session',
  job: 'job',
  topic: 'decision',
};

const PLACES: [string, Place][] = [
  ['Needs you', { page: 'needs' }],
  ['Overview', { page: 'overview' }],
  ['Sessions', { page: 'sessions' }],
  ['Runs', { page: 'runs' }],
  ['Decisions', { page: 'decisions' }],
  ['Search', { page: 'search' }],
  ['Storage', { page: 'storage' }],
  ['Network', { page: 'network' }],
  ['Settings', { page: 'settings' }],
];

const ACTIONS: Item[] = [
  {
    sort: 'action',
    label: 'Answer the next thing that needs you',
    more: '',
    place: { page: 'needs' },
    at: '[data-card], [data-row]',
  },
  {
    sort: 'action',
    label: 'Pin a decision…',
    more: '',
    place: { page: 'decisions' },
    at: '[data-do=pin]',
    press: true,
  },
  {
    sort: 'action',
    label: 'Back up now',
    more: '',
    place: { page: 'storage' },
    at: '[data-do=backup]',
    press: true,
  },
  {
    sort: 'action',
    label: 'Check the storage now',
    more: '',
    place: { page: 'storage' },
    at: '[data-do=check]',
    press: true,
  },
  {
    sort: 'action',
    label: 'Pair a PC…',
    more: '',
    place: { page: 'network' },
    at: '[data-do=pair]',
    press: true,
  },
  {
    sort: 'action',
    label: 'Change the theme or the density…',
    more: 'appearance light dark system compact comfortable rows',
    place: { page: 'settings' },
    at: '[name=theme]:checked',
  },
];

/** Returns the sessions, jobs and topics, in this order, each by name; jobs that go on come first. */
export function named(peers: Peer[], runs: Run[], topics: string[]): Item[] {
  const going = (run: Run) => Number(run.endedAt !== null);
  return [
    ...peers
      .toSorted((a, b) => byName(a.name, b.name))
      .map(({ name, cwd }): Item => ({
        sort: 'session',
        label: name,
        more: cwd,
        place: { page: 'session', name },
      })),
    ...runs
      .toSorted((a, b) => going(a) - going(b))
      .map((run): Item => ({
        sort: 'job',
        label: titleOf(run),
        more: run.job,
        place: { page: 'run', job: run.job, tab: '' },
      })),
    ...topics
      .toSorted(byName)
      .map((topic): Item => ({ sort: 'topic', label: topic, more: '', place: { page: 'topic', topic } })),
  ];
}

/** Returns all that the palette offers. */
export function offers(peers: Peer[], runs: Run[], topics: string[]): Item[] {
  const write = peers
    .toSorted((a, b) => byName(a.name, b.name))
    .map(({ name }): Item => ({
      sort: 'action',
      label: `Write to ${name}…`,
      more: '',
      place: { page: 'session', name },
      at: '[data-compose]',
    }));
  return [
    ...PLACES.map(([label, place]): Item => ({ sort: 'place', label, more: '', place })),
    ...ACTIONS,
    ...named(peers, runs, topics),
    ...write,
  ];
}

/** How well the item fits the words: 0 is the best, null where one of them is not in it. */
function rank(item: Item, words: string[]): number | null {
  const label = item.label.toLowerCase();
  let worst = label.startsWith(words[0] ?? '') ? 0 : 1;
  for (const word of words) {
    const parts = label.split(/[^\p{L}\p{N}]+/u);
    if (parts.some((part) => part.startsWith(word))) continue;
    if (label.includes(word)) worst = Math.max(worst, 2);
    else if (item.more.toLowerCase().includes(word)) worst = Math.max(worst, 3);
    else return null;
  }
  return worst;
}

/** Returns at most `most` items that hold all the words, the best first; all of equal rank keep their order. */
export function matching(items: Item[], typed: string, most: number): Item[] {
  const words = typed
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return items.slice(0, most);
  return items
    .map((item) => ({ item, rank: rank(item, words) }))
    .filter((hit): hit is { item: Item; rank: number } => hit.rank !== null)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ item }) => item);
}

/** Names an item in lists. */
export const keyOf = ({ sort, label, place }: Item) => `${sort} ${href(place)} ${label}`;
