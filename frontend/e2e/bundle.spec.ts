import { gzipSync } from 'node:zlib';
import { type Response } from '@playwright/test';
import { expect, open, test } from './dashboard';

/** What the page may weigh: everything that it loads to show itself, compressed; its typefaces apart. */
const MOST = 180_000;
const MOST_TYPE = 120_000;
/** When the page fetches other pages ahead, in ms after its start. */
const AHEAD = 3000;

test('DSK-06 the page weighs less than 180 kB and loads nothing from elsewhere', async ({ page }) => {
  const bodies: Promise<Buffer>[] = [];
  const typefaces: Promise<Buffer>[] = [];
  const elsewhere: string[] = [];
  const origin = new URL((await page.request.get('/')).url()).origin;
  const note = (response: Response): void => {
    const url = new URL(response.url());
    if (url.origin !== origin && url.protocol !== 'data:') elsewhere.push(response.url());
    else if (url.pathname.endsWith('.woff2')) typefaces.push(response.body());
    else if (url.pathname === '/' || url.pathname.startsWith('/assets/')) bodies.push(response.body());
  };
  // Other pages are fetched ahead after a while, and a slow machine may need as long for the first one.
  await page.addInitScript((ahead) => {
    const wait = window.setTimeout.bind(window);
    Object.assign(window, { setTimeout: (run: () => void, ms = 0) => (ms === ahead ? 0 : wait(run, ms)) });
  }, AHEAD);
  page.on('response', note);
  await open(page, 'overview');
  await page.waitForLoadState('load');
  page.off('response', note); // what comes later would be read when the test has ended
  const files = await Promise.all(bodies);
  const weight = files.reduce((sum, body) => sum + gzipSync(body).length, 0);
  expect(files.length).toBeGreaterThanOrEqual(3);
  expect(weight).toBeLessThan(MOST);
  const type = await Promise.all(typefaces);
  expect(type.length).toBeGreaterThan(0);
  expect(type.reduce((sum, body) => sum + body.length, 0)).toBeLessThan(MOST_TYPE);
  expect(elsewhere).toEqual([]);
});
