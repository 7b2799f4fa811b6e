import { expect, open, someSession, test } from './dashboard';
import { shot } from './shot';

for (const width of [1440, 360]) {
  test(`CTX-03 Diagnostics show the tokens from Bridge by day, ${String(width)} wide`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    const name = await someSession(page);
    await page.route('**/api/cost', async (route) => {
      const state = (await (await page.request.get('/api/state')).json()) as {
        peers: { id: string; name: string }[];
      };
      const peer = state.peers.find((other) => other.name === name);
      const day = { tools: 1230, notes: 148, mail: 400, notices: 22, total: 1800 };
      await route.fulfill({
        json: {
          bytesPerToken: 4,
          keptDays: 30,
          sessions: [
            {
              id: peer?.id,
              name,
              agent: 'claude',
              total: { tools: 2460, notes: 296, mail: 800, notices: 44, total: 3600 },
              days: [
                { day: '2026-02-03', tokens: day },
                { day: '2026-02-02', tokens: day },
              ],
            },
          ],
        },
      });
    });
    await open(page, `sessions/${encodeURIComponent(name)}`);
    const details = page.locator('main details.facts');
    if ((await details.getAttribute('open')) === null)
      await page.getByText('Details', { exact: true }).click();
    const table = page
      .getByRole('region', { name: 'Diagnostics' })
      .getByRole('table', { name: 'Tokens from Bridge' });
    await expect(table.getByRole('row', { name: '2026-02-03' })).toContainText('1,230');
    await expect(table.getByRole('row', { name: /^All \d/ })).toContainText('3,600');
    await expect(page.getByText('4 bytes count as one token')).toBeVisible();
    await table.scrollIntoViewIfNeeded();
    await shot(page, `cost-${String(width)}`);
  });
}
