// The needs that are shown: those found, without those put away in this browser.

import { page } from '../../lib/page.svelte';
import { findNeeds, type Need } from './needs';

const KEY = 'bridge.seen';
/** Enough to remember what the page can still show. */
const REMEMBER = 400;

function stored(): string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(value) ? value.filter((id): id is string => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

class Needs {
  #seen: string[] = $state.raw(stored());
  /** What was put away last, to take it back. */
  last: Need | null = $state.raw(null);
  open = $derived(
    findNeeds(page.state, page.live.phase, page.now).filter((need) => !this.#seen.includes(need.id)),
  );

  putAway(need: Need): void {
    this.last = need;
    this.#keep([...this.#seen, need.id].slice(-REMEMBER));
  }

  undo(): void {
    const { last } = this;
    if (last === null) return;
    this.last = null;
    this.#keep(this.#seen.filter((id) => id !== last.id));
  }

  #keep(seen: string[]): void {
    this.#seen = seen;
    localStorage.setItem(KEY, JSON.stringify(seen));
  }
}

export const needs = new Needs();
