// Something fetched from the server for one page. What is shown stays when a
// later load fails, and an answer that a newer question has overtaken is
// thrown away.

/** What could not be loaded, to be asked for again. */
// eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing of it is shown
const failed = new Set<() => void>();

/** Loads again what failed last: for when Bridge answers once more. */
export function loadFailedAgain(): void {
  const all = [...failed];
  failed.clear();
  for (const again of all) again();
}

export class Loaded<T> {
  /** Null while never loaded. */
  value: T | null = $state.raw(null);
  /** Why the last load failed, or ''. */
  problem = $state('');
  #turn = 0;
  #again: () => void = () => undefined;
  #refreshing: { about: string; next: (() => Promise<T>) | null } | null = null;

  /** What is known from an earlier visit is shown until it is loaded. */
  constructor(known: T | null = null) {
    this.value = known;
  }

  /**
   * Loads the same thing again whenever something has changed: one load at a time, and one more
   * if it is called meanwhile. Changes that come faster than answers must not keep all answers
   * from being shown. `about` names the question: another one does not wait for the load before.
   */
  async refresh(ask: () => Promise<T>, about = ''): Promise<void> {
    if (this.#refreshing?.about === about) {
      this.#refreshing.next = ask;
      return;
    }
    const own: { about: string; next: (() => Promise<T>) | null } = { about, next: ask };
    this.#refreshing = own;
    while (own === this.#refreshing && own.next !== null) {
      const next = own.next;
      own.next = null;
      await this.load(next);
    }
    if (own === this.#refreshing) this.#refreshing = null;
  }

  async load(ask: () => Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    failed.delete(this.#again);
    try {
      const value = await ask();
      if (turn !== this.#turn) return;
      this.value = value;
      this.problem = '';
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem = error instanceof Error ? error.message : String(error);
      this.#again = () => void this.load(ask);
      failed.add(this.#again);
    }
  }
}
