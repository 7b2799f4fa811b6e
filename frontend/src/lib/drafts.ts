// What the owner has typed and not sent. It is kept in this browser until it is sent, so
// that a reload, a crash or a closed tab loses none of it.

const PREFIX = 'bridge.draft.';

/** How long a draft is kept that nobody goes on with, in ms. */
export const DRAFT_LIFE = 7 * 24 * 3600_000;

interface Kept {
  at: number;
  value: unknown;
}

function parse(text: string | null): Kept | null {
  try {
    const kept = JSON.parse(text ?? 'null') as Partial<Kept> | null;
    return typeof kept?.at === 'number' ? { at: kept.at, value: kept.value } : null;
  } catch {
    return null;
  }
}

/** Returns what was kept under the key; undefined where there is none, or none that can be read. */
export function keptDraft(key: string): unknown {
  try {
    return parse(localStorage.getItem(PREFIX + key))?.value;
  } catch {
    return undefined; // the browser allows no storage
  }
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
  try {
    if (value === '' || value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify({ at: Date.now(), value } satisfies Kept));
  } catch {
    // The storage is full or not allowed: the draft lives as long as the page does.
  }
}

/** Drops the drafts that are older than DRAFT_LIFE, and those that cannot be read. */
export function dropOldDrafts(now: number): void {
  try {
    const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i) ?? '');
    for (const key of keys.filter((key) => key.startsWith(PREFIX))) {
      const kept = parse(localStorage.getItem(key));
      if (kept === null || now - kept.at > DRAFT_LIFE) localStorage.removeItem(key);
    }
  } catch {
    // Without a storage there is nothing to drop.
  }
}
