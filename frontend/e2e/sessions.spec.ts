import { violations } from './axe';
import { CLOCK, expect, open, pattern, someSession, test, STATE, wholeState } from './dashboard';
import { misfits } from './fits';
import { test as fresh } from './fresh';
import { full, SESSIONS, sessionName } from './full';

test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

test('PGE-08 the list is sorted and filtered, and its address keeps that', async ({ page }) => {
  await full(page);
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, 'sessions');
  const rows = page.locator('main tr[data-session]');
  const column = (name: string) => page.getByRole('columnheader', { name });
  await expect(rows).toHaveCount(SESSIONS);
  await expect(rows.first()).toContainText('busy');
  await column('Name').getByRole('button').click();
  await expect(column('Name')).toHaveAttribute('aria-sort', 'ascending');
  await expect(rows.first()).toHaveAttribute('data-session', 'antigravity-billing-15');
  await column('Name').getByRole('button').click();
  await expect(column('Name')).toHaveAttribute('aria-sort', 'descending');
  await expect(rows.last()).toHaveAttribute('data-session', 'antigravity-billing-15');
  await column('Unread').getByRole('button').click();
  await expect(column('Unread')).toHaveAttribute('aria-sort', 'descending');
  await expect(rows.first().locator('td.unread')).toContainText('2');

  await page.keyboard.press('/');
  await page.keyboard.type('codex shop');
  await expect(rows).toHaveCount(2);
  await page.getByRole('combobox', { name: 'State' }).selectOption('unread');
  await expect(page.getByText('No session matches.')).toBeVisible();
  await page.reload();
  await expect(page.getByRole('searchbox', { name: 'Filter by name' })).toHaveValue('codex shop');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await expect(rows).toHaveCount(SESSIONS);
  expect(await violations(page)).toEqual([]);
});

test('PGE-08 on a phone each session is a block, and a choice sorts', async ({ page }) => {
  await full(page);
  await page.setViewportSize({ width: 360, height: 760 });
  await open(page, 'sessions');
  const rows = page.locator('main tr[data-session]');
  await page.getByRole('combobox', { name: 'Sort by' }).selectOption('name');
  await expect(rows.first()).toHaveAttribute('data-session', 'antigravity-billing-15');
  await expect(rows.first()).toContainText('billing');
  expect(await page.evaluate(misfits)).toEqual([]);
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/#\/sessions\/antigravity-billing-15$/);
});

test('PGE-08 a session’s page shows its conversation first, and its facts on demand', async ({ page }) => {
  await full(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  const name = sessionName(0);
  await open(page, `sessions/${name}`);
  const picture = page.getByRole('figure', { name: 'Lately' });
  const talk = page.locator('main .talk');
  await expect(page.locator('main summary', { hasText: 'Details' })).toBeVisible();
  await expect(picture).toHaveCount(0);
  const box = await talk.boundingBox();
  expect(box?.height ?? 0).toBeGreaterThan(400);
  await page.getByText('Details', { exact: true }).click();
  await expect(picture).toBeVisible();
  await expect(page.getByRole('region', { name: 'Diagnostics' })).toBeVisible();
  await page.getByText('Details', { exact: true }).click();
  await expect(picture).toHaveCount(0);
});

fresh('PGE-08 ended sessions are listed on demand', async ({ fresh }) => {
  const { page } = fresh;
  await fresh.begin('--agent', 'codex', '--name', 'stays', '--cwd', fresh.home);
  const goes = await fresh.begin('--agent', 'claude', '--name', 'goes', '--cwd', fresh.home);
  await open(page, 'sessions');
  const rows = page.locator('main tr[data-session]');
  await expect(rows).toHaveCount(2);
  await goes.end();
  await expect(rows).toHaveCount(1);
  await page.getByRole('checkbox', { name: 'Ended sessions' }).check();
  await expect(rows).toHaveCount(2);
  await expect(rows.last()).toContainText('ended');
  await expect(rows.last()).toContainText('goes');
  await page.reload();
  await expect(rows).toHaveCount(2);
  await page.getByRole('link', { name: 'goes' }).last().click();
  await expect(page.getByText('not connected', { exact: true })).toBeVisible();
});

test('PGE-10 back shows a list where it was scrolled to, and keeps the filter of the Overview', async ({
  page,
}) => {
  await full(page);
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, 'sessions');
  const scroller = page.locator('main .scroll').first();
  const top = () => scroller.evaluate((node) => Math.round(node.scrollTop));
  await expect
    .poll(() => scroller.evaluate((node) => node.scrollHeight - node.clientHeight))
    .toBeGreaterThan(500);
  const link = page
    .getByRole('main')
    .getByRole('link', { name: sessionName(30) })
    .first();
  await link.scrollIntoViewIfNeeded();
  const left = await top();
  expect(left).toBeGreaterThan(100);
  await link.click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText(sessionName(30));
  await page.goBack();
  await expect.poll(top).toBe(left);
  // A link to the same page starts at its top.
  await page.goForward();
  await page
    .getByRole('navigation', { name: 'Main' })
    .getByRole('link', { name: 'Sessions', exact: true })
    .click();
  await expect(page.getByRole('heading', { level: 1, name: 'Sessions' })).toBeFocused();
  expect(await top()).toBe(0);

  await page.goto('/#/overview');
  await page.getByLabel('Filter messages').fill('tests');
  await page.goto('/#/decisions');
  await page.goBack();
  await expect(page.getByLabel('Filter messages')).toHaveValue('tests');
});

test('PGE-08 a session whose state is not known since a restart says so, and since when', async ({
  page,
}) => {
  const name = await someSession(page);
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    state.peers = state.peers.map((p) => (p.name === name ? { ...p, unknownSince: Date.now() - 60_000 } : p));
    await route.fulfill({ response, json: state });
  });
  await open(page, 'sessions');
  await page.getByRole('combobox', { name: 'State' }).selectOption('unknown');
  const rows = page.locator('main tr[data-session]');
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText(name);
  await expect(rows).toContainText('not known');
  await page.goto(`/#/sessions/${encodeURIComponent(name)}`);
  const header = page.locator('main header').first();
  await expect(header).toContainText('not known');
  await expect(header).toContainText(pattern(/since /, CLOCK));
  expect(await violations(page)).toEqual([]);
});
