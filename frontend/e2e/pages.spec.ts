import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, open, someSession, test } from './dashboard';
import { overlaps } from './overlaps';

const PLACES = ['needs', 'overview', 'sessions', 'session', 'decisions', 'topic', 'settings'];

/** The address of a place; "session" and "topic" take the first there is. */
async function addressOf(page: Page, place: string): Promise<string> {
  if (place === 'session') return `sessions/${await someSession(page)}`;
  if (place !== 'topic') return place;
  const response = await page.request.get('/api/decisions');
  const { decisions } = (await response.json()) as { decisions: { topic: string }[] };
  return `decisions/${encodeURIComponent(decisions[0]?.topic ?? 'nothing')}`;
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
