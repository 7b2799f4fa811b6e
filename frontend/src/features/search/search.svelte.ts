// The full-text search: what was asked, what was found, and how it went on.

import { api, type Hit, type SearchOptions } from '../../lib/api';
import { readFilters } from './filters';

/** How many hits are fetched at first, and with each more. */
const FIRST = 30;
const MORE = 100;
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
  /** Rows that were stored a moment ago and are not searched yet. */
  behind = $state(0);
  problem = $state('');
  /** The cursor of the next page, '' where there is none. */
  #next = $state('');
  /** What is shown began at the first page and went on. */
  #paged = false;
  #answeredKind: Kind = '';
  #turn = 0;
  #asked = readFilters('', 0);

  /** Whether there are more hits. */
  get more(): boolean {
    return this.#next !== '';
  }

  /** Asks anew; '' asks nothing. */
  async ask(query: string, kind: Kind): Promise<void> {
    const turn = ++this.#turn;
    const typed = query.trim();
    if (typed === '') {
      this.found = null;
      this.answered = this.problem = this.#next = '';
      this.behind = 0;
      this.#paged = false;
      return;
    }
    const { problem } = readFilters(typed, Date.now());
    if (problem !== '') {
      this.problem = problem;
      this.found = null;
      this.#next = '';
      return;
    }
    await this.#fetch(turn, typed, kind, '');
    if (turn === this.#turn && this.problem === '' && this.behind > 0)
      setTimeout(() => turn === this.#turn && void this.ask(query, kind), BEHIND);
  }

  /** Asks anew because something happened, unless that would take loaded pages away. */
  async refresh(query: string, kind: Kind): Promise<void> {
    if (this.#paged && query.trim() === this.answered && kind === this.#answeredKind) return;
    await this.ask(query, kind);
  }

  async loadMore(): Promise<void> {
    if (this.more) await this.#fetch(++this.#turn, this.answered, this.#answeredKind, this.#next);
  }

  async #fetch(turn: number, typed: string, kind: Kind, cursor: string): Promise<void> {
    // A page that goes on has the times of the first one.
    if (cursor === '') this.#asked = readFilters(typed, Date.now());
    const { words, from, after, before } = this.#asked;
    const options: SearchOptions = cursor === '' ? { limit: FIRST } : { limit: MORE, cursor };
    if (kind !== '') options.kind = kind;
    if (from !== '') options.from = from;
    if (after !== null) options.after = after;
    if (before !== null && cursor === '') options.before = before;
    try {
      const { results, behind, next } = await api.search(words, options);
      if (turn !== this.#turn) return;
      const known = cursor === '' ? [] : (this.found ?? []);
      const isKnown = (hit: Hit) => known.some((k) => k.kind === hit.kind && k.id === hit.id);
      this.found = [...known, ...results.filter((hit) => !isKnown(hit))];
      this.behind = behind;
      this.answered = typed;
      this.problem = '';
      this.#answeredKind = kind;
      this.#next = next;
      this.#paged = cursor !== '';
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}

/** One for the whole page, so that coming back shows what was found. */
export const search = new WordSearch();
