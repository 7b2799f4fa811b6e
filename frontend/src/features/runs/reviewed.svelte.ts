// What the owner has reviewed of a job: the files that were seen, and the commit of the last
// review. It is kept in this browser.

import type { FileDiff, Landing } from '../../lib/api';

const PREFIX = 'bridge.reviewed.';
/** How long it is kept after the last change, in ms. */
const LIFE = 60 * 24 * 3600_000;
/** So many versions of a file are remembered, so that two views of it can both be seen. */
const VERSIONS = 4;

interface Kept {
  at: number;
  head: string;
  /** When the review with that head was sent. */
  sent: number;
  /** By path. */
  seen: ReadonlyMap<string, string[]>;
}

const NONE: Kept = { at: 0, head: '', sent: 0, seen: new Map() };

/** A short text that differs for another content of the file's patch. */
export function printOf(file: FileDiff, head: string): string {
  // Without a patch any new commit may have changed the file.
  const text = [file.status, file.from, file.patch === '' ? head : file.patch].join('\n');
  let [a, b] = [0x811c9dc5, 0x9747b28c];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul((b ^ code) + i, 0x85ebca6b);
  }
  return `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}.${text.length.toString(36)}`;
}

function isSeen(value: unknown): value is [string, string[]] {
  const [path, prints] = Array.isArray(value) ? (value as unknown[]) : [];
  return (
    typeof path === 'string' && Array.isArray(prints) && prints.every((print) => typeof print === 'string')
  );
}

function read(key: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(PREFIX + key) ?? 'null') as Partial<
      Record<keyof Kept, unknown>
    > | null;
    if (typeof kept?.at !== 'number') return NONE;
    const seen = Array.isArray(kept.seen) ? kept.seen.filter(isSeen) : [];
    return {
      at: kept.at,
      head: typeof kept.head === 'string' ? kept.head : '',
      sent: typeof kept.sent === 'number' ? kept.sent : 0,
      seen: new Map(seen),
    };
  } catch {
    return NONE; // the browser allows no storage, or something else wrote there
  }
}

/** Drops what was not changed for long. */
function dropOld(now: number): void {
  try {
    const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i) ?? '');
    for (const key of keys.filter((key) => key.startsWith(PREFIX)))
      if (now - read(key.slice(PREFIX.length)).at > LIFE) localStorage.removeItem(key);
  } catch {
    // Then there is nothing to drop.
  }
}

export class Reviewed {
  #kept: Kept = $state.raw(NONE);
  readonly #job: string;

  constructor(job: string) {
    this.#job = job;
    this.#kept = read(job);
  }

  has(file: FileDiff, head: string): boolean {
    return this.#kept.seen.get(file.path)?.includes(printOf(file, head)) ?? false;
  }

  count(files: FileDiff[], head: string): number {
    return files.filter((file) => this.has(file, head)).length;
  }

  mark(file: FileDiff, head: string, isSeen: boolean): void {
    const print = printOf(file, head);
    const others = (this.#kept.seen.get(file.path) ?? []).filter((other) => other !== print);
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- the whole is exchanged
    const seen = new Map(this.#kept.seen).set(
      file.path,
      isSeen ? [...others, print].slice(-VERSIONS) : others,
    );
    this.#keep({ ...this.#kept, seen });
  }

  /** Notes that a review of this commit was sent. */
  sent(head: string): void {
    this.#keep({ ...this.#kept, head, sent: Date.now() });
  }

  /** The commit of the last review: the last one sent, or the one that was landed or dropped later. */
  last(landing: Landing | null): string {
    const { head, sent } = this.#kept;
    return landing?.state === 'done' && landing.head !== undefined && landing.at > sent ? landing.head : head;
  }

  #keep(kept: Kept): void {
    const now = Date.now();
    this.#kept = { ...kept, at: now };
    try {
      localStorage.setItem(PREFIX + this.#job, JSON.stringify({ ...this.#kept, seen: [...this.#kept.seen] }));
    } catch {
      // The storage is full or not allowed: it is known until the page is loaded anew.
    }
    dropOld(now);
  }
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- only its values are shown, never its keys
const all = new Map<string, Reviewed>();

export function reviewedOf(job: string): Reviewed {
  let reviewed = all.get(job);
  if (reviewed === undefined) {
    reviewed = new Reviewed(job);
    all.set(job, reviewed);
  }
  return reviewed;
}
