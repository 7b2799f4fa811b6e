// Makes pictures of every page, to be looked at: with nothing, with the demo and with a
// full Bridge, at four sizes, light and dark. Only where BRIDGE_SHOTS names the folder for
// them; BRIDGE_SHOTS_OF chooses by a pattern: what matches in "demo-overview-360-dark".

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { BINARY, expect, start, stateOf, stop } from './dashboard';
import { PLACES, SIZES } from './fits';
import { full } from './full';
import { test } from './fresh';

const folder = process.env['BRIDGE_SHOTS'] ?? '';
const wanted = new RegExp(process.env['BRIDGE_SHOTS_OF'] ?? '');
test.skip(folder === '', 'BRIDGE_SHOTS names no folder');
test.setTimeout(1_200_000);

async function shoot(page: Page, scene: string, places: Record<string, string>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, place] of Object.entries(places)) {
    const shots = SIZES.flatMap(([width, height]) =>
      (['light', 'dark'] as const).map((scheme) => ({
        width,
        height,
        scheme,
        as: `${scene}-${name}-${width}-${scheme}`,
      })),
    ).filter(({ as }) => wanted.test(as));
    if (shots.length === 0) continue;
    await page.goto(`${new URL(page.url()).origin}/?${name}#/${place}`);
    await page.locator('main[aria-busy=false] h1').waitFor();
    await expect(page.getByText('Loading…')).toHaveCount(0);
    await page.waitForLoadState('networkidle').catch(() => undefined); // events may never rest
    for (const { width, height, scheme, as } of shots) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      await page.screenshot({ path: join(folder, `${as}.png`), animations: 'disabled' });
    }
  }
}

const named = (places: string[]) => Object.fromEntries(places.map((place) => [place, place]));

test('pictures of every page with nothing', async ({ fresh }) => {
  await shoot(fresh.page, 'empty', named(PLACES));
});

test('pictures of every page of the demo and of a full Bridge', async ({ page }) => {
  const { url, child } = await start(BINARY, ['demo', '--no-open']);
  try {
    await page.goto(url);
    await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
    const find = async () => {
      const { runs, needs } = await stateOf(page, new URL(url).origin);
      return runs.some((r) => r.status === 'finished') && needs.length === 3;
    };
    await expect.poll(find, { timeout: 120_000 }).toBe(true);
    const { runs } = await stateOf(page, new URL(url).origin);
    const job = (status: string) => runs.find((r) => r.status === status)?.job ?? '';
    const more = {
      session: 'sessions/api',
      topic: `decisions/${encodeURIComponent('error format')}`,
      log: `runs/${job('waiting')}/log`,
      changes: `runs/${job('finished')}/changes`,
      result: `runs/${job('finished')}/result`,
    };
    await shoot(page, 'demo', { ...named(PLACES), ...more });
    await full(page);
    await shoot(page, 'full', named(['needs', 'overview', 'sessions', 'runs', 'decisions', 'search']));
  } finally {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await stop(child);
  }
});
