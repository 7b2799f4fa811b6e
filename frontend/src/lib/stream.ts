// One event stream for all open pages of a browser. A browser opens six connections to a
// host, and each stream keeps one of them for good: with a stream a page, the seventh page
// would stay blank. Pages elect one holder by a web lock; it has the stream and broadcasts
// what comes. This file knows nothing of Svelte, and its timing is tested with a fake clock.

import type { Work } from './api';
import { openEventSource, type EventPort } from './live';

/** The name of the lock and of the channel. */
export const NAME = 'bridge-events';
/** How long the holder may take to answer before a visible page takes the stream over, in ms. */
export const ANSWER_LIMIT = 3000;
/** How often a visible page asks whether the holder still answers, in ms. */
export const CHECK_PERIOD = 15_000;

/** What pages say to each other. */
export type Note =
  | { kind: 'open' }
  | { kind: 'error' }
  | { kind: 'revision'; revision: number }
  | { kind: 'work'; running: Work | null }
  /** A page asks the holder to answer. */
  | { kind: 'ask'; from: string; visible: boolean }
  /** The holder keeps the stream; `revision` is the last that it brought. */
  | { kind: 'held'; to: string; open: boolean; revision: number | null }
  /** The holder is hidden and the asking page is not: that page takes the stream. */
  | { kind: 'offer'; to: string };

export interface Channel {
  post(note: Note): void;
  close(): void;
}

/** The part of the browser's lock manager that is used. */
export interface Locks {
  request(
    name: string,
    options: { signal: AbortSignal } | { steal: true },
    hold: () => Promise<void>,
  ): Promise<unknown>;
}

/** What happens to the page as a whole. */
export interface PageEvents {
  onShown(): void;
  onHidden(): void;
  /** The browser stops the page's work, perhaps for hours. */
  onFrozen(): void;
  onResumed(): void;
}

export interface StreamPorts {
  /** Opens the event stream and returns the function that closes it. */
  openSource(port: EventPort): () => void;
  /** Null where the browser has no locks or no channels. */
  shared: { locks: Locks; openChannel(onNote: (note: Note) => void): Channel } | null;
  isVisible(): boolean;
  /** Returns the function that stops listening. */
  listen(events: PageEvents): () => void;
  newID(): string;
}

/** Returns how a page opens its part in the one stream; each call returns what closes it. */
export function sharedEvents(ports: StreamPorts): (port: EventPort) => () => void {
  const { shared } = ports;
  return (port) => {
    if (shared === null) return openWhileVisible(ports, port);
    const part = new Part(ports, shared, port);
    return () => part.close();
  };
}

/** Has a stream while the page is visible, where pages cannot share one. */
function openWhileVisible(ports: StreamPorts, port: EventPort): () => void {
  let closeSource: (() => void) | null = null;
  const open = () => {
    if (ports.isVisible()) closeSource ??= ports.openSource(port);
  };
  const close = () => {
    closeSource?.();
    closeSource = null;
  };
  const stopListening = ports.listen({ onShown: open, onHidden: close, onFrozen: close, onResumed: open });
  open();
  return () => {
    stopListening();
    close();
  };
}

/** One page's part in the stream: it holds the stream, or hears from the page that does. */
class Part {
  readonly #ports: StreamPorts;
  readonly #locks: Locks;
  readonly #port: EventPort;
  readonly #channel: Channel;
  readonly #id: string;
  readonly #stopListening: () => void;
  readonly #checks: ReturnType<typeof setInterval>;
  /** Ends the newest request for the lock. */
  #request = new AbortController();
  /** Closes the stream and frees the lock; null while another page holds it. */
  #release: (() => void) | null = null;
  /** Closes a stream of the page's own, where the lock is refused. */
  #closeOwn: (() => void) | null = null;
  #answerTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = false;
  #revision: number | null = null;
  #closed = false;

