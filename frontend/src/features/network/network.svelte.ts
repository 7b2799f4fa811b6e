// How it stands with other PCs, for the one page that shows it.

import { api, type Network, type PCList, type PCName } from '../../lib/api';
import { Loaded } from '../../lib/loaded.svelte';

class Networks {
  #loaded = new Loaded<Network>();
  /** The invitation whose end is told here: one that was seen open. */
  #watched = $state('');
  /** Who was paired by typing a code here. */
  joined: PCName | null = $state.raw(null);

  get value() {
    return this.#loaded.value;
  }
  get problem() {
    return this.#loaded.problem;
  }
  /** The invitation that is open, or whose end was not seen yet. */
  get invitation() {
    const invitation = this.value?.invitation ?? null;
    if (invitation === null) return null;
    return invitation.state === 'open' || invitation.id === this.#watched ? invitation : null;
  }

  load(ask: () => Promise<Network> = api.network): Promise<void> {
    return this.#loaded.load(ask).then(() => {
      const invitation = this.value?.invitation;
      if (invitation?.state === 'open') this.#watched = invitation.id;
    });
  }

  /** Shows an answer that was got by changing something. */
  took(network: Network): void {
    void this.load(() => Promise.resolve(network));
  }

  /** What is told was seen. An invitation that is open goes on. */
  dismiss(): void {
    this.joined = null;
    if (this.value?.invitation?.state !== 'open') this.#watched = '';
  }

  /** What becomes of the invitation is not told: the owner ends it. */
  leave(): void {
    this.#watched = '';
  }
}

/** What the paired PCs show of themselves. They are asked again while somebody looks. */
class Shown {
  #loaded = new Loaded<{ peers: PCList[] }>();

  of(id: string): PCList | undefined {
    return this.#loaded.value?.peers.find((list) => list.id === id);
  }

  load(): Promise<void> {
    return this.#loaded.load(api.networkLists);
  }
}

export const shown = new Shown();

export const networks = new Networks();

export const sentence = (error: unknown) => (error instanceof Error ? error.message : String(error));
