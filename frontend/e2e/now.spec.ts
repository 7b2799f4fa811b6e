import type { Hour } from '../src/lib/api';
import { bytes } from '../src/lib/text';
import { CLOCK, expect, open, pattern, test } from './dashboard';
import { violations } from './axe';
import { looksRight } from './looks';
import { full, sessionName, SESSIONS } from './full';

// A page that is closing may still be asking.
test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

const figure = { name: 'Now' };

/** Seven of the full Bridge are busy, six more have a child at work. */
const AWAKE = 13;

test('DSK-06 now, as a picture: each session has a lane, and its marks open by keys', async ({ page }) => {
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  for (const name of ['api', 'docs', 'web']) {
    await expect(picture.getByRole('link', { name })).toBeVisible();
  }
  const marks = picture.getByRole('button', { name: /^\d+ marks/ });
  await expect(marks).not.toHaveAccessibleName(/^0 marks/);
  await marks.focus();
  await page.keyboard.press('End');
  const card = picture.locator('.card');
  await expect(card).toBeVisible();
  const said = picture.locator('[aria-live]');
  await expect(said).not.toBeEmpty();
  const last = await said.textContent();
  await page.keyboard.press('Home');
  await expect(said).not.toHaveText(last ?? '');
  await page.keyboard.press('Escape');
  await expect(card).toHaveCount(0);
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('complementary', { name: 'Details' })).toBeVisible();
});

test('PGE-07 the picture says what its marks mean', async ({ page }) => {
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  await expect(picture.getByText('your answer is still needed')).toBeHidden();
  await picture.getByText('What the marks mean').click();
  await expect(picture.getByText('your answer is still needed')).toBeVisible();
  await looksRight(page, 'legend', [360, 1440], 1100);
});

test('DSK-06 the same as a table passes axe, and opens what it names', async ({ page }) => {
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  await picture.getByRole('button', { name: 'As a table' }).click();
  const rows = picture.getByRole('row');
  await expect(rows.filter({ hasText: 'message' }).first()).toContainText(/read \d\d:\d\d|waits to be read/);
  expect(await violations(page)).toEqual([]);
  await rows.filter({ hasText: 'message' }).first().getByRole('button').click();
  await expect(page.getByRole('complementary', { name: 'Details' })).toBeVisible();
});

test('DSK-06 the picture follows the present unless the reader moved it', async ({ page }) => {
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  const now = picture.getByRole('button', { name: 'Now' });
  await expect(now).toHaveAttribute('aria-pressed', 'true');
  await expect(picture.getByRole('button', { name: 'Later' })).toBeDisabled();
  await picture.getByRole('button', { name: 'Earlier' }).click();
  await expect(now).toHaveAttribute('aria-pressed', 'false');
  await expect(picture.locator('line.present')).toHaveCount(0);
  await picture.getByRole('button', { name: 'Later' }).click();
  await expect(now).toHaveAttribute('aria-pressed', 'true');
  await expect(picture.locator('line.present')).toHaveCount(1);
  await picture.getByRole('button', { name: '8 hours' }).click();
  await page.reload();
  await expect(picture.getByRole('button', { name: '8 hours' })).toHaveAttribute('aria-pressed', 'true');
});

