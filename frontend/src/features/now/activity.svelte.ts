// What happened lately, fetched when something changed but not more often than the
// answers can be drawn, and how the owner looks at it.

import { api, type Activity } from '../../lib/api';
import { share } from '../../lib/share';

const MINUTE = 60_000;

export const SPANS = [
  { words: '15 min', ms: 15 * MINUTE },
  { words: '1 hour', ms: 60 * MINUTE },
  { words: '8 hours', ms: 480 * MINUTE },
] as const;

/** No two questions within this time, in ms; an answer that took long makes it longer. */
const PAUSE = 1000;
const SHARE = 8;

class Recent {
  activity: Activity | null = $state.raw(null);
  /** Why the last question had no answer, or ''. */
  problem = $state('');
  #since = Infinity;
  #asking = false;
  #again = false;
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** Asks for what happened since a time, or, where that was just asked, soon. */
  want(since: number): void {
    this.#since = since;
    this.#again = true;
    if (!this.#asking && this.#rest === undefined) void this.#ask();
  }

  async #ask(): Promise<void> {
    this.#again = false;
    this.#asking = true;
    const began = performance.now();
    try {
      this.activity = share(this.activity, await api.activity(Math.max(0, Math.floor(this.#since))));
      this.problem = '';
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
    this.#asking = false;
    const pause = Math.max(PAUSE, (performance.now() - began) * SHARE);
    this.#rest = setTimeout(() => {
      this.#rest = undefined;
      if (this.#again) void this.#ask();
    }, pause);
  }
}

export const recent = new Recent();

const KEY = 'bridge.now';

class Look {
  /** How much time is in view. */
  span: number = $state(stored());
  /** Where the view ends; null follows the present. */
  end: number | null = $state(null);
  /** How long a moved view is, which may be of a young Bridge; null for the whole span. */
  length: number | null = $state(null);
  /** Nobody is folded away. */
  all = $state(false);
  asTable = $state(false);
  /** The first that ever happened in a view: what is in view does not change when that leaves it. */
  first = Infinity;

  choose(ms: number): void {
    this.span = ms;
    this.length = null;
    try {
      localStorage.setItem(KEY, String(ms));
    } catch {
      // Then it is chosen until the page is loaded anew.
    }
  }

  /** How far a view of that length can be moved, of so far: eight hours back is all there is. */
  reach(by: number, now: number, length: number): number {
    const end = this.end ?? now;
    const oldest = now - SPANS[2].ms;
    return Math.min(Math.max(end + by, oldest + length), now) - end;
  }

  /** Moves the view of that length; at the present it follows again. */
  move(by: number, now: number, length: number): void {
    const end = (this.end ?? now) + this.reach(by, now, length);
    this.end = end >= now - 2000 ? null : end;
    this.length = this.end === null ? null : length;
  }

  follow(): void {
    this.end = null;
    this.length = null;
  }
}

function stored(): number {
  try {
    const kept = Number(localStorage.getItem(KEY));
    return SPANS.find((s) => s.ms === kept)?.ms ?? SPANS[0].ms;
  } catch {
    return SPANS[0].ms;
  }
}

export const look = new Look();
