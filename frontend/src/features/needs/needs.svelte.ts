// The needs that are shown, and putting news away.

import { api, type Need } from '../../lib/api';
import { page } from '../../lib/page.svelte';
import { share } from '../../lib/share';
import { pressing, stillThere, waitingSessions } from './needs';

class Needs {
  /** What was put away last, to take it back. */
  last: Need | null = $state.raw(null);
  /** Why something could not be put away, or taken back; '' while nothing failed. */
  problem = $state('');
  /** Put away here, and the state of it is not fetched yet. */
  #leaving: string[] = $state.raw([]);
  #before: Need[] = [];
  /** The same list until a need changes: notices and rows follow it. */
  open = $derived.by(() => {
    const open = stillThere(page.state?.needs ?? [], page.now).filter(
      ({ id }) => !this.#leaving.includes(id),
    );
    return (this.#before = share(this.#before, open));
  });
  /** What badges count. */
  pressing = $derived(pressing(this.open));
  #waiting = $derived(waitingSessions(this.open));

  /** Whether the session of that name waits for the owner. */
  waits(name: string): boolean {
    return this.#waiting.has(name);
  }

  async putAway(need: Need): Promise<void> {
    this.last = need;
    this.#leaving = [...this.#leaving, need.id];
    if (!(await this.#tell(need.id, true))) this.last = null;
  }

  async undo(): Promise<void> {
    const { last } = this;
    if (last === null) return;
    this.last = null;
    await this.#tell(last.id, false);
  }

  async #tell(id: string, away: boolean): Promise<boolean> {
    this.problem = '';
    try {
      const left = await api.putAway(id, away);
      page.told({ needs: left.needs });
      return true;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      return false;
    } finally {
      this.#leaving = this.#leaving.filter((other) => other !== id);
    }
  }
}

export const needs = new Needs();
