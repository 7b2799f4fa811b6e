import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, type Page } from '@playwright/test';
import type { Decision } from '../src/lib/api';
import { counts } from './counts';
import { open } from './dashboard';
import { looksRight } from './looks';
import { config, pair, settings, test } from './pcs';

async function decisionsOf(page: Page, path = ''): Promise<Decision[]> {
  const response = await page.request.get(new URL(`/api/decisions${path}`, page.url()).href);
  return ((await response.json()) as { decisions: Decision[] }).decisions;
}

test('PGE-04 a decision is pinned, revised and withdrawn in two clicks each', async ({ fresh }) => {
  const { page } = fresh;
  const api = await fresh.begin('--agent', 'codex', '--name', 'api', '--session', 's1', '--cwd', fresh.home);
  const web = await fresh.begin(
    '--agent',
    'codex',
    '--name',
    'web',
    '--session',
    's2',
    '--cwd',
    '/elsewhere',
  );
  await api.call('peers');
  await web.call('peers');
  await open(page, 'decisions');
  let counted = await counts(page);
  await page.getByRole('button', { name: 'Pin a decision…' }).click();
  const pinning = page.getByRole('dialog', { name: 'Pin a decision' });
  await expect(
    pinning.getByRole('textbox', { name: 'Topic' }).or(pinning.getByRole('combobox')),
  ).toBeFocused();
  await expect(pinning.getByRole('button', { name: 'Pin', exact: true })).toBeDisabled();
  await page.keyboard.type('Database');
  await page.keyboard.press('Tab');
  await page.keyboard.type('We use SQLite');
  await expect(pinning.locator('[data-told]')).toHaveText('Bridge tells 2 connected sessions.');
  await pinning.getByRole('button', { name: 'Pin', exact: true }).click();
  await expect(pinning).toBeHidden();
  expect((await counted()).clicks).toBe(2);
  const entry = page.locator('[data-decision]', { hasText: 'database' });
  await expect(entry.locator('.prose')).toHaveText('We use SQLite');
  await expect(entry).toContainText('read by 0 of 2');
  expect(await api.call('inbox')).toContain('We use SQLite');

  counted = await counts(page);
  await entry.getByRole('button', { name: 'Revise…' }).click();
  const revising = page.getByRole('dialog', { name: 'Revise “database”' });
  await expect(revising.getByRole('textbox', { name: 'Decision' })).toBeFocused();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('We use Postgres');
  await revising.getByRole('button', { name: 'Pin the revision' }).click();
  await expect(entry.locator('.prose')).toHaveText('We use Postgres');
  expect((await counted()).clicks).toBe(2);

  await entry.getByRole('button', { name: 'Withdraw…' }).click();
  const asked = page.getByRole('dialog', { name: 'Withdraw “database”?' });
  await expect(asked.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await page.keyboard.press('Enter'); // what is focused changes nothing
  await expect(asked).toBeHidden();
  expect(await decisionsOf(page)).toHaveLength(1);
  counted = await counts(page);
  await entry.getByRole('button', { name: 'Withdraw…' }).click();
  await asked.getByRole('textbox', { name: /^Reason/ }).focus();
  await page.keyboard.type('it is too slow');
  await looksRight(page, 'withdraw-dialog');
  await asked.getByRole('button', { name: 'Withdraw', exact: true }).click();
  await expect(entry).toHaveCount(0);
  expect((await counted()).clicks).toBe(2);
  expect(await decisionsOf(page)).toEqual([]);
  const inbox = await api.call('inbox');
  expect(inbox).toContain('Withdrawn: it is too slow');

  await open(page, 'decisions/database');
  const newest = page.locator('main ol > li').first();
  await expect(newest.locator('.state')).toHaveText('withdrawn');
  await expect(newest).toContainText('Withdrawn: it is too slow');
  await expect(page.locator('main ol > li .state')).toHaveText(['withdrawn', 'superseded', 'superseded']);
  await looksRight(page, 'withdrawn-topic');
});

test('PGE-04 the scope is chosen, and whoever changed a decision meanwhile is not overwritten', async ({
  fresh,
}) => {
  const { page } = fresh;
  const api = await fresh.begin('--agent', 'codex', '--name', 'api', '--session', 's1', '--cwd', '/src/shop');
  const web = await fresh.begin('--agent', 'codex', '--name', 'web', '--session', 's2', '--cwd', '/src/site');
  await api.call('peers');
  await web.call('peers');
  await open(page, 'decisions');
  const pin = page.getByRole('button', { name: 'Pin a decision…' });
  const dialog = page.getByRole('dialog');
  const told = dialog.locator('[data-told]');
  const fill = async (topic: string, text: string) => {
    await pin.click();
    await dialog.getByLabel('Topic').fill(topic);
    await dialog.getByLabel('Decision', { exact: true }).fill(text);
  };
  await fill('style', 'Tabs');
  await dialog.getByRole('radio', { name: 'one project' }).check();
  await dialog.getByRole('combobox', { name: 'Project' }).selectOption('/src/shop');
  await expect(told).toHaveText('Bridge tells 1 connected session.');
  await looksRight(page, 'pin-dialog');
  await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
  await expect(dialog).toBeHidden();
  await fill('lunch', 'At noon');
  await dialog.getByRole('radio', { name: 'some sessions' }).check();
  await expect(told).toHaveText('Choose for whom it is.');
  await dialog.getByRole('checkbox', { name: 'web' }).check();
  await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
  await expect(dialog).toBeHidden();
  expect((await decisionsOf(page)).map((d) => [d.topic, d.scope])).toEqual([
    ['lunch', { sessions: ['web'] }],
    ['style', { project: '/src/shop' }],
  ]);
  await looksRight(page, 'decisions-pinned');

  // A session decides while the owner reads the question.
  await page
    .locator('[data-decision]', { hasText: 'style' })
    .getByRole('button', { name: 'Withdraw…' })
    .click();
  await api.call('decide', { topic: 'style', text: 'Spaces' });
  await dialog.getByRole('button', { name: 'Withdraw', exact: true }).click();
  await expect(dialog.getByRole('alert')).toContainText('the decision on "style" has changed');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect((await decisionsOf(page)).find((d) => d.topic === 'style')?.text).toBe('Spaces');

  await fill('STYLE', 'Both');
  await expect(dialog.getByRole('status').first()).toContainText('It replaces the decision “Spaces”.');
});

test('SEC-12 PGE-04 what came from a paired PC is withdrawn in two clicks, here and there', async ({
  fresh,
  laptop,
}) => {
  const { page } = fresh;
  await pair(page, laptop);
  const allow = (file: string, name: string, other: string) => {
    const before = JSON.parse(settings(name)) as { network: object };
    return writeFile(
      file,
      JSON.stringify({
        ...before,
        network: { ...before.network, enabled: true, decisions: { allowPeers: [other] } },
      }),
    );
  };
  await allow(config(fresh), 'desk', 'laptop');
  await allow(join(laptop.home, '.bridge', 'config.json'), 'laptop', 'desk');
  for (const topic of ['database', 'editor']) {
    expect((await laptop.run(['decide', topic, `As laptop has ${topic}`, '--scope', 'all'])).code).toBe(0);
  }
  await expect(async () => expect(await decisionsOf(page)).toHaveLength(2)).toPass();
  await open(page, 'network');
  const counted = await counts(page);
  await page.getByRole('button', { name: 'Withdraw its decisions… laptop' }).click();
  const asked = page.getByRole('dialog', { name: 'Withdraw the decisions of laptop?' });
  await expect(asked.getByRole('listitem')).toHaveText(['editor', 'database']);
  await expect(asked.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await looksRight(page, 'withdraw-all');
  await asked.getByRole('button', { name: 'Withdraw 2 decisions' }).click();
  await expect(asked).toBeHidden();
  expect((await counted()).clicks).toBe(2);
  expect(await decisionsOf(page)).toEqual([]);
  await expect(async () =>
    expect((await laptop.run(['decisions'])).out).toContain('Nothing is decided yet'),
  ).toPass();
  await page.getByRole('button', { name: 'Withdraw its decisions… laptop' }).click();
  await expect(asked).toContainText('No decision in force came from it.');
});
