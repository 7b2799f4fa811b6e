// How far each entry of the browser's history was scrolled, so that "back" shows it there again.

const entryOf = (state: unknown): number | undefined =>
  (state as { entry?: number } | null)?.entry ?? undefined;

export class Scrolls {
  /** The pixels above what was seen last, by the entry's number. */
  readonly #tops = new Map<number, number>();
  #last = 0;
  #entry = 0;

  constructor() {
    this.enter(false);
  }

  /** Notes how far the entry that is shown is scrolled. */
  note(top: number): void {
    this.#tops.set(this.#entry, top);
  }

  /**
   * Takes in that the browser went to another entry; a new one of the same page starts where that
   * is. It returns how far the entry was scrolled when it was left, or null for a new one.
   */
  enter(isSamePage: boolean): number | null {
    const before = this.#tops.get(this.#entry);
    const known = entryOf(history.state);
    this.#entry = known ?? this.#last + 1;
    this.#last = Math.max(this.#last, this.#entry);
    if (known !== undefined) return this.#tops.get(known) ?? null;
    history.replaceState({ entry: this.#entry }, '');
    if (isSamePage && before !== undefined) this.#tops.set(this.#entry, before);
    return null;
  }
}
