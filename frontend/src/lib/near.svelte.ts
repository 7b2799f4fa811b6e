// Lists that are outside the view: they follow their data every two seconds, not at once.

import { untrack } from 'svelte';

/** How far outside the view still counts as near, in pixels. */
const MARGIN = 400;
/** How often a list outside the view is updated, in ms. */
const INTERVAL = 2000;

/** Tells whether an element is in the view or near it. Attach it with `{@attach near.attach}`. */
export class NearView {
  /** True until the element was seen outside. */
  #near = $state(true);
  #ticks = $state(0);

  readonly attach = (node: HTMLElement) => {
    const observer = new IntersectionObserver(
      (entries) => (this.#near = entries.at(-1)?.isIntersecting ?? true),
      { root: node.closest('.scroll'), rootMargin: `${MARGIN}px` },
    );
    observer.observe(node);
    const timer = setInterval(() => {
      if (!untrack(() => this.#near)) this.#ticks += 1;
    }, INTERVAL);
    return () => {
      observer.disconnect();
      clearInterval(timer);
    };
  };

  /** Returns what `read` returns. In a $derived it follows at once while the element is near, else every two seconds. */
  follow<T>(read: () => T): T {
    const ticks = this.#near ? -1 : this.#ticks; // read, so that the caller follows the ticks
    return ticks < 0 ? read() : untrack(read);
  }
}
