import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EventPort } from './live';
import {
  ANSWER_LIMIT,
  CHECK_PERIOD,
  sharedEvents,
  type Channel,
  type Locks,
  type Note,
  type PageEvents,
} from './stream';

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

interface Waiting {
  start: () => void;
  fail: (error: unknown) => void;
}

/** The lock of one browser, as the standard says: a line, and whoever steals comes first. */
class OneLock implements Locks {
  refuses = false;
  #held: Waiting | null = null;
  #line: Waiting[] = [];

  request(
    _name: string,
    options: { signal: AbortSignal } | { steal: true },
    hold: () => Promise<void>,
  ): Promise<unknown> {
    if (this.refuses) return Promise.reject(new DOMException('no locks here', 'SecurityError'));
    return new Promise((done, fail) => {
      const waiting: Waiting = {
        fail,
        start: () => {
          this.#held = waiting;
          void hold().then(() => {
            done(undefined);
            if (this.#held === waiting) this.#next();
          });
        },
      };
      if ('steal' in options) {
        this.#held?.fail(new DOMException('stolen', 'AbortError'));
        waiting.start();
        return;
      }
      options.signal.addEventListener('abort', () => {
        this.#line = this.#line.filter((other) => other !== waiting);
        fail(new DOMException('given up', 'AbortError'));
      });
      this.#line.push(waiting);
      if (this.#held === null) this.#next();
    });
  }

  #next(): void {
    this.#held = null;
    this.#line.shift()?.start();
  }
}

/** One browser with the pages that a test opens in it. */
class Browser {
  readonly locks = new OneLock();
  /** The open streams, by the page that has one. */
  readonly streams: { page: Page; port: EventPort }[] = [];
  readonly listeners = new Map<Page, (note: Note) => void>();

  constructor(readonly canShare = true) {}

  open(visible = true): Page {
    return new Page(this, visible);
  }
  holders(): Page[] {
    return this.streams.map(({ page }) => page);
  }
  /** The stream brings something. */
  bring(send: (port: EventPort) => void): void {
    for (const { port } of [...this.streams]) send(port);
  }
}

let pages = 0;

class Page {
  /** What came, in its order. */
  readonly heard: string[] = [];
  /** A frozen page runs nothing: neither its notes nor its timers. */
  frozen = false;
  close: () => void;
  #events: PageEvents | null = null;

