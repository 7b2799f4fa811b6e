import { expect } from '@playwright/test';
import { test } from './fresh';
import { looksRight } from './looks';
import { choose, hook } from './prompting';

const CALL = {
  tool_name: 'Bash',
  tool_input: { command: 'rm -rf build && make', description: 'Build anew' },
};

test('NED-02 a prompt of a session is allowed from the page, and shown as applied when it ran', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const asked = hook(home, 'PermissionRequest', CALL);
  const card = page.locator('[data-approval]');
  await expect(card).toContainText('Run a command for claude-web');
  await expect(card.getByLabel('What exactly')).toHaveText('rm -rf build && make');
  await expect(card).toContainText('/home/anna/web');
  await expect(card).toContainText('its terminal asks, too');

  await looksRight(page, 'prompt');

  await card.getByRole('button', { name: 'Allow once' }).click();
  expect(JSON.parse(await asked.said)).toEqual({
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } },
  });
  await expect(card).toContainText('Delivered: allowed by you');
  await hook(home, 'PostToolUse', { ...CALL, tool_use_id: 't1' }).said;
  await expect(card).toContainText('Applied: allowed by you');
  await expect(card.getByRole('button')).toHaveCount(0);
});

test('NED-02 a prompt is denied with a reason, and what the terminal answered first is told', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const first = hook(home, 'PermissionRequest', CALL);
  const denied = page.locator('[data-approval]');
  await denied.getByRole('button', { name: 'Deny…' }).click();
  await denied.getByLabel('Why not?').fill('not the build folder');
  await page.keyboard.press('Control+Enter');
  expect(JSON.parse(await first.said)).toEqual({
    hookSpecificOutput: {
      hookEventName: 'PermissionRequest',
      decision: { behavior: 'deny', message: 'not the build folder' },
    },
  });
  await hook(home, 'Stop', {}).said;
  await expect(denied).toContainText('Applied: denied by you');

  const second = hook(home, 'PermissionRequest', CALL);
  const open = page.locator('[data-approval].open');
  await expect(open).toBeVisible();
  await hook(home, 'PostToolUse', { ...CALL, tool_use_id: 't2' }).said;
  expect(await second.said).toBe('');
  await expect(page.getByText('At the terminal: it was allowed there.')).toBeVisible();
  await expect(open).toHaveCount(0);
});

test('NED-02 away mode is switched on the page, and a broker that dies leaves it to the terminal', async ({
  fresh,
}) => {
  const { page, begin, home, kill, again } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'away');
  expect(await hook(home, 'PermissionRequest', CALL).said).toBe('');
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await page.getByLabel('Away').check();
  await expect(page.getByText('wait here, too')).toBeVisible();
  const asked = hook(home, 'PermissionRequest', CALL);
  await expect(page.locator('[data-approval].open')).toBeVisible();
  await kill();
  expect(await asked.said).toBe('');
  await again();
  await expect(page.locator('[data-approval].open')).toHaveCount(0);
  await expect(page.getByLabel('Away')).toBeChecked();
});

test('NED-04 NED-02 a prompt that is allowed from now on is not asked again', async ({ fresh }) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const card = page.locator('[data-approval]');
  const asked = hook(home, 'PermissionRequest', CALL);
  await card.getByRole('button', { name: 'From now on…' }).click();
  await expect(card.locator('[data-says]')).toContainText('Exactly this command, whole');
  await expect(card.getByRole('radio', { name: /begins with/ })).toHaveCount(0); // a shell reads more in it
  await card.getByRole('button', { name: 'Allow from now on' }).click();
  const allowed = {
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } },
  };
  expect(JSON.parse(await asked.said)).toEqual(allowed);
  await hook(home, 'PostToolUse', { ...CALL, tool_use_id: 't1' }).said;

  expect(JSON.parse(await hook(home, 'PermissionRequest', CALL).said)).toEqual(allowed);
  await expect(page.locator('[data-approval].open')).toHaveCount(0);
  await expect(card.filter({ hasText: 'allowed by your rule' })).toHaveCount(1);
  const other = { ...CALL, tool_input: { command: 'rm -rf build && make install' } };
  const third = hook(home, 'PermissionRequest', other);
  const open = page.locator('[data-approval].open');
  await expect(open.getByLabel('What exactly')).toHaveText('rm -rf build && make install');
  await open.getByRole('button', { name: 'Allow once' }).click();
  expect(JSON.parse(await third.said)).toEqual(allowed);
});
