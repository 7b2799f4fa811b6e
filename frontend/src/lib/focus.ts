// Where the keyboard's focus goes when what had it is gone, and where a dialog begins.

/** What `j` and `k` stop at: rows of lists, and cards that can be answered. */
export const STOPS = '[data-row], [data-approval], [data-question]';

/** What answers a card. */
const ANSWERS = ['[data-allow]', '[data-option]', '[data-words]', '[data-deny]'];

const isCard = (stop: HTMLElement) => stop.matches('[data-approval], [data-question]');

/** Whether a stop can still be acted on: a row, or a card that has an answer. */
const isOpen = (stop: HTMLElement) =>
  stop.isConnected && (!isCard(stop) || stop.querySelector(ANSWERS.join()) !== null);

/** Returns the stop that an element belongs to: a card, a row, or the row beside it in its list item. */
export function stopOf(element: Element | null): HTMLElement | null {
  return (
    element?.closest<HTMLElement>(STOPS) ??
    element?.closest('li, tr')?.querySelector<HTMLElement>('[data-row]') ??
    null
  );
}

/** Puts the focus into a dialog that was just opened, unless it has asked for it: on the main answer if
 * it has one, else on the answer that changes nothing. The main answer may be ready only later. It
 * returns what ends the waiting. */
export function beginDialog(dialog: HTMLDialogElement): () => void {
  const begun = document.activeElement;
  if (begun?.closest('[data-close]') == null) return () => undefined;
  const ready = () => dialog.querySelector<HTMLElement>('button.primary:not(:disabled)');
  const safe = dialog.querySelector<HTMLElement>('form[method=dialog]:not([data-close]) button');
  const first = ready() ?? safe;
  first?.focus();
  if (first === ready() || dialog.querySelector('button.primary') === null) return () => undefined;
  const observer = new MutationObserver(() => {
    const main = ready();
    if (main === null) return;
    if (document.activeElement === (first ?? begun)) main.focus();
    observer.disconnect();
  });
  observer.observe(dialog, { subtree: true, attributeFilter: ['disabled'] });
  dialog.addEventListener('keydown', () => observer.disconnect(), { once: true });
  return () => observer.disconnect();
}

interface Last {
  element: HTMLElement;
  stop: HTMLElement | null;
  /** The stops that came after it, in their order, and those before it, the nearest first. */
  after: HTMLElement[];
  before: HTMLElement[];
  /** What it stood in, the innermost first. */
  around: HTMLElement[];
}

/** Keeper gives the focus of a part of the page a new place when the element that had it is gone. */
export class Keeper {
  #last: Last | null = null;
  readonly #part: HTMLElement;

  constructor(part: HTMLElement) {
    this.#part = part;
  }

  /** Starts watching; it returns what ends it. */
  watch(): () => void {
    const observer = new MutationObserver(() => this.#look());
    observer.observe(this.#part, { childList: true, subtree: true, attributeFilter: ['disabled', 'hidden'] });
    const focusin = (event: FocusEvent) => this.#note(event.target as HTMLElement);
    // Who clicks on nothing wants the focus nowhere.
    const pointerdown = () => (this.#last = null);
    this.#part.addEventListener('focusin', focusin);
    addEventListener('pointerdown', pointerdown, true);
    addEventListener('hashchange', pointerdown);
    return () => {
      observer.disconnect();
      this.#part.removeEventListener('focusin', focusin);
      removeEventListener('pointerdown', pointerdown, true);
      removeEventListener('hashchange', pointerdown);
    };
  }

  #note(element: HTMLElement): void {
    const stops = [...this.#part.querySelectorAll<HTMLElement>(STOPS)];
    const stop = stopOf(element);
    const at = stop === null ? -1 : stops.indexOf(stop);
    const around: HTMLElement[] = [];
    for (let up = element.parentElement; up !== null && up !== this.#part; up = up.parentElement)
      around.push(up);
    this.#last = {
      element,
      stop,
      after: at < 0 ? [] : stops.slice(at + 1),
      before: at < 0 ? [] : stops.slice(0, at).toReversed(),
      around,
    };
  }

  #look(): void {
    const { activeElement } = document;
    if (this.#last === null || (activeElement !== null && activeElement !== document.body)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const { element } = this.#last;
    // What is disabled for as long as an answer is on its way comes back, or goes.
    if (element.isConnected && element.matches(':disabled')) return;
    if (element.isConnected && element.checkVisibility()) element.focus();
    else this.#next(this.#last)?.focus();
  }

  #next({ stop, after, before, around }: Last): HTMLElement | null {
    if (stop !== null && !isCard(stop) && stop.isConnected) return stop;
    const next = [...after, ...before].find((other) => isOpen(other) && other.checkVisibility());
    const found = next ?? (stop?.isConnected === true ? stop : null);
    if (found !== null) return found;
    const section = around.find((e) => e.isConnected)?.closest('section');
    const heading =
      section?.querySelector<HTMLElement>('h2, h3') ?? this.#part.querySelector<HTMLElement>('h1');
    if (heading != null && !heading.hasAttribute('tabindex')) heading.tabIndex = -1;
    return heading;
  }
}
