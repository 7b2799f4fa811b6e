// Something fetched from the server for one page. What is shown stays when a
// later load fails, and an answer that a newer question has overtaken is
// thrown away.

export class Loaded<T> {
  /** Null while never loaded. */
  value: T | null = $state.raw(null);
  /** Why the last load failed, or ''. */
  problem = $state('');
  #turn = 0;

  async load(ask: () => Promise<T>): Promise<void> {
    const turn = ++this.#turn;
    try {
      const value = await ask();
      if (turn !== this.#turn) return;
      this.value = value;
      this.problem = '';
    } catch (error) {
      if (turn === this.#turn) this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}
