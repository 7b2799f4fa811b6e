// What a page must keep at every size.

import { expect, type Page } from '@playwright/test';
import { overlaps } from './overlaps';

export const SIZES = [
  [360, 760],
  [800, 900],
  [1440, 900],
  [1920, 1080],
] as const;

/**
 * What scrolls sideways, and the choices whose words are cut, seen from inside the
 * page. It runs in the browser, so it must not use anything outside itself.
 */
export function misfits(): string[] {
  const found: string[] = [];
  for (const e of [document.documentElement, ...document.querySelectorAll('*')]) {
    if (e.matches('.sr-only, input, select, textarea, svg *')) continue;
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline')
      found.push(`${e.tagName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`);
  }
  const pen = document.createElement('canvas').getContext('2d');
  for (const select of document.querySelectorAll('select')) {
    const words = select.selectedOptions[0]?.text ?? '';
    if (pen === null || !select.checkVisibility()) continue;
    const style = getComputedStyle(select);
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    const needs =
      pen.measureText(words).width + parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    if (needs > select.clientWidth + 1) found.push(`"${words}" is cut: ${needs} > ${select.clientWidth}`);
  }
  return found;
}

/** Waits until what follows the size is drawn: with the next frame. */
export const drawn = (page: Page): Promise<void> =>
  page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn()))),
  );

/** What the document is higher than its window, in pixels: only parts of a page scroll. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollHeight - innerHeight);

/** Looks at the place that is shown at every size. */
export async function fitsEverywhere(page: Page, place: string): Promise<void> {
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await drawn(page);
    expect(await page.evaluate(misfits), `${place} at ${width}`).toEqual([]);
    expect(await page.evaluate(overlaps), `${place} at ${width}`).toEqual([]);
    expect(await overflow(page), `height of ${place} at ${width}`).toBe(0);
  }
}

/** The pages that the menu leads to. */
export const PLACES = [
  'needs',
  'overview',
  'sessions',
  'runs',
  'decisions',
  'search',
  'storage',
  'network',
  'settings',
];
