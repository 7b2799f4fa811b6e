import { expect } from '@playwright/test';
import { violations } from './axe';
import { open } from './dashboard';
import { test } from './fresh';
import { overlaps } from './overlaps';

test('DSK-06 the first session is told of, and its first message is one click and one key away', async ({
  fresh,
}) => {
  const { page } = fresh;
  await open(page, 'overview');
  const guide = page.getByRole('region', { name: 'No session is connected yet' });
  await expect(guide.getByRole('button', { name: 'Connect… claude' })).toBeVisible();
  await expect(guide.getByRole('button', { name: 'Connect… opencode' })).toBeVisible();
  const session = await fresh.begin(
    '--agent',
    'claude',
    '--name',
    'one',
    '--cwd',
    fresh.home,
    '--session',
    's1',
  );
  const here = page.getByRole('region', { name: 'Your first session is here' });
  await expect(here).toContainText('claude in');
  await expect(page.getByRole('status').filter({ hasText: '1 session connected' })).toHaveCount(1);
  const words = (await here.locator('blockquote').textContent()) ?? '';
  await here.getByRole('button', { name: 'Write the first message' }).focus();
  await page.keyboard.press('Enter');
  const composer = page.getByRole('textbox', { name: 'Write a message' });
  await expect(composer).toBeFocused();
  await expect(composer).toHaveValue(words);
  await expect(page.getByRole('combobox', { name: 'To' })).toHaveValue('one');
  await page.keyboard.press('Control+Enter');
  await expect(page.locator('main [data-message]')).toContainText(words);
  await expect(here).toHaveCount(0);
  expect(await session.call('inbox')).toContain(words);
});

test('DSK-06 the offer of a first message keeps what was begun, and asks several to talk', async ({
  fresh,
}) => {
  const { page } = fresh;
  const begin = (name: string) =>
    fresh.begin('--agent', 'claude', '--name', name, '--cwd', fresh.home, '--session', name);
  await begin('one');
  await begin('two');
  await open(page, 'overview');
  const here = page.getByRole('region', { name: '2 sessions are here' });
  await expect(here.locator('blockquote')).toContainText('say hello to each of them');
  const composer = page.getByRole('textbox', { name: 'Write a message' });
  await composer.fill('my own words');
  await here.getByRole('button', { name: 'Write the first message' }).click();
  await expect(composer).toHaveValue('my own words');
});

test(`DSK-06 the first session’s offer fits 360 pixels and passes axe`, async ({ fresh }) => {
  const { page } = fresh;
  await page.setViewportSize({ width: 360, height: 800 });
  await open(page, 'overview');
  await fresh.begin('--agent', 'claude', '--name', 'a-session-with-a-rather-long-name', '--cwd', fresh.home);
  await page.getByRole('region', { name: 'Your first session is here' }).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  expect(await page.evaluate(overlaps)).toEqual([]);
  expect(await violations(page)).toEqual([]);
});

test('DSK-06 NED-01 a young Bridge: its picture fills from the left, a question is open in it until answered', async ({
  fresh,
}) => {
  const { page } = fresh;
  const session = await fresh.begin(
    '--agent',
    'claude',
    '--name',
    'asker',
    '--cwd',
    fresh.home,
    '--session',
    's1',
  );
  await open(page, 'overview');
  const picture = page.getByRole('figure', { name: 'Now' });
  const present = picture.locator('line.present');
  // All of its life is in view: the present stands before the right edge, not at it.
  await expect(present).toHaveCount(1);
  const share = () =>
    present.evaluate(
      (line) => Number(line.getAttribute('x1')) / Number(line.closest('svg')?.getAttribute('width')),
    );
  await expect.poll(share).toBeLessThan(0.98);
  await expect(picture).not.toContainText('is known since');

  await session.call('ask_owner', { title: 'Which port shall it listen on?' });
  const unanswered = picture.locator('path.asked.open');
  await expect(unanswered).toHaveAttribute('d', /^M/);
  const marks = picture.getByRole('button', { name: /^\d+ marks/ });
  await marks.focus();
  await page.keyboard.press('End');
  await expect(picture.locator('[aria-live]')).toContainText(
    'asker asks you, Which port shall it listen on?',
  );
  await picture.getByRole('button', { name: 'As a table' }).click();
  const row = picture.getByRole('row').filter({ hasText: 'question' });
  await expect(row).toContainText('not answered yet');
  await row.getByRole('button').click();
  const card = page.locator('[data-question]');
  await card.getByLabel('Your answer').fill('4778');
  await card.getByRole('button', { name: 'Answer in words' }).click();
  await expect(card).toContainText('Answered: 4778.');
  await open(page, 'overview');
  await picture.getByRole('button', { name: 'As a table' }).click();
  await expect(row).toContainText('answered: 4778');
  await picture.getByRole('button', { name: 'As a picture' }).click();
  await expect(unanswered).toHaveAttribute('d', '');
});
