import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { drawn } from './fits';
import type { Agents } from '../src/lib/api';
import { violations } from './axe';
import { open } from './dashboard';
import { test } from './fresh';
import { overlaps } from './overlaps';
import { shot } from './shot';

// None of them needs another one: the longest files would keep one worker busy to the end.
test.describe.configure({ mode: 'parallel' });

test('DSK-06 the guide connects a found agent after showing the exact change', async ({ fresh }) => {
  const { page, home } = fresh;
  const settings = join(home, '.claude', 'settings.json');
  const before = '{\n  "model": "opus"\n}\n';
  await mkdir(join(home, '.claude'));
  await writeFile(settings, before);
  await open(page, 'overview');
  const guide = page.getByRole('region', { name: 'No session is connected yet' });
  const row = guide
    .getByRole('listitem')
    .filter({ has: page.locator('strong', { hasText: 'claude' }) })
    .last();
  await expect(row).toContainText('not connected');
  await expect(guide.locator('strong', { hasText: 'codex' }).locator('..')).toContainText('not found');
  await row.getByRole('button', { name: 'Connect… claude' }).click();
  const dialog = page.getByRole('dialog', { name: 'Connect claude?' });
  await expect(dialog).toContainText('Bridge will change 1 file');
  await expect(dialog.getByRole('region')).toHaveCount(0); // the lines come on demand (PGE-13)
  await expect(dialog.getByRole('button', { name: 'Connect', exact: true })).toBeInViewport();
  await dialog.getByRole('button', { name: `Show lines of ${settings}` }).click();
  await shot(page, 'agents-change');
  const diff = dialog.getByRole('region', { name: `Change of ${settings}` });
  await expect(diff).toContainText('"model": "opus"');
  await expect(diff).toContainText('hook claude SessionStart');
  await dialog.getByRole('button', { name: 'Not now' }).click();
  expect(await readFile(settings, 'utf8')).toBe(before);

  await row.getByRole('button', { name: 'Connect… claude' }).click();
  await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
  await expect(row.locator('[data-sign]')).toHaveAttribute('data-sign', 'good');
  await expect(guide).toContainText('claude is connected. Sessions that run already need a restart.');
  expect(await readFile(settings, 'utf8')).toContain('hook claude SessionStart');

  await row.getByRole('button', { name: 'Disconnect… claude' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disconnect', exact: true }).click();
  await expect(row).toContainText('not connected');
  expect(await readFile(settings, 'utf8')).toBe(before);
});

test('JOB-26 the owner lets sessions start agents, and takes it back; a session’s page says which holds', async ({
  fresh,
}) => {
  const { page, home } = fresh;
  const settings = join(home, '.claude', 'settings.json');
  await fresh.begin('--agent', 'claude', '--name', 'one', '--cwd', home, '--session', 's1');
  const onItsPage = async (words: string) => {
    await open(page, 'sessions/one');
    await page.getByText('Details', { exact: true }).click();
    await expect(page.locator('dt', { hasText: 'Starting agents' }).locator('+ dd')).toHaveText(words);
    await shot(page, 'session-starting');
    await open(page, 'settings');
  };
  await onItsPage('as its own settings say');
  const row = page.getByRole('listitem').filter({ has: page.locator('strong', { hasText: 'claude' }) });
  await row.getByRole('button', { name: 'Connect… claude' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Connect', exact: true }).click();
  await expect(row.locator('[data-sign]')).toHaveAttribute('data-sign', 'good');
  await onItsPage('asks you first');

  await row.getByRole('button', { name: 'Let it start agents… claude' }).click();
  const dialog = page.getByRole('dialog', { name: 'Let sessions of claude start agents?' });
  await expect(dialog).toContainText('Sessions may start agents on this PC without asking you.');
  await dialog.getByRole('button', { name: `Show lines of ${settings}` }).click();
  await expect(dialog.getByRole('region', { name: `Change of ${settings}` })).toContainText(
    'mcp__bridge__spawn_codex',
  );
  expect(await violations(page)).toEqual([]);
  await shot(page, 'agents-allow');
  await dialog.getByRole('button', { name: 'Not now' }).click();
  expect(await readFile(settings, 'utf8')).not.toContain('mcp__bridge__spawn_codex');

  await row.getByRole('button', { name: 'Let it start agents… claude' }).click();
  await dialog.getByRole('button', { name: 'Allow', exact: true }).click();
  await expect(row).toContainText('Sessions may start agents on this PC without asking you.');
  expect(await readFile(settings, 'utf8')).toContain('mcp__bridge__spawn_codex');
  await shot(page, 'agents-allowed');
  await page.setViewportSize({ width: 360, height: 800 });
  await drawn(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  expect(await page.evaluate(overlaps)).toEqual([]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await onItsPage('on this PC without asking you');

  await row.getByRole('button', { name: 'Ask me again… claude' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Ask me again', exact: true }).click();
  await expect(row).not.toContainText('without asking you');
  expect(await readFile(settings, 'utf8')).not.toContain('mcp__bridge__spawn_codex');
  await onItsPage('asks you first');
});

test('DSK-06 a file that changed while it was shown is not overwritten', async ({ fresh }) => {
  const { page, home } = fresh;
  await open(page, 'settings');
  await page.getByRole('button', { name: 'Connect… claude' }).click();
  const dialog = page.getByRole('dialog', { name: 'Connect claude?' });
  await expect(dialog).toContainText('Bridge will ');
  await mkdir(join(home, '.claude'));
  await writeFile(join(home, '.claude', 'settings.json'), '{"mine":true}');
  await dialog.getByRole('button', { name: 'Connect', exact: true }).click();
  await expect(dialog.getByRole('alert')).toContainText('nothing was changed');
  expect(await readFile(join(home, '.claude', 'settings.json'), 'utf8')).toBe('{"mine":true}');
});

test('DSK-06 the guide is gone when the first session appears', async ({ fresh }) => {
  const { page } = fresh;
  await open(page, 'overview');
  const guide = page.getByRole('heading', { name: 'No session is connected yet' });
  await expect(guide).toBeVisible();
  await fresh.begin('--agent', 'claude', '--name', 'first', '--cwd', fresh.home, '--session', 'one');
  await expect(guide).toHaveCount(0);
  await expect(page.locator('main [data-session="first"]')).toBeVisible();
});

test('DSK-06 NED-05 settings are kept in config.json, and a port counts from the next start', async ({
  fresh,
}) => {
  const { page, home } = fresh;
  const config = join(home, '.bridge', 'config.json');
  await writeFile(config, '{\n  "theirs": [1]\n}\n');
  await open(page, 'settings');
  await page.getByLabel('Quiet from').fill('22:00');
  await page.getByRole('button', { name: 'Save hours' }).click();
  await expect(page.getByRole('alert')).toContainText('desktop.quiet.to');
  await page.getByLabel('Quiet until').fill('07:30');
  await page.getByRole('button', { name: 'Save hours' }).click();
  await expect(page.getByText('It is quiet from 22:00 to 07:30.')).toBeVisible();
  await page.getByRole('checkbox', { name: 'Notifications' }).uncheck();
  await expect(page.getByText('Notifications are off.')).toBeVisible();
  await page.getByRole('checkbox', { name: 'Auto-wake: any mail wakes' }).check();
  await expect(page.getByText('Auto-wake is on for new sessions.')).toBeVisible();
  const port = page.getByRole('textbox', { name: 'Dashboard port' });
  await port.fill('70000');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('port must be between 0 and 65535');
  await port.fill('4999');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('It counts from the next start of the broker.')).toBeVisible();
  await expect(page.getByText(/Served on \d+ now; from the next start on 4999/)).toBeVisible();
  expect(JSON.parse(await readFile(config, 'utf8'))).toEqual({
    theirs: [1],
    port: 4999,
    autoWake: true,
    desktop: { notifications: false, quiet: { from: '22:00', to: '07:30' } },
  });
  await page.reload();
  await expect(page.getByRole('checkbox', { name: 'Notifications' })).not.toBeChecked();
  await expect(page.getByLabel('Quiet until')).toHaveValue('07:30');
});

test('VER-07 DSK-06 version, folder and licences are told', async ({ fresh }) => {
  const { page, home } = fresh;
  await open(page, 'settings');
  const about = page.getByRole('region', { name: 'About' });
  await expect(about).toContainText(/Bridge\s*0\.29\.16/);
  await expect(about.getByRole('code').filter({ hasText: join(home, '.bridge') })).toBeVisible();
  await about.getByText('Licences of what is built in').click();
  for (const [name, licence] of [
    ['modernc.org/sqlite', 'BSD-3-Clause'],
    ['svelte', 'MIT'],
  ] as const) {
    const row = about.locator('li').filter({ has: page.getByText(name, { exact: true }) });
    await expect(row).toContainText(licence);
  }
  expect(await about.getByText('see its text').count()).toBe(0);
  await about.getByRole('button', { name: 'MIT of svelte' }).click();
  await expect(page.getByRole('dialog', { name: 'svelte' })).toContainText('Permission is hereby granted');
});

test(`DSK-06 the guide, the change of an agent and a licence pass axe`, async ({ fresh }) => {
  const { page } = fresh;
  await open(page, 'overview');
  await page.getByRole('button', { name: 'Connect… claude' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Connect… claude' }).click();
  const dialog = page.getByRole('dialog');
  await dialog
    .getByRole('button', { name: /^Show lines/ })
    .first()
    .click();
  await dialog.getByRole('region').first().waitFor();
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await open(page, 'settings');
  await page.getByText('Licences of what is built in').click();
  await page.getByRole('button', { name: 'MIT of svelte' }).click();
  expect(await violations(page)).toEqual([]);
});

test('DSK-06 the guide and the change of an agent fit every width', async ({ fresh }) => {
  const { page } = fresh;
  await open(page, 'overview');
  const guide = page.getByRole('button', { name: 'Connect… claude' });
  await guide.waitFor();
  for (const width of [360, 800, 1600]) {
    await page.setViewportSize({ width, height: 800 });
    await drawn(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    expect(await page.evaluate(overlaps), `at ${width}`).toEqual([]);
    await guide.click();
    await page
      .getByRole('button', { name: /^Show lines/ })
      .first()
      .click();
    await page.getByRole('dialog').getByRole('region').first().waitFor();
    const box = await page.getByRole('dialog').boundingBox();
    expect((box?.x ?? -1) >= 0 && (box?.x ?? 0) + (box?.width ?? 0) <= width, `at ${width}`).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});

test('DOC-11 automatic backups are switched on and off, and the file says so', async ({ fresh }) => {
  const { page, home } = fresh;
  await open(page, 'settings');
  const backups = page.getByRole('checkbox', { name: 'Automatic backups' });
  await expect(backups).not.toBeChecked();
  await backups.check();
  await expect(page.getByText('Automatic backups are on.')).toBeVisible();
  expect(await readFile(join(home, '.bridge', 'config.json'), 'utf8')).toContain('"auto": true');
  await backups.uncheck();
  await expect(page.getByText('Automatic backups are off.')).toBeVisible();
});

test('PGE-13 without an agent the page says where Bridge looked and how to get one', async ({ fresh }) => {
  const { page } = fresh;
  await page.route('**/api/agents', async (route) => {
    const response = await route.fetch();
    const list = (await response.json()) as Agents;
    const agents = list.agents.map((agent) => ({ ...agent, found: false, path: '', version: '' }));
    await route.fulfill({ response, json: { ...list, agents } });
  });
  await open(page, 'overview');
  const guide = page.getByRole('region', { name: 'No session is connected yet' });
  await expect(guide).toContainText('Bridge found no agent CLI on this computer.');
  await expect(guide).toContainText('npm install -g @openai/codex');
  await guide.getByText(/^Bridge looked in \d+ folders? of the PATH$/).click();
  await expect(
    guide
      .getByRole('listitem')
      .filter({ hasText: /\/bin$/ })
      .first(),
  ).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await shot(page, 'first-none');
});

test('PGE-13 the first steps tick', async ({ fresh }) => {
  const { page } = fresh;
  await fresh.begin('--agent', 'claude', '--name', 'first', '--cwd', fresh.home, '--session', 'one');
  await open(page, 'overview');
  const steps = page.getByRole('list', { name: 'First steps' });
  await expect(steps).toContainText('Start two sessions: 1 of 2');
  await fresh.begin('--agent', 'claude', '--name', 'second', '--cwd', fresh.home, '--session', 'two');
  await expect(steps.locator('[data-sign=good]')).toHaveCount(2);
  await shot(page, 'first-steps');
});

test('PGE-12 compact rows stand closer, stay so, and leave a phone its targets', async ({ fresh }) => {
  const { page } = fresh;
  const link = page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Settings' });
  const height = () => link.evaluate((e) => e.getBoundingClientRect().height);
  await open(page, 'settings');
  const roomy = await height();
  await page.getByRole('radio', { name: 'Compact rows' }).check();
  await expect.poll(height).toBeLessThan(roomy);
  expect(await violations(page)).toEqual([]);
  await page.reload();
  await expect(page.getByRole('radio', { name: 'Compact rows' })).toBeChecked();
  expect(await height()).toBeLessThan(roomy);
  expect(await height()).toBeGreaterThanOrEqual(24); // the least target of WCAG 2.2
  await page.setViewportSize({ width: 390, height: 844 });
  const more = page.getByRole('navigation', { name: 'Main' }).getByRole('link').first();
  await expect.poll(() => more.evaluate((e) => e.getBoundingClientRect().height)).toBeGreaterThanOrEqual(44);
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('radio', { name: 'Comfortable rows' }).check();
  await expect.poll(height).toBe(roomy);
});
