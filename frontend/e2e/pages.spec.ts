import { addressOf, expect, open, settled, test, STATE, wholeState } from './dashboard';
import { violations } from './axe';
import { drawn, fitsEverywhere, overflow, SIZES } from './fits';

const PLACES = [
  'needs',
  'overview',
  'sessions',
  'session',
  'child',
  'runs',
  'decisions',
  'topic',
  'search',
  'storage',
  'network',
  'settings',
];

for (const place of PLACES) {
  test(`DSK-06 ${place} passes axe in both schemes and fits every width`, async ({ page }) => {
    await open(page, await addressOf(page, place));
    await settled(page, place);
    expect(await violations(page)).toEqual([]);
    await fitsEverywhere(page, place);
  });
}

test('PGE-12 a printed page holds all of its content, light and without the menu', async ({ page }) => {
  await open(page, await addressOf(page, 'settings'));
  await settled(page, 'settings');
  await page.evaluate(() => (document.documentElement.dataset['theme'] = 'dark'));
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByRole('navigation', { name: 'Main' })).toBeHidden();
  const printed = await page.evaluate(() => {
    const content = document.querySelector('main .scroll');
    if (content === null) throw new Error('there is no content');
    return {
      cut: content.scrollHeight - content.clientHeight,
      whole: document.documentElement.scrollHeight >= content.scrollHeight,
      text: getComputedStyle(document.documentElement).getPropertyValue('--text').trim(),
    };
  });
  expect(printed).toEqual({ cut: 0, whole: true, text: '#16181d' });
});

test('DSK-06 no page scrolls out of its window', async ({ page }) => {
  for (const place of PLACES) {
    await open(page, await addressOf(page, place));
    await settled(page, place);
    for (const [width, height] of [
      [390, 844],
      [1440, 900],
    ] as const) {
      await page.setViewportSize({ width, height });
      await drawn(page);
      expect.soft(await overflow(page), `${place} at ${width}`).toBe(0);
    }
  }
});

test('DSK-06 a question for consent passes axe', async ({ page }) => {
  await open(page, 'storage');
  await page.getByRole('button', { name: 'Archive old messages…' }).click();
  await expect(page.getByRole('dialog', { name: 'Archive old messages?' })).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test('DSK-06 message details and the sheet of keys pass axe', async ({ page }) => {
  await open(page, 'overview');
  await page.locator('main [data-message] [data-row]').first().click();
  await expect(page.getByRole('complementary', { name: 'Details' })).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' })).toBeVisible();
  expect(await violations(page)).toEqual([]);
});

test('DSK-06 message details fit every width', async ({ page }) => {
  await open(page, 'overview');
  await page.locator('main [data-message] [data-row]').first().click();
  const details = page.getByRole('complementary', { name: 'Details' });
  await expect(details).toBeVisible();
  for (const [width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await drawn(page);
    const box = await details.boundingBox();
    expect((box?.x ?? 0) + (box?.width ?? 0), `at ${width}`).toBeLessThanOrEqual(width);
    expect(await details.evaluate((e) => e.scrollWidth <= e.clientWidth), `at ${width}`).toBe(true);
  }
});

test('DSK-06 the longest name breaks where a line must end', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  await open(page, `sessions/${'A'.repeat(64)}/child`);
  await expect(page.getByText('is not connected, and so are its native children')).toBeVisible();
  const sideways = await page.evaluate(() =>
    [...document.querySelectorAll('main, main *')]
      .filter((e) => e.getBoundingClientRect().right > innerWidth && !e.matches('.sr-only'))
      .map((e) => `${e.tagName}.${e.className}`),
  );
  expect(sideways).toEqual([]);
});

test('DSK-06 the menu is one row at 360 pixels, whatever is counted in it', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    state.needs = Array.from({ length: 25 }, (_, i) => ({
      id: `mail:s${i}:m${i}`,
      sort: 'mail',
      title: `s${i} has not read 1 message`,
      detail: 'It is idle; give it a turn, and it reads.',
      since: Date.now() - 3_600_000,
      until: null,
      place: '',
      link: `#/sessions/s${i}`,
      urgency: 'now' as const,
      by: '',
      news: true,
    }));
    state.storage = { ...state.storage, ok: false, errors: 12 };
    await route.fulfill({ response, json: state });
  });
  await open(page, 'overview');
  const links = page.getByRole('navigation', { name: 'Main' }).getByRole('link');
  await expect(links.first()).toContainText('25');
  const boxes = await links.evaluateAll((all) =>
    all.filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().toJSON() as DOMRect),
  );
  expect(new Set(boxes.map((box) => Math.round(box.top + box.height / 2))).size).toBe(1);
  expect(Math.max(...boxes.map((box) => box.right))).toBeLessThanOrEqual(360);
});

test('DSK-06 the menu is laid out alike, whichever of its pages is shown', async ({ page }) => {
  await page.setViewportSize({ width: 768, height: 900 });
  const links = page.getByRole('navigation', { name: 'Main' }).locator('.top > li > a');
  const widths: Record<string, string> = {};
  for (const place of PLACES) {
    await open(page, await addressOf(page, place));
    await expect(links.filter({ hasText: 'Storage' })).toBeVisible(); // it comes a moment later
    widths[place] = (
      await links.evaluateAll((all) => all.map((link) => link.getBoundingClientRect().width.toFixed(1)))
    ).join(' ');
  }
  const first = widths[PLACES[0] ?? ''] ?? '';
  expect(widths).toEqual(Object.fromEntries(PLACES.map((place) => [place, first])));
});

test('DSK-06 no key on the sheet of keys is stretched, and a range is one', async ({ page }) => {
  await open(page, 'settings');
  for (const width of [390, 768, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await drawn(page);
    const heights = await page
      .locator('main dt kbd')
      .evaluateAll((keys) => keys.map((key) => Math.round(key.getBoundingClientRect().height)));
    expect(new Set(heights).size, `at ${width}: ${heights.join(', ')}`).toBe(1);
  }
  const answers = page.locator('dt', { has: page.locator('kbd', { hasText: /^4$/ }) });
  await expect(answers).toHaveText(/^1\s*–\s*4$/);
});

test('DSK-06 the messages of the last hour have one count on the overview', async ({ page }) => {
  await page.route('**/api/activity/hours', (route) =>
    route.fulfill({ json: { hours: [{ from: Date.now() - 3_600_000, messages: 98_765, wakes: 3 }] } }),
  );
  await open(page, 'overview');
  const told = /([\d,]+) messages?\s+in\s+the last hour/.exec(
    (await page.locator('main').textContent()) ?? '',
  );
  const number = page.getByRole('list', { name: 'Today' }).getByRole('listitem').first();
  await expect(number).toContainText('Messages an hour');
  await expect(number.locator('strong')).toHaveText(told?.[1]?.replaceAll(',', '') ?? 'none');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
