import { expect } from '@playwright/test';
import { test, type Fresh } from './fresh';
import { looksRight } from './looks';
import type { Session } from './session';

/** Has two sessions answer each other n times, each after it has read. */
async function exchange(n: number, web: Session, api: Session): Promise<void> {
  for (let i = 0; i < n; i++) {
    const [from, to, name] = i % 2 === 0 ? ([web, api, 'api'] as const) : ([api, web, 'web'] as const);
    await from.call('send', { to: name, message: `answer ${String(i)}` });
    await to.call('inbox');
  }
}

async function two({ page, begin }: Fresh): Promise<[Session, Session]> {
  const web = await begin('--agent', 'claude', '--name', 'web', '--session', 's1');
  const api = await begin('--agent', 'claude', '--name', 'api', '--session', 's2');
  await page.goto(new URL('/#/needs', page.url()).href);
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  return [web, api];
}

test('QUI-02 two sessions that only write each other are paused and resumed on the page', async ({
  fresh,
}) => {
  const { page } = fresh;
  const [web, api] = await two(fresh);
  await exchange(9, web, api);
  const title = 'api and web have exchanged 9 messages: let them go on, or pause';
  const decide = page.getByRole('region', { name: 'Your decision lets work continue' });
  await expect(decide.getByText(title)).toBeVisible();
  await expect(decide.getByRole('listitem')).toHaveCount(1);
  await expect(page.getByRole('navigation', { name: 'Main' }).getByText('1', { exact: true })).toBeVisible();
  await looksRight(page, 'exchange');

  await decide.getByRole('button', { name: 'Pause' }).click();
  const quiet = page.getByRole('region', { name: 'Good to know' });
  await expect(quiet.getByText('api and web are paused')).toBeVisible();
  await expect(page.getByText(title)).toHaveCount(0);
  await expect(page.getByRole('navigation', { name: 'Main' }).getByText('1', { exact: true })).toHaveCount(0);

  const told = await api.call('send', { to: 'web', message: 'are you there?' });
  expect(told).toContain('waits: the owner paused the messages between api and web');
  expect(await web.call('inbox')).not.toContain('are you there?');
  await expect(quiet.getByText('1 message waits.')).toBeVisible();
  await looksRight(page, 'exchange-paused');

  for (const name of ['api', 'web']) {
    await page.goto(new URL(`/#/sessions/${name}`, page.url()).href);
    await expect(page.locator('main').getByText('api and web are paused')).toBeVisible();
    await expect(page.locator('main').getByRole('button', { name: 'Resume' })).toBeVisible();
  }
  await page.locator('main').getByRole('button', { name: 'Resume' }).click();
  await expect(page.locator('main').getByText('api and web are paused')).toHaveCount(0);
  expect(await web.call('inbox')).toContain('are you there?');
  expect(await web.call('inbox')).not.toContain('are you there?');
});

test('QUI-02 they may go on, and a refusal is shown', async ({ fresh }) => {
  const { page } = fresh;
  const [web, api] = await two(fresh);
  await exchange(9, web, api);
  await page.goto(new URL('/#/', page.url()).href);
  const row = page.locator('main').getByRole('listitem').filter({ hasText: 'have exchanged 9 messages' });
  await page.route('**/api/exchanges', (route) =>
    route.fulfill({ status: 500, json: { error: 'pauses.json cannot be read' } }),
  );
  await row.getByRole('button', { name: 'Pause' }).click();
  await expect(row.getByRole('alert')).toContainText('pauses.json cannot be read');
  await page.unroute('**/api/exchanges');
  await row.getByRole('button', { name: 'Let them go on' }).click();
  await expect(row).toHaveCount(0);

  await exchange(8, web, api);
  await page.goto(new URL('/#/needs', page.url()).href);
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await exchange(1, web, api);
  await expect(page.getByText('have exchanged 9 messages')).toBeVisible();
});

test('QUI-02 the number of messages is a setting', async ({ fresh }) => {
  const { page } = fresh;
  const [web, api] = await two(fresh);
  await page.goto(new URL('/#/settings', page.url()).href);
  const most = page.getByLabel('Messages of two sessions to each other before you are asked');
  await expect(most).toHaveValue('8');
  await most.fill('2');
  await most.press('Enter');
  await expect(page.getByText('You are asked after more than 2 messages of two sessions.')).toBeVisible();
  await most.fill('1001');
  await most.press('Enter');
  await expect(page.getByRole('alert')).toContainText('between 0 and 1000');
  await expect(most).toHaveValue('2');
  await exchange(3, web, api);
  await page.goto(new URL('/#/needs', page.url()).href);
  await expect(page.getByText('have exchanged 3 messages')).toBeVisible();
});
