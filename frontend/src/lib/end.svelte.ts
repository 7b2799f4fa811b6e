// A conversation or a log that stays at its end for those who look at the end.

import { untrack } from 'svelte';

/** How near to the end counts as there, in pixels. */
const NEAR = 48;

/** Follows the end of what scrolls unless the reader went up. */
export class KeepEnd {
  /** True while the end is in view. */
  atEnd = $state(true);
  #node: HTMLElement | null = null;
  /** Where it was scrolled to when that was looked at last. */
  #top = 0;

  /** Attach to what scrolls: a composer that grows must not hide the end. */
  readonly attach = (node: HTMLElement) => {
    this.#node = node;
    const onscroll = () => {
      this.#top = node.scrollTop;
      this.atEnd = this.#left(node) < NEAR;
    };
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
    const node = this.#node;
    if (node === null || !untrack(() => this.atEnd)) return;
    // A reader who has just gone up is heard of a moment later only.
    if (node.scrollTop < this.#top && this.#left(node) >= NEAR) {
      this.atEnd = false;
      return;
    }
    this.#toEnd(node);
  }

  /** Goes to the end from wherever the reader is. */
  jump(): void {
    this.atEnd = true;
    if (this.#node !== null) this.#toEnd(this.#node);
  }

  #toEnd(node: HTMLElement): void {
    node.scrollTop = node.scrollHeight;
    this.#top = node.scrollTop;
  }

  #left = (node: HTMLElement) => node.scrollHeight - node.scrollTop - node.clientHeight;

  /** Keeps what is in view while `load` puts more above it. */
  async growAbove(load: () => Promise<void>): Promise<void> {
    const before = this.#node?.scrollHeight ?? 0;
    await load();
    requestAnimationFrame(() => this.#node?.scrollBy(0, this.#node.scrollHeight - before));
  }
}
