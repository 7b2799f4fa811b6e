import type { Hit } from '../src/lib/api';
import { expect, open, tellEveryone, test, unique, STATE, wholeState } from './dashboard';

test('DSK-06 messages and decisions are found by their words, marked, and opened by keyboard', async ({
  page,
}) => {
  const mark = unique('Zebra');
  await tellEveryone(
    page,
    `The ${mark} crosses <b>the</b> street <img src=x onerror="document.title='owned'">`,
  );
  await open(page, 'needs');
  await page.keyboard.press('/');
  const box = page.getByRole('searchbox', { name: 'Search messages and decisions' });
  await expect(box).toBeFocused();
  await page.keyboard.type(`street ${mark.toLowerCase()}`);
  const row = page.locator('main ol > li').first();
  await expect(row).toContainText(mark);
  await expect(row.locator('mark').first()).toBeVisible();
  expect((await row.locator('mark').allTextContents()).map((t) => t.toLowerCase())).toContain('street');
  await expect(row).toContainText('<img src=x');
  await expect(row.locator('img')).toHaveCount(0);
  await expect(page).not.toHaveTitle('owned');
  await expect(page.locator('main ol > li')).toHaveCount(1);

  await box.blur();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const details = page.getByRole('complementary', { name: 'Details' });
  await expect(details).toContainText(mark);
  await expect(details).toContainText('Delivery');
  await page.keyboard.press('Escape');
  await expect(details).toHaveCount(0);
  await expect(row.locator('[data-row]')).toBeFocused();
});

test('DSK-06 a decision is found and leads to its topic', async ({ page }) => {
  await open(page, 'search');
  await page.getByRole('radio', { name: 'Decisions' }).check();
  await page.getByRole('searchbox').fill('endpoint errors');
  const row = page.locator('main ol > li').first();
  await expect(row).toContainText('error format');
  await row.getByRole('link').click();
  await expect(page.getByRole('heading', { level: 1, name: 'error format' })).toBeFocused();
});

test('DSK-06 a message that is not loaded is fetched by its id', async ({ page }) => {
  const mark = unique('faraway');
  await tellEveryone(page, mark);
  let hits: Hit[] = [];
  await expect(async () => {
    const answer = await page.request.get(`/api/search?q=${encodeURIComponent(mark)}`);
    hits = ((await answer.json()) as { results: Hit[] }).results;
    expect(hits).toHaveLength(1);
  }).toPass();
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    await route.fulfill({ response, json: { ...state, messages: [] } });
  });
  await page.goto(`/#/search?m=${hits[0]?.id ?? ''}`);
  await expect(page.getByRole('complementary', { name: 'Details' })).toContainText(mark);
  await page.goto('/#/search?m=nothing');
  await expect(page.getByRole('complementary', { name: 'Details' })).toContainText('It cannot be shown');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('DSK-06 nothing found and a refused question are said in words', async ({ page }) => {
  await open(page, 'search');
  const word = unique('nowhere').replace(' ', '');
  await page.getByRole('searchbox').fill(word);
  await expect(page.getByText(`Nothing holds all the words of “${word}”.`)).toBeVisible();
  await page.getByRole('searchbox').fill('!!!');
  await expect(page.getByRole('alert')).toBeVisible();
});

test('DSK-06 whoever goes to the search may type at once, by its link or by keys', async ({ page }) => {
  const box = page.getByRole('searchbox', { name: 'Search messages and decisions' });
  await open(page, 'overview');
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Search' }).click();
  await expect(box).toBeFocused();
  await open(page, 'overview');
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await expect(box).toBeFocused();
  await page.keyboard.type('go');
  await expect(box).toHaveValue('go');
});
