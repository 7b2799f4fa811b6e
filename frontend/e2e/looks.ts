import { expect, type Page } from '@playwright/test';
import { violations } from './axe';
import { drawn, misfits } from './fits';
import { overlaps } from './overlaps';
import { shot } from './shot';

/** A long run looks more often (go run ./build test -long). */
const LONG = (process.env['BRIDGE_TEST_LONG'] ?? '') !== '';

/**
 * What is shown now passes axe in both schemes at the last of the widths, in a long run at
 * each; and at each nothing scrolls sideways, is cut, lies over another thing or, in a
 * dialog, out of the window.
 */
export async function looksRight(
  page: Page,
  name: string,
  widths = [360, 800, 1440],
  height = 800,
): Promise<void> {
  const before = page.viewportSize();
  for (const width of widths) {
    await page.setViewportSize({ width, height });
    await drawn(page);
    if (LONG || width === widths.at(-1)) expect(await violations(page), `${name} at ${width}`).toEqual([]);
    expect(await page.evaluate(misfits), `${name} at ${width}`).toEqual([]);
    const dialog = page.getByRole('dialog');
    if ((await dialog.count()) === 0) {
      expect(await page.evaluate(overlaps), `${name} at ${width}`).toEqual([]);
    } else {
      const box = await dialog.boundingBox();
      expect(box !== null && box.x >= 0 && box.x + box.width <= width, `${name} at ${width}`).toBe(true);
    }
    await shot(page, `${name}-${width}`);
  }
  if (before !== null) await page.setViewportSize(before);
}
