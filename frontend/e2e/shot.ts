import { join } from 'node:path';
import type { Page } from '@playwright/test';

const FOLDER = process.env['BRIDGE_SHOTS'];

/** Keeps a picture of what the page shows now in both schemes, where BRIDGE_SHOTS names a folder for them. */
export async function shot(page: Page, name: string): Promise<void> {
  if (FOLDER === undefined) return;
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`), animations: 'disabled' });
  }
}
