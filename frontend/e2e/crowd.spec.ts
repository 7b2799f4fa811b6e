import { expect, open, test } from './dashboard';
import { violations } from './axe';
import { full } from './full';

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
