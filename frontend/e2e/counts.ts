// Counts what the owner does with the mouse and the keyboard.

import type { Page } from '@playwright/test';

interface Counted {
  clicks: number;
  keys: number;
}

/** Counts the clicks and the keys that are pressed from now on; a key that is held with another one counts, too. */
export async function counts(page: Page): Promise<() => Promise<Counted>> {
  await page.evaluate(() => {
    const place = globalThis as unknown as { counted?: Counted };
    if (place.counted === undefined) {
      addEventListener('pointerdown', () => place.counted && place.counted.clicks++, true);
      addEventListener('keydown', () => place.counted && place.counted.keys++, true);
    }
    place.counted = { clicks: 0, keys: 0 };
  });
  return () => page.evaluate(() => (globalThis as unknown as { counted: Counted }).counted);
}
