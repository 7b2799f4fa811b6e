// A conversation that stays at its end for those who look at the end.

/** Follows the end of a scrolled list of messages unless the reader went up. */
export class KeepEnd {
  /** True while the end is in view; set it to jump there. */
  atEnd = true;
  #node: HTMLElement | null = null;

  /** Attach to what scrolls: a composer that grows must not hide the end. */
  readonly attach = (node: HTMLElement) => {
    this.#node = node;
    const onscroll = () => (this.atEnd = node.scrollHeight - node.scrollTop - node.clientHeight < 48);
    const observer = new ResizeObserver(() => this.follow());
    node.addEventListener('scroll', onscroll, { passive: true });
    observer.observe(node);
    return () => {
      node.removeEventListener('scroll', onscroll);
      observer.disconnect();
      this.#node = null;
    };
  };

  /** Goes to the end where it was in view before the list grew. */
  follow(): void {
    if (this.#node !== null && this.atEnd) this.#node.scrollTop = this.#node.scrollHeight;
  }

  /** Keeps what is in view while `load` puts more above it. */
  async growAbove(load: () => Promise<void>): Promise<void> {
    const before = this.#node?.scrollHeight ?? 0;
    await load();
    requestAnimationFrame(() => this.#node?.scrollBy(0, this.#node.scrollHeight - before));
  }
}