  constructor(
    readonly browser: Browser,
    public visible: boolean,
  ) {
    const id = `page-${++pages}`;
    const open = sharedEvents({
      openSource: (port) => {
        const stream = { page: this, port };
        browser.streams.push(stream);
        return () => {
          const at = browser.streams.indexOf(stream);
          if (at >= 0) browser.streams.splice(at, 1);
        };
      },
      shared: browser.canShare
        ? { locks: browser.locks, openChannel: (onNote) => this.#channel(onNote) }
        : null,
      isVisible: () => this.visible,
      listen: (events) => {
        this.#events = events;
        return () => (this.#events = null);
      },
      newID: () => id,
    });
    this.close = open({
      onOpen: () => this.heard.push('open'),
      onRevision: (revision) => this.heard.push(`revision ${revision}`),
      onWork: (running) => this.heard.push(`work ${running === null ? 'none' : 'some'}`),
      onError: () => this.heard.push('error'),
    });
  }

  show(): void {
    this.visible = true;
    this.#events?.onShown();
  }
  hide(): void {
    this.visible = false;
    this.#events?.onHidden();
  }
  /** The browser freezes the page and tells it first. */
  freeze(): void {
    this.#events?.onFrozen();
    this.frozen = true;
  }
  resume(): void {
    this.frozen = false;
    this.#events?.onResumed();
  }

  #channel(onNote: (note: Note) => void): Channel {
    const { listeners } = this.browser;
    listeners.set(this, onNote);
    return {
      post: (note) => {
        for (const [page, listen] of listeners) {
          if (page !== this && !page.frozen) queueMicrotask(() => listen(note));
        }
      },
      close: () => listeners.delete(this),
    };
  }
}

/** Ten pages of one browser, in the order in which they were opened; the first has the stream. */
async function tenPages(visible = true): Promise<{ browser: Browser; first: Page; others: Page[] }> {
  const browser = new Browser();
  const first = browser.open(visible);
  await settle();
  const others = Array.from({ length: 9 }, () => browser.open(visible));
  await settle();
  return { browser, first, others };
}

describe('RWM-17 any number of pages shares one stream', () => {
  it('each page hears everything that the one stream brings', async () => {
    const { browser, first, others } = await tenPages();
    browser.bring((port) => port.onOpen());
    browser.bring((port) => port.onRevision(7));
    browser.bring((port) => port.onWork(null));
    await settle();
    expect(browser.holders()).toEqual([first]);
    for (const page of [first, ...others]) expect(page.heard).toEqual(['open', 'revision 7', 'work none']);
  });

  it('a page that comes later is told that the stream is open, and the last revision', async () => {
    const { browser } = await tenPages();
    browser.bring((port) => port.onOpen());
    browser.bring((port) => port.onRevision(7));
    const late = browser.open();
    await settle();
    expect(late.heard).toEqual(['open', 'revision 7']);
    await vi.advanceTimersByTimeAsync(10 * CHECK_PERIOD);
    expect(late.heard.filter((what) => what === 'open')).toHaveLength(1);
    expect(browser.streams).toHaveLength(1);
  });

  it('the next page takes the stream when its holder closes, and all look again', async () => {
    const { browser, first, others } = await tenPages();
    browser.bring((port) => port.onOpen());
    first.close();
    await settle();
    expect(browser.holders()).toEqual([others[0]]);
    browser.bring((port) => port.onOpen());
    await settle();
    for (const page of others) expect(page.heard).toEqual(['open', 'open']);
    expect(first.heard).toEqual(['open']);
  });

  it('an error of the stream reaches every page', async () => {
    const { browser, first, others } = await tenPages();
    browser.bring((port) => port.onError());
    await settle();
    for (const page of [first, ...others]) expect(page.heard).toEqual(['error']);
  });

  it.each([
    ['a hidden page leaves the stream where it is', false, true],
    ['a visible page that holds it keeps it', true, false],
  ])('%s', async (_, firstVisible, hideOthers) => {
    const { browser, first, others } = await tenPages(firstVisible);
    if (hideOthers) for (const page of others) page.hide();
    else others[3]?.show();
    await vi.advanceTimersByTimeAsync(2 * CHECK_PERIOD);
    expect(browser.holders()).toEqual([first]);
  });

  it('a page that is shown takes the stream from a hidden holder', async () => {
    const { browser, others } = await tenPages(false);
    others[4]?.show();
    await settle();
    expect(browser.holders()).toEqual([others[4]]);
    browser.bring((port) => port.onOpen());
    await settle();
    for (const page of others) expect(page.heard).toEqual(['open']);
  });

  it('two visible pages are both live, whichever was shown last', async () => {
    const { browser, others } = await tenPages(false);
    others[1]?.show();
    others[2]?.show();
    await vi.advanceTimersByTimeAsync(2 * CHECK_PERIOD);
    browser.bring((port) => port.onRevision(9));
    await settle();
    expect(browser.streams).toHaveLength(1);
    expect([others[1]?.heard, others[2]?.heard]).toEqual([['revision 9'], ['revision 9']]);
  });

  it.each([
    ['that is shown, after it got no answer', (page: Page) => page.show(), ANSWER_LIMIT],
    [
      'that was visible all the time, at its next check',
      (page: Page) => (page.visible = true),
      CHECK_PERIOD + ANSWER_LIMIT,
    ],
  ])('a frozen holder loses the stream to a page %s', async (_, show, wait) => {
    const { browser, first, others } = await tenPages(false);
    first.frozen = true; // without a word, as a process that hangs
    const taker = others[6] as Page;
    show(taker);
    await vi.advanceTimersByTimeAsync(wait);
    expect(browser.holders()).toEqual([taker]);
    first.frozen = false;
    await settle();
    browser.bring((port) => port.onRevision(3));
    await settle();
    expect([browser.holders(), first.heard]).toEqual([[taker], ['revision 3']]);
  });

  it('a holder that is told of its freezing frees the stream, and is live again afterwards', async () => {
    const { browser, first, others } = await tenPages(false);
    first.freeze();
    await settle();
    expect(browser.holders()).toEqual([others[0]]);
    browser.bring((port) => port.onOpen());
    browser.bring((port) => port.onRevision(4));
    await settle();
    expect(first.heard).toEqual([]);
    first.resume();
    await settle();
    expect(first.heard).toEqual(['open', 'revision 4']);
    expect(browser.streams).toHaveLength(1);
  });

  it('a page that was frozen without the stream looks again when it goes on', async () => {
    const { browser, others } = await tenPages();
    const page = others[2] as Page;
    browser.bring((port) => port.onOpen());
    await settle();
    page.freeze();
    browser.bring((port) => port.onRevision(5));
    await settle();
    page.resume();
    await settle();
    expect(page.heard).toEqual(['open', 'open', 'revision 5']);
  });

  it('a page that lost the stream has it again when no other page is left', async () => {
    const { browser, first, others } = await tenPages(false);
    others[4]?.show();
    await settle();
    for (const page of others) page.close();
    await settle();
    expect(browser.holders()).toEqual([first]);
  });

  it('a page that was closed while it waited never takes the stream', async () => {
    const { browser, first, others } = await tenPages();
    for (const page of others) page.close();
    first.close();
    await vi.advanceTimersByTimeAsync(2 * CHECK_PERIOD);
    expect(browser.streams).toEqual([]);
  });
});

describe('RWM-17 where pages cannot share a stream', () => {
  it.each([
    ['the browser has no locks', () => new Browser(false)],
    [
      'the browser refuses the lock',
      () => {
        const browser = new Browser();
        browser.locks.refuses = true;
        return browser;
      },
    ],
  ])('only visible pages have one: %s', async (_, make) => {
    const browser = make();
    const [hidden, visible] = [browser.open(false), browser.open(true)];
    await settle();
    expect(browser.holders()).toEqual([visible]);
    hidden.show();
    expect(browser.holders()).toEqual([visible, hidden]);
    visible.hide();
    expect(browser.holders()).toEqual([hidden]);
    browser.bring((port) => port.onOpen());
    await vi.advanceTimersByTimeAsync(2 * CHECK_PERIOD);
    expect([hidden.heard, browser.holders()]).toEqual([['open'], [hidden]]);
    hidden.close();
    visible.show();
    visible.close();
    expect(browser.streams).toEqual([]);
  });
});
