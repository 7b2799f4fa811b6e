// The full-text search: what was asked, what was found, and how it went on.

import { api, type Hit } from '../../lib/api';

/** How many hits are fetched at a time. */
const PAGE = 30;
/** Asked again this much later while new rows are not searched yet, in ms. */
const BEHIND = 1500;

export type Kind = '' | Hit['kind'];

export class WordSearch {
  query = $state('');
  kind: Kind = $state('');
  /** Null while nothing was asked. */
  found: Hit[] | null = $state.raw(null);
  /** What `found` answers. */
  answered = $state('');
  /** How many were asked for at most; as many found may be not all. */
  limit = $state(PAGE);
  /** Rows that were stored a moment ago and are not searched yet. */
  behind = $state(0);
  problem = $state('');
  #turn = 0;

  /** Whether more hits may be had. */
  get more(): boolean {
    return this.found !== null && this.found.length >= this.limit && this.limit < 100;
  }

  /** Asks anew; '' asks nothing. */
  async ask(query: string, kind: Kind, limit = PAGE): Promise<void> {
    const turn = ++this.#turn;
    const words = query.trim();
    if (words === '') {
      this.found = null;
      this.answered = this.problem = '';
      this.behind = 0;
      return;
    }
    try {
      const { results, behind } = await api.search(words, { ...(kind === '' ? {} : { kind }), limit });
      if (turn !== this.#turn) return;
      this.found = results;
      this.behind = behind;
      this.answered = words;
      this.limit = limit;
      this.problem = '';
      if (behind > 0) setTimeout(() => turn === this.#turn && void this.ask(query, kind, limit), BEHIND);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  async loadMore(): Promise<void> {
    await this.ask(this.query, this.kind, 100);
  }
}

/** One for the whole page, so that coming back shows what was found. */
export const search = new WordSearch();
