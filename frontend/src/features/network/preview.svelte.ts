// A change of the policy while it is edited: what it would mean, asked of the
// broker after each step, and its saving. The newest step wins.

import { api, Failed, type Network, type NetworkPlan, type PolicyChange } from '../../lib/api';
import { changesNothing } from './network';
import { networks, sentence } from './network.svelte';

/** Steps that follow each other faster are one, in ms. */
const PAUSE = 200;

export class Preview {
  /** What the change would mean; null while that is asked, and where there is none. */
  plan: NetworkPlan | null = $state.raw(null);
  problem = $state('');
  /** Somebody else changed the file meanwhile; the plan is of it as it is now. */
  meanwhile = $state(false);
  saving = $state(false);
  #turn = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Asks what the change would mean, in a moment. */
  show(base: Network, change: PolicyChange): void {
    const turn = ++this.#turn;
    clearTimeout(this.#timer);
    this.plan = null;
    this.problem = '';
    if (changesNothing(change)) return;
    this.#timer = setTimeout(() => void this.#ask(turn, base, change), PAUSE);
  }

  async #ask(turn: number, base: Network, change: PolicyChange): Promise<void> {
    try {
      const plan = await api.changePolicy(base.policy.revision, change, true);
      if (turn === this.#turn) this.plan = plan;
    } catch (error) {
      if (turn === this.#turn) await this.#failed(error);
    }
  }

  /** Saves exactly what was shown; false where that could not be. */
  async save(base: Network, change: PolicyChange): Promise<boolean> {
    if (this.saving) return false;
    this.saving = true;
    try {
      networks.took((await api.changePolicy(base.policy.revision, change, false)).network);
      return true;
    } catch (error) {
      this.plan = null;
      await this.#failed(error);
      return false;
    } finally {
      this.saving = false;
    }
  }

  /** After a change of somebody else the file is read anew, and what is wanted is shown against that. */
  async #failed(error: unknown): Promise<void> {
    if (error instanceof Failed && error.status === 409) {
      this.meanwhile = true;
      await networks.load();
      return;
    }
    this.problem = sentence(error);
  }

  stop(): void {
    this.#turn++;
    clearTimeout(this.#timer);
  }
}