test('DSK-06 numbers worth a glance open the page behind them', async ({ page }) => {
  await open(page, 'overview');
  const today = page.getByRole('list', { name: 'Today' });
  // They are counted once a minute: the page may have been loaded before the last count.
  await expect(async () => {
    await page.reload();
    const { hours } = (await (await page.request.get('/api/activity/hours')).json()) as { hours: Hour[] };
    expect(hours.length).toBe(24);
    const sum = hours.reduce((all, hour) => all + hour.messages, 0);
    expect(sum).toBeGreaterThan(0);
    await expect(
      today.getByRole('img', { name: new RegExp(`^${sum} in 24 hours, at most \\d+ in one`) }),
    ).toBeVisible({ timeout: 2000 });
  }).toPass();
  await today.getByRole('link', { name: 'Messages an hour' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Search' })).toBeVisible();
});

test('DSK-06 JOB-21 limits with their reset, and what the home takes, open the page behind them', async ({
  page,
}) => {
  const resetsAt = Date.now() + 3_600_000;
  const agents = [
    {
      agent: 'codex',
      asOf: Date.now(),
      plan: 'plus',
      note: '',
      limits: [{ name: '5 h', usedPercent: 93, resetsAt }],
    },
  ];
  await page.route('**/api/usage/kept', (route) => route.fulfill({ json: { agents } }));
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await open(page, 'overview');
  const today = page.getByRole('list', { name: 'Today' });
  const limit = today.getByRole('link', { name: 'codex limit' });
  await expect(limit).toContainText(pattern(/5 h 93 %, resets /, CLOCK));
  const response = await page.request.get('/api/storage/sizes');
  const { points } = (await response.json()) as { points: { total: number }[] };
  const size = today.getByRole('link', { name: /^Storage/ });
  if (points.length > 0) await expect(size).toContainText(bytes(points.at(-1)?.total ?? 0));
  expect(asked).toContain('/api/usage/kept');
  expect(asked).not.toContain('/api/usage'); // a glance starts no agent
  expect(await violations(page)).toEqual([]);
  await limit.click();
  await expect(page.getByRole('heading', { level: 1, name: 'Runs' })).toBeVisible();
});

test('NED-04 needs you leads to what is allowed from now on', async ({ page }) => {
  await open(page, 'needs');
  await page.getByRole('link', { name: 'Allowed from now on' }).focus();
  await page.keyboard.press('Enter');
  const rules = page.getByRole('heading', { level: 2, name: 'Allowed from now on' });
  await expect(rules).toBeFocused();
  await expect(rules).toBeInViewport();
  await open(page, 'overview');
  await page.getByRole('link', { name: 'Settings' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Settings' })).toBeFocused();
});

test('DSK-06 a session has a picture of its own', async ({ page }) => {
  await open(page, 'sessions/api');
  await page.getByText('Details', { exact: true }).click();
  const picture = page.getByRole('figure', { name: 'Lately' });
  await expect(picture.getByRole('link', { name: 'api' })).toBeVisible();
  await expect(picture.getByRole('button', { name: /^[1-9]\d* marks/ })).toBeVisible();
});

test('DSK-06 a drag moves the drawing itself, and what came into view is drawn at rest', async ({ page }) => {
  await full(page);
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  const now = picture.getByRole('button', { name: 'Now' });
  const ticks = picture.locator('svg .tick').first();
  await picture.getByRole('button', { name: '15 min' }).click();
  await expect(picture.getByRole('button', { name: /^[1-9]\d* marks/ })).toBeVisible();
  const before = await ticks.textContent();
  // Each place that the drawing was moved to, in order.
  await picture.locator('svg.drawing').evaluate((drawing: SVGElement) => {
    const moved: string[] = [];
    new MutationObserver(() => moved.push(drawing.style.transform)).observe(drawing, {
      attributeFilter: ['style'],
    });
    Object.assign(window, { moved });
  });
  const moved = () => page.evaluate(() => (window as unknown as { moved: string[] }).moved);
  await picture.locator('.marks').scrollIntoViewIfNeeded();
  const box = await picture.locator('.marks').boundingBox();
  if (box === null) throw new Error('no picture');
  const middle = { x: box.x + box.width / 2, y: box.y + 60 };
  const drag = async (by: number) => {
    await page.mouse.move(middle.x, middle.y);
    await page.mouse.down();
    await page.mouse.move(middle.x + by, middle.y, { steps: 8 });
    await page.mouse.up();
  };
  await drag(-200); // nothing is later than the present
  expect(await moved()).toEqual([]);
  await expect(now).toHaveAttribute('aria-pressed', 'true');
  await drag(200);
  await expect(now).toHaveAttribute('aria-pressed', 'false');
  await expect(ticks).not.toHaveText(before ?? '');
  const places = await moved();
  expect(places).toContain('translateX(25px)');
  expect(places.at(-1)).toBe('');
  await expect(page.getByRole('complementary', { name: 'Details' })).toHaveCount(0); // a drag is no click
  const count = (await moved()).length;
  await page.mouse.move(middle.x, middle.y);
  await page.mouse.down({ button: 'right' });
  await page.mouse.move(middle.x + 100, middle.y, { steps: 4 });
  await page.mouse.up({ button: 'right' });
  await page.mouse.move(middle.x, middle.y, { steps: 4 });
  expect(await moved()).toHaveLength(count); // only the first button drags
  await drag(300);
  await drag(-400); // the present goes on meanwhile
  await drag(-400);
  await expect(now).toHaveAttribute('aria-pressed', 'true');
});

test('DSK-06 a full Bridge fits every width: those at work first, the quiet folded', async ({ page }) => {
  await full(page);
  await open(page, 'overview');
  const picture = page.getByRole('figure', figure);
  await expect(picture.getByRole('link', { name: sessionName(0) })).toBeVisible();
  await expect(picture.locator('.names > li')).toHaveCount(8);
  await expect(picture).toContainText('28 quiet sessions folded');
  const sessions = page.locator('main [data-session]');
  await expect(sessions.first()).toContainText('busy');
  await expect(sessions.filter({ visible: true })).toHaveCount(AWAKE);
  await expect(page.getByRole('list', { name: 'Today' })).toContainText('codex today');
  await expect(page.getByText(`${SESSIONS - AWAKE} more sessions`, { exact: true })).toBeVisible();
  await looksRight(page, 'full', [360, 800, 1440, 1920]);
  await picture.getByRole('button', { name: 'Show all' }).click();
  await expect(picture.locator('.names > li')).toHaveCount(SESSIONS);
});

test('DSK-06 no word of the table is broken but those of unknown length', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, 'overview');
  await page.getByRole('button', { name: 'As a table' }).click();
  const kinds = page.locator('main table td.kind');
  await kinds.first().waitFor();
  const lines = (width: number) =>
    kinds.evaluateAll((cells, width) => {
      const table = cells[0]?.closest('table');
      if (table) table.style.width = `${width}px`;
      return cells.map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
      });
    }, width);
  for (const width of [1100, 800, 600]) expect(new Set(await lines(width)), `${width}`).toEqual(new Set([1]));
});
