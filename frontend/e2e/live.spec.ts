import { STEP_NAMES, STEPS } from '../src/features/delivery/delivery';
import {
  BINARY,
  expect,
  open,
  someSession,
  start,
  stateOf,
  stop,
  tellEveryone,
  test,
  unique,
} from './dashboard';

test('DSK-06 the overview names every live session with state, kind, folder and age', async ({ page }) => {
  await open(page, 'overview');
  for (const peer of (await stateOf(page)).peers) {
    const row = page.locator(`main [data-session="${peer.name}"]`);
    await expect(row).toContainText(peer.name);
    await expect(row).toContainText(peer.agent);
    await expect(row).toContainText(/busy|idle/);
    await expect(row.locator('.folder')).toHaveAttribute('title', peer.cwd);
    await expect(row.locator('.since')).toContainText(/now|\d+ (s|min|h|d)/);
  }
});

test('DSK-06 a new message appears without reload, with its delivery strip', async ({ page }) => {
  await open(page, 'overview');
  await page.evaluate(() => Object.assign(window, { neverReloaded: true }));
  const text = unique('appears by itself');
  await tellEveryone(page, text);
  const row = page.locator('main [data-message]', { hasText: text });
  await expect(row).toBeVisible();
  await expect(row.getByRole('button', { name: /^Delivery: / })).toBeVisible();
  expect(await page.evaluate(() => 'neverReloaded' in window)).toBe(true);
});

test('PGE-12 messages outside the view follow within two seconds, and at once when they are near', async ({
  page,
}) => {
  await page.setViewportSize({ width: 1280, height: 240 });
  await open(page, 'overview');
  const rows = page.locator('main section[aria-labelledby=stream] ol');
  const began = Date.now();
  await rows.evaluate((list) => {
    const counted = Object.assign(window, { updates: 0 });
    new MutationObserver(() => counted.updates++).observe(list, { childList: true });
  });
  const texts = Array.from({ length: 6 }, (_, i) => unique(`outside the view ${i}`));
  for (const text of texts) {
    const fetched = page.waitForResponse((response) => response.url().includes('/api/state?since='));
    await tellEveryone(page, text);
    await fetched;
  }
  for (const text of texts) await expect(rows.locator('li', { hasText: text })).toHaveCount(1);
  const updates = await page.evaluate(() => (window as unknown as { updates: number }).updates);
  expect(updates).toBeLessThanOrEqual(Math.ceil((Date.now() - began) / 2000));

  await rows.scrollIntoViewIfNeeded();
  const text = unique('in the view');
  await tellEveryone(page, text);
  await expect(rows.locator('li', { hasText: text })).toBeVisible();
});

test('PGE-12 a new message fetches the state and the marks of the picture alone', async ({ page }) => {
  await page.clock.setFixedTime(new Date()); // the numbers are fetched each minute
  await open(page, 'overview');
  await expect(page.getByText('Messages an hour')).toBeVisible(); // fetched after the state
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const text = unique('one event');
  await tellEveryone(page, text);
  await expect(page.locator('main [data-message]', { hasText: text })).toBeVisible();
  expect(asked.filter((path) => path !== '/api/activity')).toEqual(['/api/state']);
});

test('DSK-06 the sessions of a demo talk by themselves, and the page shows it', async ({ page }) => {
  const { url, child } = await start(BINARY, ['demo', '--no-open', '--port', '0']);
  try {
    await page.goto(url);
    await expect(page.locator('main [data-session]')).toHaveCount(3);
    await expect(page.locator('main [data-message]').nth(1)).toBeVisible({ timeout: 60_000 });
  } finally {
    await stop(child);
  }
});

test('DSK-06 opening the strip shows each step of each recipient with its time or why not', async ({
  page,
}) => {
  await open(page, 'overview');
  const text = unique('look at my steps');
  await tellEveryone(page, text);
  await page
    .locator('main [data-message]', { hasText: text })
    .getByRole('button', { name: /^Delivery: / })
    .click();
  const details = page.getByRole('complementary', { name: 'Details' });
  const { peers, messages } = await stateOf(page);
  const sent = messages.find((m) => m.body === text);
  expect(sent?.deliveries.map((d) => d.name).sort()).toEqual(peers.map((p) => p.name).sort());
  for (const delivery of sent?.deliveries ?? []) {
    const section = details.locator('section', {
      has: page.getByRole('heading', { name: delivery.name, exact: true }),
    });
    await expect(section.locator('.step')).toHaveText(STEPS.map((step) => STEP_NAMES[step]));
    await expect(section.locator('.at').nth(1)).toContainText(/\d\d:\d\d:\d\d/); // durable
    for (const { evidence } of delivery.stages) await expect(section).toContainText(evidence);
  }
});

test('DSK-06 the stream is filtered by text and by person', async ({ page }) => {
  await open(page, 'overview');
  const text = unique('needle');
  await tellEveryone(page, text);
  await page.getByRole('searchbox', { name: 'Filter messages' }).fill(text);
  await expect(page.locator('main [data-message]')).toHaveCount(1);
  await page.getByRole('searchbox', { name: 'Filter messages' }).fill(unique('nothing has this'));
  await expect(page.locator('main [data-message]')).toHaveCount(0);
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await page.getByRole('combobox', { name: 'Person' }).selectOption(await someSession(page));
  await expect(page.locator('main [data-message]').first()).toContainText(/→/);
});

test('hostile text stays text', async ({ page }) => {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await open(page, `sessions/${await someSession(page)}`);
  const mark = unique('hostile');
  await tellEveryone(
    page,
    `${mark} <img src=x onerror="document.title='owned'"> [x](javascript:alert(1)) ![y](https://example.org/y.png) [out](https://example.org/)`,
  );
  const block = page.locator('main [data-message]', { hasText: mark });
  await expect(block).toContainText('<img src=x');
  await expect(block.locator('img, script, iframe')).toHaveCount(0);
  // Even an image is only a link that says where it goes.
  await expect(block.locator('.prose a')).toHaveText(['y (example.org)', 'out (example.org)']);
  await expect(block.getByRole('link', { name: 'out (example.org)' })).toHaveAttribute('rel', /noopener/);
  await expect(page).not.toHaveTitle('owned');
  expect(errors).toEqual([]);
});