  constructor(ports: StreamPorts, shared: NonNullable<StreamPorts['shared']>, port: EventPort) {
    this.#ports = ports;
    this.#locks = shared.locks;
    this.#port = port;
    this.#id = ports.newID();
    this.#channel = shared.openChannel((note) => this.#hear(note));
    this.#stopListening = ports.listen({
      onShown: () => this.#ask(),
      onHidden: () => undefined,
      onFrozen: () => this.#withdraw(), // what comes meanwhile is not heard: it looks again afterwards
      onResumed: () => {
        if (this.#release !== null || this.#closeOwn !== null) return;
        this.#requestLock(false);
        this.#ask();
      },
    });
    this.#checks = setInterval(() => {
      if (ports.isVisible()) this.#ask();
    }, CHECK_PERIOD);
    this.#requestLock(false);
    this.#ask();
  }

  close(): void {
    this.#closed = true;
    this.#stopListening();
    clearInterval(this.#checks);
    this.#withdraw();
    this.#closeOwn?.();
    this.#channel.close();
  }

  /** Waits in line for the lock, or takes it from the page that holds it. */
  #requestLock(steal: boolean): void {
    this.#request.abort();
    const request = new AbortController();
    this.#request = request;
    const hold = () => (request.signal.aborted ? Promise.resolve() : this.#hold());
    this.#locks
      .request(NAME, steal ? { steal: true } : { signal: request.signal }, hold)
      .catch((error: unknown) => {
        if (request.signal.aborted) return;
        this.#free();
        // Stolen by another page; anything else is a browser that grants this page no lock.
        if (error instanceof DOMException && error.name === 'AbortError') this.#requestLock(false);
        else this.#standAlone();
      });
  }

  #hold(): Promise<void> {
    return new Promise((done) => {
      this.#stopAsking();
      this.#isOpen = false;
      this.#revision = null;
      let closeSource: (() => void) | null = null;
      this.#release = () => {
        closeSource?.();
        done();
      };
      closeSource = this.#ports.openSource({
        onOpen: () => {
          this.#isOpen = true;
          this.#tell({ kind: 'open' });
          this.#port.onOpen();
        },
        onRevision: (revision) => {
          this.#revision = revision;
          this.#tell({ kind: 'revision', revision });
          this.#port.onRevision(revision);
        },
        onWork: (running) => {
          this.#tell({ kind: 'work', running });
          this.#port.onWork(running);
        },
        onError: () => {
          this.#tell({ kind: 'error' });
          this.#port.onError();
        },
      });
    });
  }

  #free(): void {
    this.#release?.();
    this.#release = null;
    this.#isOpen = false;
  }

  #withdraw(): void {
    this.#stopAsking();
    this.#request.abort();
    this.#free();
  }

  #standAlone(): void {
    this.#stopAsking();
    if (!this.#closed) this.#closeOwn ??= openWhileVisible(this.#ports, this.#port);
  }

  #tell(note: Note): void {
    if (!this.#closed) this.#channel.post(note);
  }

  /** Asks the holder to answer. A holder that is frozen does not: a visible page takes over. */
  #ask(): void {
    if (this.#release !== null || this.#closeOwn !== null || this.#answerTimer !== undefined) return;
    this.#answerTimer = setTimeout(() => {
      this.#answerTimer = undefined;
      if (this.#ports.isVisible()) this.#requestLock(true);
    }, ANSWER_LIMIT);
    this.#tell({ kind: 'ask', from: this.#id, visible: this.#ports.isVisible() });
  }

  #stopAsking(): void {
    clearTimeout(this.#answerTimer);
    this.#answerTimer = undefined;
  }

  #hear(note: Note): void {
    if (this.#closed || this.#closeOwn !== null) return;
    if (this.#release !== null) {
      if (note.kind === 'ask') this.#answer(note.from, note.visible);
      return;
    }
    switch (note.kind) {
      case 'open':
        this.#isOpen = true;
        this.#port.onOpen();
        break;
      case 'revision':
        this.#port.onRevision(note.revision);
        break;
      case 'work':
        this.#port.onWork(note.running);
        break;
      case 'error':
        this.#isOpen = false;
        this.#port.onError();
        break;
      case 'held':
        if (note.to === this.#id) this.#heldElsewhere(note.open, note.revision);
        break;
      case 'offer':
        if (note.to !== this.#id || this.#answerTimer === undefined) break;
        this.#stopAsking();
        if (this.#ports.isVisible()) this.#requestLock(true);
        break;
    }
  }

  #answer(to: string, visible: boolean): void {
    if (visible && !this.#ports.isVisible()) this.#tell({ kind: 'offer', to });
    else this.#tell({ kind: 'held', to, open: this.#isOpen, revision: this.#revision });
  }

  #heldElsewhere(open: boolean, revision: number | null): void {
    this.#stopAsking();
    if (open && !this.#isOpen) this.#port.onOpen();
    this.#isOpen = open;
    if (revision !== null) this.#port.onRevision(revision);
  }
}

/** The ports of a real browser. Locks are missing where it takes the page for insecure. */
export function browserPorts(): StreamPorts {
  const locks = (navigator as { locks?: LockManager }).locks;
  const isShareable = locks !== undefined && 'BroadcastChannel' in globalThis;
  return {
    openSource: openEventSource,
    shared: isShareable ? { locks, openChannel: openBroadcast } : null,
    isVisible: () => document.visibilityState === 'visible',
    listen: listenToPage,
    newID: () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`,
  };
}

function openBroadcast(onNote: (note: Note) => void): Channel {
  const channel = new BroadcastChannel(NAME);
  channel.addEventListener('message', (event) => onNote(event.data as Note));
  return { post: (note) => channel.postMessage(note), close: () => channel.close() };
}

function listenToPage(events: PageEvents): () => void {
  const onVisibility = () => (document.visibilityState === 'visible' ? events.onShown() : events.onHidden());
  const onFreeze = () => events.onFrozen();
  const onResume = () => events.onResumed();
  document.addEventListener('visibilitychange', onVisibility);
  document.addEventListener('freeze', onFreeze);
  document.addEventListener('resume', onResume);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    document.removeEventListener('freeze', onFreeze);
    document.removeEventListener('resume', onResume);
  };
}
