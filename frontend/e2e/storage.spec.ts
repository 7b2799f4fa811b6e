import type { Page } from '@playwright/test';
import { healthSentence, summarize } from '../src/features/storage/storage';
import type { DoctorReport } from '../src/lib/api';
import { expect, open, stateOf, tellEveryone, test, unique } from './dashboard';

async function reportOf(page: Page): Promise<DoctorReport> {
  return (await (await page.request.get('/api/storage')).json()) as DoctorReport;
}

test('STO-03 the storage page says healthy or not in one sentence, and why', async ({ page }) => {
  const report = await reportOf(page);
  await open(page, 'overview');
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Storage' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeFocused();
  const main = page.locator('main');
  await expect(main).toContainText(healthSentence(summarize(report)));
  for (const finding of report.findings) {
    const row = main.locator('li', { hasText: finding.code });
    await expect(row.first()).toContainText(finding.severity);
    await expect(row.first()).toContainText(/\w+\./); // what to do
  }
  const [largest] = report.sizes.toSorted((a, b) => b.bytes - a.bytes);
  await expect(main.locator('section', { hasText: 'Sizes' }).locator('li').first()).toContainText(
    largest?.path ?? '',
  );
});

test('STO-03 a damaged storage is told on every page, with what to do', async ({ page }) => {
  const damaged: DoctorReport = {
    checkedAt: Date.now(),
    ok: false,
    schema: [],
    findings: [
      {
        severity: 'error',
        code: 'database-damaged',
        path: 'bridge.db',
        detail: 'a page is bad',
        fixable: false,
      },
      { severity: 'warning', code: 'temp-abandoned', path: 'x.tmp', detail: 'old', fixable: true },
    ],
    sizes: [{ path: 'bridge.db', bytes: 1 }],
    totalBytes: 1,
    backups: [],
  };
  await page.route('**/api/storage', (route) => route.fulfill({ json: damaged }));
  await page.route('**/api/state', async (route) => {
    const response = await route.fetch();
    const state = (await response.json()) as object;
    const storage = { ok: false, errors: 1, warnings: 1, lastBackup: null };
    await route.fulfill({ response, json: { ...state, storage, messages: [] } });
  });
  await open(page, 'needs');
  await expect(page.locator('main li')).toContainText('The storage has 1 error');
  await expect(page.getByRole('navigation').getByRole('link', { name: 'Storage' })).toContainText('✕ 1');
  await page.getByRole('link', { name: 'Look' }).click();
  await expect(page.locator('main')).toContainText('Not healthy: 1 error and 1 warning.');
  await expect(page.locator('main li', { hasText: 'bridge.db' }).first()).toContainText('Restore a snapshot');
  await expect(page.locator('main dd code', { hasText: /doctor .*--fix$/ })).toBeVisible();
  await expect(page.locator('main')).toContainText('No snapshot was taken yet');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('STO-04 STO-08 the commands of maintenance can be copied', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(page, 'storage');
  for (const verb of ['--backup', '--drill', '--restore']) {
    await expect(page.locator('main code', { hasText: verb }).first()).toBeVisible();
  }
  const copy = page.getByRole('button', { name: /^Copy .* --backup$/ });
  await copy.click();
  await expect(page.getByRole('button', { name: /^Copied .* --backup$/ })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/ doctor( .*)? --backup$/);
});

test('STO-12 every stored message is found by its exact text, page by page', async ({ page }) => {
  test.setTimeout(60_000);
  const mark = unique('Needle');
  for (let i = 1; i <= 53; i++) await tellEveryone(page, `${mark} number ${i}.`);
  await open(page, 'storage');
  await page.keyboard.press('/');
  const search = page.getByRole('searchbox', { name: 'Search all stored messages' });
  await expect(search).toBeFocused();
  await search.fill(mark);
  const rows = page.locator('main ol > li');
  await expect(rows).toHaveCount(50);
  await expect(rows.first()).toContainText(`${mark} number 53.`);
  await expect(rows.first().locator('mark')).toHaveText(mark);
  await page.getByRole('button', { name: 'Older' }).click();
  await expect(rows).toHaveCount(53);
  await expect(rows.last()).toContainText(`${mark} number 1.`);
  await expect(page.getByRole('button', { name: 'Older' })).toHaveCount(0);
  await search.fill(mark.toLowerCase());
  await expect(page.getByText('No stored message holds')).toBeVisible();
});

test('DSK-06 settings say where the data lives', async ({ page }) => {
  await open(page, 'settings');
  const { instance } = await stateOf(page);
  expect(instance.home).not.toBe('');
  const about = page.getByRole('region', { name: 'About' });
  await expect(about.getByRole('code').filter({ hasText: instance.home })).toBeVisible();
});
