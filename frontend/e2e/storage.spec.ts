import type { Page } from '@playwright/test';
import { bySize, healthSentence, summarize } from '../src/features/storage/storage';
import type { DoctorReport, Works } from '../src/lib/api';
import { expect, open, stateOf, tellEveryone, test, unique, STATE, wholeState } from './dashboard';

async function reportOf(page: Page): Promise<DoctorReport> {
  return (await (await page.request.get('/api/storage')).json()) as DoctorReport;
}

test('STO-03 the storage page says healthy or not in one sentence, and why', async ({ page }) => {
  const report = await reportOf(page);
  await page.route('**/api/storage', (route) => route.fulfill({ json: report })); // no later one, with other sizes
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
  const [largest] = bySize(report);
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
        detail: 'a page is bad; `bridge doctor` reads the rest',
        fixable: false,
      },
      { severity: 'warning', code: 'temp-abandoned', path: 'x.tmp', detail: 'old', fixable: true },
    ],
    sizes: [{ path: 'bridge.db', bytes: 1 }],
    totalBytes: 1,
    backups: [],
  };
  await page.route('**/api/storage', (route) => route.fulfill({ json: damaged }));
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    const storage = { ok: false, errors: 1, warnings: 1, lastBackup: null };
    const broken = {
      id: 'storage:1',
      sort: 'storage',
      title: 'The storage has 1 error',
      detail: 'bridge.db: a page is bad. And 1 warning.',
      since: Date.now(),
      until: null,
      urgency: 'now',
      by: '',
      place: '',
      link: '#/storage',
      news: false,
    };
    await route.fulfill({ response, json: { ...state, storage, messages: [], needs: [broken] } });
  });
  await open(page, 'needs');
  await expect(page.locator('main li')).toContainText('The storage has 1 error');
  const link = page.getByRole('navigation').getByRole('link', { name: 'Storage' });
  await expect(link.locator('[data-sign]')).toHaveAttribute('data-sign', 'bad');
  await expect(link).toContainText('1');
  await page.getByRole('link', { name: 'Look' }).click();
  await expect(page.locator('main')).toContainText('Not healthy: 1 error and 1 warning.');
  const finding = page.locator('main li', { hasText: 'bridge.db' }).first();
  await expect(finding).toContainText('a page is bad; bridge doctor reads the rest');
  await expect(finding.getByRole('code').first()).toHaveText('bridge doctor');
  await expect(finding).toContainText('Restore a snapshot');
  await expect(page.locator('main')).toContainText('No snapshot was taken yet');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('STO-04 DSK-06 a backup is made, proven and told after consent, without reload', async ({ page }) => {
  await open(page, 'storage');
  const main = page.locator('main');
  await page.getByRole('button', { name: 'Back up now…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Back up now?' });
  await expect(dialog).toContainText('new full snapshot in');
  await expect(dialog.getByRole('code')).toContainText(/ doctor .*--backup/);
  await dialog.getByRole('button', { name: 'Not now' }).click();
  await expect(dialog).toHaveCount(0);
  const before = (await reportOf(page)).backups.length;
  await page.getByRole('button', { name: 'Back up now…' }).click();
  await dialog.getByRole('button', { name: 'Back up now' }).click();
  await expect(main.getByRole('list', { name: 'What was done' })).toContainText('Backup done');
  await expect(main).toContainText('were copied and verified: snapshot-');
  await expect.poll(async () => (await reportOf(page)).backups.length).toBe(before + 1);
  await expect(page.getByRole('region', { name: 'Backups' }).locator('li').first()).toContainText(
    'never proven',
  );

  await page.getByRole('button', { name: 'Prove a restore…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Prove a restore' }).click();
  await expect(main).toContainText(/Restore proven (just now|\d+ (s|min) ago)/);
  await expect(page.getByRole('region', { name: 'Backups' }).locator('li').first()).toContainText('proven');
  await page.getByRole('button', { name: 'Check now' }).click();
  await expect(main.getByRole('list', { name: 'What was done' })).toContainText('Check done');
});

test('DSK-06 a running work shows how far it is, and nothing else can be begun', async ({ page }) => {
  await page.route('**/api/storage/work', async (route) => {
    const response = await route.fetch();
    const works = (await response.json()) as Works;
    const running = {
      action: 'backup' as const,
      state: 'running' as const,
      began: Date.now(),
      ended: null,
      step: 'copying bridge.db',
      done: 42,
      all: 100,
      result: '',
    };
    await route.fulfill({ response, json: { ...works, running } });
  });
  await open(page, 'storage');
  await expect(page.getByText('Backing up: copying bridge.db, 42 %')).toBeVisible();
  await expect(page.getByRole('progressbar')).toHaveAttribute('value', '0.42');
  await expect(page.getByRole('button', { name: 'Back up now…' })).toBeDisabled();
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('DSK-06 a work that runs keeps the focus where it was begun', async ({ page }) => {
  await open(page, 'storage');
  const check = page.getByRole('button', { name: 'Check now' });
  await check.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('list', { name: 'What was done' })).toContainText('Everything was read');
  await expect(check).toBeFocused();
});

test('STO-08 STO-09 what needs exclusive access to the home is a command, with the reason', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(page, 'storage');
  await page.getByText('From a terminal:').click();
  await expect(page.locator('main dd').filter({ hasText: '--restore' })).toContainText('stop them all');
  await expect(page.locator('main dd').filter({ hasText: '--fix' })).toContainText(
    'needs exclusive access to the home',
  );
  const copy = page.getByRole('button', { name: /^Copy .* --restore latest/ });
  // It says so for two seconds only, so it is looked for before it is there.
  const said = page.getByRole('button', { name: /^Copied .* --restore latest/ }).waitFor();
  await copy.click();
  await said;
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/ doctor --restore latest/);
});

test('DSK-06 sizes over time are a chart that says its numbers', async ({ page }) => {
  const day = 86_400_000;
  const points = [3, 2, 1, 0].map((ago) => ({
    at: Date.now() - ago * day,
    total: (5 - ago) * 1e6,
    parts: {},
  }));
  await page.route('**/api/storage/sizes', (route) => route.fulfill({ json: { points } }));
  await open(page, 'storage');
  await expect(
    page.getByRole('img', { name: /^Size from .*: 2\.0 MB, at most 5\.0 MB, now 5\.0 MB$/ }),
  ).toBeVisible();
  await page.getByText('Numbers').click();
  await expect(page.locator('main table tbody tr')).toHaveCount(4);
});

test('STO-12 every stored message is found by its exact text, page by page', async ({ page }) => {
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
