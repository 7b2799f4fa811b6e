import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { addressOf, expect, open, test } from './dashboard';
import { overlaps } from './overlaps';

const PLACES = [
  'needs',
  'overview',
  'sessions',
  'session',
  'child',
  'decisions',
  'topic',
  'storage',
  'settings',
];

/** The storage page shows its report a moment later. */
async function settled(page: Page, place: string): Promise<void> {
  if (place !== 'storage') return;
  await page.getByRole('heading', { name: 'Backups' }).waitFor();
  await page.getByRole('searchbox').fill('e');
  await page.locator('main mark').first().waitFor();
}

async function violations(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).analyze();
  return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html} ${n.failureSummary ?? ''}`));
}

for (const scheme of ['light', 'dark'] as const) {
  test.describe(scheme, () => {
    test.use({ colorScheme: scheme });

    for (const place of PLACES) {
      test(`DSK-06 ${place} has nothing that axe objects to in ${scheme}`, async ({ page }) => {
        await open(page, await addressOf(page, place));
        await settled(page, place);
        expect(await violations(page)).toEqual([]);
      });
    }

    test(`DSK-06 message details and the sheet of keys pass axe in ${scheme}`, async ({ page }) => {
      await open(page, 'overview');
      await page.locator('main [data-message] [data-row]').first().click();
      await expect(page.getByRole('complementary', { name: 'Details' })).toBeVisible();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.keyboard.press('?');
      await expect(page.getByRole('dialog', { name: 'Keyboard' })).toBeVisible();
      expect(await violations(page)).toEqual([]);
    });
  });
}

for (const width of [360, 800, 1600]) {
  for (const place of PLACES) {
    test(`DSK-06 ${place} fits ${width} pixels`, async ({ page }) => {
      await page.setViewportSize({ width, height: 800 });
      await open(page, await addressOf(page, place));
      await settled(page, place);
      const sideways = await page.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll('*')]
          .filter(
            (e) =>
              !e.matches('.sr-only, input, select, textarea, svg *') && e.scrollWidth > e.clientWidth + 1,
          )
          .filter((e) => getComputedStyle(e).display !== 'inline')
          .map((e) => `${e.tagName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`),
      );
      expect(sideways).toEqual([]);
      expect(await page.evaluate(overlaps)).toEqual([]);
    });
  }

  test(`DSK-06 message details fit ${width} pixels`, async ({ page }) => {
    await page.setViewportSize({ width, height: 800 });
    await open(page, 'overview');
    await page.locator('main [data-message] [data-row]').first().click();
    const details = page.getByRole('complementary', { name: 'Details' });
    await expect(details).toBeVisible();
    const box = await details.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
    expect(await details.evaluate((e) => e.scrollWidth <= e.clientWidth)).toBe(true);
  });
}
