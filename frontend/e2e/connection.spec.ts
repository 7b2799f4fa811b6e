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
  await expect(page.getByRole('checkbox', { name: 'Notifications' })).toBeDisabled();
  await fresh.again();
  await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
  const box = page.getByRole('checkbox', { name: 'Notifications' });
  await expect(box).toBeEnabled();
  await box.uncheck();
  await expect(page.getByText('Notifications are off.')).toBeVisible();
  expect(await page.evaluate(() => 'neverReloaded' in window)).toBe(true);
});

test('DSK-06 a page that was never loaded says so while Bridge is away, and comes with it', async ({
  fresh,
}) => {
  const { page } = fresh;
  await open(page, 'overview');
  await fresh.kill();
  await expect(page.getByText('Bridge does not answer')).toBeVisible();
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Decisions' }).click();
  await expect(page.getByText('Not known: this was not shown')).toBeVisible();
  await fresh.again();
  await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
  await expect(page.getByText('No decision is in force.')).toBeVisible();
});

test('DSK-06 decisions and storage that were seen stay, greyed, while Bridge is away', async ({ fresh }) => {
  const { page } = fresh;
  await open(page, 'decisions');
  await page.getByRole('button', { name: 'Pin a decision…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pin a decision' });
  await dialog.getByRole('combobox', { name: 'Topic' }).fill('line ends');
  await dialog.getByRole('textbox', { name: 'Decision' }).fill('Only line feeds.');
  await dialog.getByRole('button', { name: /^Pin/ }).click();
  await expect(page.locator('main').getByText('Only line feeds.')).toBeVisible();
  const menu = page.getByRole('navigation', { name: 'Main' });
  await menu.getByRole('link', { name: 'Storage' }).click();
  await page.getByRole('heading', { name: 'Sizes' }).waitFor();
  await menu.getByRole('link', { name: 'Overview' }).click();
  await fresh.kill();
  await expect(page.getByText('Bridge does not answer')).toBeVisible();
  await menu.getByRole('link', { name: 'Decisions' }).click();
  await expect(page.locator('main').getByText('Only line feeds.')).toBeVisible();
  await menu.getByRole('link', { name: 'Storage' }).click();
  await expect(page.getByRole('heading', { name: 'Sizes' })).toBeVisible();
  await fresh.again();
  await expect(page.getByText('Bridge does not answer')).toHaveCount(0);
});
