import { addressOf, expect, open, settled, test } from './dashboard';

// Time stands still: no mail becomes overdue, above the rows that are gone through.
test.beforeEach(({ page }) => page.clock.setFixedTime(new Date()));

test('DSK-06 every page is reached by two keys', async ({ page }) => {
  await open(page, 'settings');
  for (const [key, heading] of [
    ['n', 'Needs you'],
    ['o', 'Overview'],
    ['s', 'Sessions'],
    ['d', 'Decisions'],
    ['f', 'Search'],
    ['t', 'Storage'],
    [',', 'Settings'],
  ] as const) {
    await page.keyboard.type(`g${key}`);
    if (heading === 'Search') {
      await expect(page.getByRole('searchbox')).toBeFocused(); // where words are typed at once
      await page.keyboard.press('Escape');
    }
    await expect(page.getByRole('heading', { level: 1, name: heading })).toBeFocused();
    await expect(page).toHaveTitle(new RegExp(`${heading} · Bridge$`));
  }
});

test('DSK-06 lists move by j and k, Enter opens, Esc gives the focus back', async ({ page }) => {
  await open(page, 'overview');
  await page.locator('main [data-message]').first().waitFor();
  const rows = page.locator('main [data-row]');
  await page.keyboard.press('j');
  await expect(rows.nth(0)).toBeFocused();
  await page.keyboard.press('j');
  await expect(rows.nth(1)).toBeFocused();
  await page.keyboard.press('k');
  await expect(rows.nth(0)).toBeFocused();

  // By its id, because newer messages may come in above it.
  const id = await page.locator('main [data-message]').first().getAttribute('data-message');
  const row = page.locator(`main [data-message="${id}"] [data-row]`);
  await row.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Message', exact: true })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('complementary', { name: 'Details' })).toHaveCount(0);
  await expect(row).toBeFocused();
});

test('DSK-06 the strip opens at its evidence by keyboard, also on a narrow window', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await open(page, 'overview');
  const id = await page.locator('main [data-message]').first().getAttribute('data-message');
  const strip = page.locator(`main [data-message="${id}"] button.strip`);
  await strip.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Delivery' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(strip).toBeFocused();
});

test('DSK-06 slash searches here or everywhere, c composes, Esc leaves the field', async ({ page }) => {
  await open(page, 'decisions');
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Search decisions' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();

  await open(page, 'overview');
  await page.keyboard.press('c');
  const box = page.getByRole('textbox', { name: 'Write a message' });
  await expect(box).toBeFocused();
  await page.keyboard.type('gj?');
  await expect(box).toHaveValue('gj?');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused();
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Search messages and decisions' })).toBeFocused();
});

test('DSK-06 the sheet of keys keeps the focus inside and gives it back', async ({ page }) => {
  await open(page, 'overview');
  const row = page.locator('main [data-row]').first();
  await row.focus();
  await page.keyboard.press('?');
  const sheet = page.getByRole('dialog', { name: 'Keyboard' });
  await expect(sheet).toBeVisible();
  await expect(sheet.getByRole('button', { name: 'Close' })).toBeFocused();
  await page.keyboard.press('j');
  await expect(sheet.getByRole('button', { name: 'Close' })).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(sheet).toHaveCount(0);
  await expect(row).toBeFocused();
});

for (const place of [
  'overview',
  'session',
  'child',
  'decisions',
  'search',
  'storage',
  'network',
  'settings',
  'needs',
]) {
  test(`DSK-06 Tab reaches every control of ${place}`, async ({ page }) => {
    await open(page, await addressOf(page, place));
    await settled(page, place);
    const all = await page.evaluate(() => {
      const controls = [
        ...document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary'),
      ].filter((e) => e.checkVisibility() && !e.matches(':disabled, input[type=radio]:not(:checked)'));
      controls.forEach((e) => (e.dataset['reach'] = 'missed'));
      addEventListener('focusin', ({ target }) => {
        const at = target as HTMLElement;
        // Some outline must show where the focus is, on it or on what it stretches over.
        const shown = [null, '::after'].some((on) => getComputedStyle(at, on).outlineStyle !== 'none');
        at.dataset['reach'] = shown ? 'reached' : 'reached, but it does not show';
      });
      (document.activeElement as HTMLElement | null)?.blur();
      return controls.length;
    });
    // What scrolls may take the focus, too, and a field for a time stops at each of its parts.
    const parts = 3 * (await page.locator('input[type=time]').count());
    for (let i = 0; i < all + parts + 3; i++) await page.keyboard.press('Tab');
    const unseen = page.locator('[data-reach]:not([data-reach=reached])');
    expect(await unseen.evaluateAll((found) => found.map((e) => e.outerHTML.slice(0, 160)))).toEqual([]);
    expect(await page.locator('[data-reach=reached]').count()).toBeGreaterThanOrEqual(all);
  });
}
