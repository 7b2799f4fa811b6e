import { expect } from '@playwright/test';
import { CLOCK, open, pattern } from './dashboard';
import { test } from './fresh';

test('DSK-06 a killed broker is told, and the page comes back by itself with the next one', async ({
  fresh,
}) => {
  const { page } = fresh;
  await open(page, 'settings');
  await page.evaluate(() => Object.assign(window, { neverReloaded: true }));
  await fresh.kill();
  await expect(page.getByText(pattern(/Bridge does not answer since /, CLOCK))).toBeVisible();
  await expect(page.getByRole('checkbox', { name: 'Desktop notifications' })).toBeDisabled();
  await fresh.again();
  await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
  const box = page.getByRole('checkbox', { name: 'Desktop notifications' });
  await expect(box).toBeEnabled();
  await box.uncheck();
  await expect(page.getByText('Notifications are off.')).toBeVisible();
  expect(await page.evaluate(() => 'neverReloaded' in window)).toBe(true);
});
