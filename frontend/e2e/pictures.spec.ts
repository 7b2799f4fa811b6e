// Makes the pictures that the README shows, from a demo that has played for some minutes:
// only where BRIDGE_PICTURES names the folder for them.

import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { BINARY, start, stateOf, stop } from './dashboard';

const folder = process.env['BRIDGE_PICTURES'] ?? '';
test.skip(folder === '', 'BRIDGE_PICTURES names no folder');

/** How long the demo plays before: so much is then in the lanes. */
const PLAYS = 300_000;

test('the pictures of the README', async ({ browser }) => {
  test.setTimeout(600_000);
  const { url, child } = await start(BINARY, ['demo', '--no-open', '--port', '0']);
  const began = Date.now();
  try {
    const origin = new URL(url).origin;
    const context = await browser.newContext({ baseURL: origin, viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.goto(url);
    await page.waitForURL((at) => !at.pathname.startsWith('/launch'));
    const find = async () => {
      const { runs, approvals } = await stateOf(page);
      const ended = runs.some((r) => r.status === 'finished');
      return ended && approvals.some((a) => a.state === 'asked') && Date.now() - began > PLAYS;
    };
    await expect.poll(find, { timeout: 480_000 }).toBe(true);
    const reviewed = (await stateOf(page)).runs.find((r) => r.status === 'finished');
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      const shoot = async (name: string, place: string, ready: string) => {
        await page.goto(`${origin}/?${scheme}${name}#/${place}`);
        await page.getByText(ready).first().waitFor();
        await expect(page.getByText('Loading…')).toHaveCount(0);
        await page.screenshot({ path: join(folder, `${name}-${scheme}.png`), animations: 'disabled' });
      };
      await shoot('overview', 'overview', 'Show what changed in the cart');
      await shoot('run', `runs/${reviewed?.job ?? ''}/changes`, '409 from the order endpoint');
      await shoot('needs', 'needs', 'git commit');
    }
    await context.close();
  } finally {
    await stop(child);
  }
});
