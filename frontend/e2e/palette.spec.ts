import { expect, open, someSession, stateOf, tellEveryone, test, unique } from './dashboard';
import { looksRight } from './looks';

test('PGE-06 three letters and Enter lead anywhere', async ({ page }) => {
  const name = await someSession(page);
  await open(page, 'settings');
  const palette = page.getByRole('dialog', { name: 'Go to or do' });
  const field = palette.getByRole('combobox');
  const heading = (of: string) => page.getByRole('heading', { level: 1, name: of });

  await page.keyboard.press('Control+k');
  await expect(field).toBeFocused();
  await page.keyboard.type(name.slice(0, 3));
  await expect(palette.getByRole('option', { selected: true })).toContainText(name);
  await looksRight(page, 'palette');
  await page.keyboard.press('Enter');
  await expect(heading(name)).toBeFocused();

  // From within a field, too; arrows choose.
  await page.keyboard.press('c');
  await page.keyboard.press('Meta+k');
  await page.keyboard.type('st');
  await expect(palette.getByRole('option').first()).toContainText('Storage');
  await page.keyboard.press('ArrowDown');
  await expect(palette.getByRole('option').first()).toHaveAttribute('aria-selected', 'false');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await expect(heading('Storage')).toBeFocused();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('err');
  await expect(palette.getByRole('option').first()).toContainText('error format');
  await page.keyboard.press('Enter');
  await expect(heading('error format')).toBeFocused();

  await page.keyboard.press('Control+k');
  await page.keyboard.type(`wri ${name}`);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('textbox', { name: `Message to ${name}` })).toBeFocused();

  await page.keyboard.press('Control+k');
  await page.keyboard.type('pin');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog', { name: 'Pin a decision' })).toBeVisible();
  await page.keyboard.press('Escape');

  await page.keyboard.press('Control+k');
  await page.keyboard.type('qqq');
  await expect(palette.getByRole('status')).toHaveText('Nothing is called “qqq”.');
  await page.keyboard.press('Escape');
  await expect(palette).toHaveCount(0);
});

test('PGE-06 a search stands in its address, and names come first', async ({ page }) => {
  const name = await someSession(page);
  await open(page, 'search');
  const box = page.getByRole('searchbox', { name: 'Search messages and decisions' });
  await box.fill(name);
  const names = page.getByRole('list', { name: 'Sessions, jobs, topics' });
  await expect(names.getByRole('link').first()).toHaveAttribute('href', `#/sessions/${name}`);
  await expect(page).toHaveURL(new RegExp(`#/search\\?q=${name}$`));
  await looksRight(page, 'search-names');
  await page.reload();
  await expect(box).toHaveValue(name);
  await expect(names).toBeVisible();
  await names.getByRole('link').first().click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
  await page.goBack();
  await expect(box).toHaveValue(name);
});

test('PGE-06 a search is limited to an author and a time', async ({ page }) => {
  const mark = unique('Okapi').replace(' ', '');
  await tellEveryone(page, `${mark} from the owner`);
  const { messages } = await stateOf(page);
  const other = messages.find((m) => m.kind === 'message')?.from_name ?? '';
  await open(page, `search?q=${mark}`);
  const box = page.getByRole('searchbox');
  const rows = page.locator('main ol > li');
  await expect(rows).toHaveCount(1);
  await box.fill(`from:${other} ${mark}`);
  await expect(rows).toHaveCount(0);
  await box.fill(`from:you ${mark} after:2020-01-01`);
  await expect(rows).toHaveCount(1);
  await box.fill(`${mark} before:2020-01-01`);
  await expect(rows).toHaveCount(0);
  // Without words: what one of them wrote.
  await box.fill(`from:${other}`);
  await expect(rows.first()).toContainText(other);
  await box.fill('after:soon');
  await expect(page.getByRole('alert')).toHaveText(
    '“after:soon” is no time: type after:13:30 or after:2026-11-27.',
  );
});
