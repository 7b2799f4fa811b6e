// The notices of a page in the background: one for each sort of which something new needs the owner.
// Their texts are fixed, so that no agent's words show up on a shared screen (PGE-14).

import type { Need, NeedSort } from '../../lib/api';
import type { Place } from '../../lib/route';

export interface Notice {
  sort: NeedSort;
  title: string;
  text: string;
  /** The page that a click opens. */
  place: Place;
}

const NEEDS: Place = { page: 'needs' };

/** The text of each sort, or null for a sort without a notice. */
const NOTICES: Record<NeedSort, Omit<Notice, 'sort'> | null> = {
  offline: null,
  storage: {
    title: "Bridge's storage needs attention",
    text: 'Open Bridge to see the finding.',
    place: { page: 'storage' },
  },
  approval: {
    title: 'An agent asks for permission',
    text: 'Open Bridge to see the request.',
    place: NEEDS,
  },
  question: { title: 'A session has a question', text: 'Open Bridge to answer it.', place: NEEDS },
  'job-asks': { title: 'A job waits for you', text: 'Open Bridge to see the reason.', place: NEEDS },
  'job-ended': { title: 'A job has failed', text: 'Open Bridge to see the error.', place: NEEDS },
  'job-review': { title: 'A job has finished', text: 'Open Bridge to review its changes.', place: NEEDS },
  exchange: {
    title: 'Two sessions only write each other',
    text: 'Open Bridge to let them go on, or to pause them.',
    place: NEEDS,
  },
  mail: { title: 'A session waits for you', text: 'Open Bridge to see which session.', place: NEEDS },
  expired: { title: 'A message expired unread', text: 'Open Bridge to see which message.', place: NEEDS },
  agent: {
    title: 'An agent is no longer connected',
    text: 'Open Bridge to connect it again.',
    place: { page: 'settings' },
  },
  routes: {
    title: 'A route into an agent is broken',
    text: 'Open Bridge to see which route.',
    place: { page: 'settings' },
  },
};

/** Whether a new need is announced: two sessions that the owner has paused are not. */
const isNews = (need: Need) => need.sort !== 'exchange' || need.urgency !== 'info';

/** At most so many notices within so many ms. */
export const MOST = 5;
export const WITHIN = 10 * 60_000;

/** Decides which needs are announced, each once. */
export class Announcer {
  #announced: Set<string> | null = null;
  #times: number[] = [];

  /**
   * Returns the notices that are due: one for each sort with a new need. It returns none for the first
   * list, which the owner sees when the page opens, and none while the owner looks at the page. While
   * notices are not allowed, new needs wait: they are announced later if they are still open.
   */
  due(open: Need[], allowed: boolean, watched: boolean, now: number): Notice[] {
    const ids = new Set(open.map((need) => need.id));
    if (this.#announced === null || watched) {
      this.#announced = ids;
      return [];
    }
    if (!allowed) {
      this.#announced = new Set([...this.#announced].filter((id) => ids.has(id)));
      return [];
    }
    const before = this.#announced;
    this.#announced = ids;
    const sorts = new Set(
      open.filter((need) => !before.has(need.id) && isNews(need)).map((need) => need.sort),
    );
    return [...sorts].flatMap((sort) => {
      const notice = NOTICES[sort];
      return notice !== null && this.#mayShow(now) ? [{ sort, ...notice }] : [];
    });
  }

  #mayShow(now: number): boolean {
    this.#times = this.#times.filter((at) => now - at < WITHIN);
    if (this.#times.length >= MOST) return false;
    this.#times.push(now);
    return true;
  }
}
