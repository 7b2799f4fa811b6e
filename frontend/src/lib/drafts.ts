// Texts that the owner typed and did not send. They are kept in this browser, so that a
// reload, a crash or a closed tab loses none of them. Bridge keeps a copy, for another
// browser and for the desktop window, whose storage may be another one after a restart.

const PREFIX = 'bridge.draft.';

/** How long a draft is kept that nobody goes on with, in ms. */
export const DRAFT_LIFE = 7 * 24 * 3600_000;

interface Kept {
  at: number;
  value: unknown;
  /** Bridge has this copy. */
  shared?: boolean;
}

/** A draft as Bridge keeps it. */
export interface SharedDraft {
  key: string;
  at: number;
  value: unknown;
}

/** How drafts reach Bridge. */
export interface DraftLink {
  list: () => Promise<SharedDraft[]>;
  /** `value` null removes the draft. `leaving` says that the page is being closed. */
  set: (key: string, value: unknown, leaving: boolean) => Promise<unknown>;
}

/** How long typing must pause before Bridge gets the draft, in ms. */
export const SHARE_PAUSE = 400;

let link: DraftLink | null = null;
/** The drafts that Bridge does not have yet, with the timers that send them. */
const waiting = new Map<string, ReturnType<typeof setTimeout>>();

function share(key: string, leaving = false): void {
  clearTimeout(waiting.get(key));
  waiting.delete(key);
  if (link === null) return;
  const kept = read(key);
  link.set(key, kept?.value ?? null, leaving).then(
    () => {
      const now = read(key);
      if (now !== null && now.at === kept?.at) write(key, { ...now, shared: true });
    },
    () => undefined, // it is in this browser, and goes to Bridge with its next change
  );
}

function shareSoon(key: string): void {
  if (link === null) return;
  clearTimeout(waiting.get(key));
  waiting.set(
    key,
    setTimeout(() => share(key), SHARE_PAUSE),
  );
}

function read(key: string): Kept | null {
  try {
    return parse(localStorage.getItem(PREFIX + key));
  } catch {
    return null; // the browser allows no storage
  }
}

function write(key: string, kept: Kept | null): void {
  try {
    if (kept === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(kept));
  } catch {
    // The storage is full or not allowed: the draft lives as long as the page does.
  }
}

function storedKeys(): string[] {
  try {
    return Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i) ?? '')
      .filter((key) => key.startsWith(PREFIX))
      .map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}

const FETCHED = 'bridge.drafts-fetched';

/** This browser never fetched Bridge's drafts: fields would not show what was typed elsewhere. */
export function isNewStorage(): boolean {
  try {
    return localStorage.getItem(FETCHED) === null;
  } catch {
    return true;
  }
}

/**
 * Takes Bridge's drafts into this browser, and sends Bridge those that only this browser has. The
 * newer of two wins. One that Bridge had and has no more was sent elsewhere: it is dropped here.
 */
export async function shareDrafts(to: DraftLink): Promise<void> {
  link = to;
  let drafts: SharedDraft[];
  try {
    drafts = await to.list();
    localStorage.setItem(FETCHED, '1');
  } catch {
    return; // this browser's drafts stay, and later changes are sent
  }
  for (const { key, at, value } of drafts) {
    const own = read(key);
    if (own === null || own.at < at) write(key, { at, value, shared: true });
  }
  const known = new Set(drafts.map((d) => d.key));
  for (const key of storedKeys().filter((key) => !known.has(key))) {
    if (read(key)?.shared === true) write(key, null);
    else share(key);
  }
}

/** Sends Bridge what it does not have yet, because the page is being closed. */
export function shareWaiting(): void {
  for (const key of [...waiting.keys()]) share(key, true);
}

function parse(text: string | null): Kept | null {
  try {
    const kept = JSON.parse(text ?? 'null') as Partial<Kept> | null;
    if (typeof kept?.at !== 'number') return null;
    return { at: kept.at, value: kept.value, ...(kept.shared === true ? { shared: true } : {}) };
  } catch {
    return null;
  }
}

/** Returns what was kept under the key; undefined where there is none, or none that can be read. */
export function keptDraft(key: string): unknown {
  return read(key)?.value;
}

/** Returns the text that was kept under the key, '' where there is none. */
export function keptText(key: string): string {
  const value = keptDraft(key);
  return typeof value === 'string' ? value : '';
}

/** Returns the texts that were kept under the key, none where there are none. */
export function keptTexts(key: string): string[] {
  const value = keptDraft(key);
  return Array.isArray(value) ? value.map((text) => (typeof text === 'string' ? text : '')) : [];
}

/** Keeps the value under the key; '' and null drop what was kept. */
export function keepDraft(key: string, value: unknown): void {
  write(key, value === '' || value === null ? null : { at: Date.now(), value });
  shareSoon(key);
}

/** Drops the drafts that are older than DRAFT_LIFE, and those that cannot be read. */
export function dropOldDrafts(now: number): void {
  for (const key of storedKeys()) {
    const kept = read(key);
    if (kept === null || now - kept.at > DRAFT_LIFE) write(key, null);
  }
}
