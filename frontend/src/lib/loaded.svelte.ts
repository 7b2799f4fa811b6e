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

  /** What is known from an earlier visit is shown until it is loaded. */
  constructor(known: T | null = null) {
    this.value = known;
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
