import { expect, open, test } from './dashboard';
import { violations } from './axe';
import { misfits } from './fits';
import { test as fresh } from './fresh';
import { full, sessionName } from './full';

test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

test('PGE-07 the menu of a crowd folds the idle ones, keeps that, and has a filter', async ({ page }) => {
  await full(page);
  await open(page, 'needs');
  const menu = page.getByRole('navigation', { name: 'Main' });
  const fold = menu
    .locator('li', { has: page.locator('.project', { hasText: 'shop' }) })
    .locator('summary')
    .last();
  const hidden = menu.locator('a[href="#/sessions/opencode-shop-14"]');
  await expect(fold).toBeVisible();
  await expect(hidden).toBeHidden();
  await fold.click();
  await expect(hidden).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await page.reload();
  await expect(hidden).toBeVisible();
  await fold.click();
  await expect(hidden).toBeHidden();
  await menu.getByRole('searchbox', { name: 'Filter sessions' }).fill('shop-14');
  await expect(hidden).toBeVisible();
  await expect(menu.locator('a.session')).toHaveCount(1);
});

test('PGE-07 above the fold the overview of a crowd says who works on what, and since when', async ({
  page,
}) => {
  await full(page);
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, 'overview');
  const row = page.locator(`main [data-session="${sessionName(0)}"]`);
  await expect(row).toBeInViewport({ ratio: 1 });
  await expect(row).toContainText('with look through the tests, Job 0');
  await expect(row.locator('.since')).toHaveText(/^at work for \d+ min$/);
  await expect(page.getByRole('figure', { name: 'Now' })).toHaveCount(0);
  const summary = page.getByText('The last hours as a picture');
  await summary.click();
  await expect(page.getByRole('figure', { name: 'Now' })).toBeVisible();
  await page.reload();
  await expect(page.getByRole('figure', { name: 'Now' })).toBeVisible();
});

fresh('PGE-07 a question is answered in its row of the overview', async ({ fresh }) => {
  const { page, begin } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await session.call('ask_owner', {
    title: 'Which port?',
    options: [
      { label: '4777', consequence: 'As before.' },
      { label: 'A free one', consequence: 'Two can run.' },
    ],
  });
  await open(page, 'overview');
  const row = page.locator('main li').filter({ hasText: 'Which port?' });
  await row.getByRole('button', { name: 'A free one' }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  expect(await session.call('inbox', { limit: 100 })).toContain('A free one');
});

test('PGE-07 the menu of a phone has five targets of 44 pixels, and the others behind More', async ({
  page,
}) => {
  await page.setViewportSize({ width: 360, height: 760 });
  await open(page, 'overview');
  const menu = page.getByRole('navigation', { name: 'Main' });
  for (const name of ['Needs you', 'Overview', 'Sessions', 'Runs']) {
    const box = await menu.getByRole('link', { name }).boundingBox();
    expect(box?.height ?? 0, name).toBeGreaterThanOrEqual(44);
    expect(box?.width ?? 0, name).toBeGreaterThanOrEqual(44);
  }
  const settings = menu.getByRole('link', { name: 'Settings' });
  await expect(settings).toBeHidden();
  const more = menu.getByRole('button', { name: 'More' });
  await more.focus();
  await page.keyboard.press('Enter');
  await expect(settings).toBeVisible();
  expect(await page.evaluate(misfits)).toEqual([]);
  expect(await violations(page)).toEqual([]);
  await settings.click();
  await expect(page.getByRole('heading', { level: 1, name: 'Settings' })).toBeFocused();
  await expect(settings).toBeHidden();
});
