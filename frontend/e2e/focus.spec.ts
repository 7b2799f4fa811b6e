// The focus after an action, with no hand on the mouse.

import { expect, open } from './dashboard';
import { test as fresh } from './fresh';

const OPTIONS = [
  { label: 'The first', consequence: 'It is first.' },
  { label: 'The second', consequence: 'It is second.' },
];

fresh(
  'PGE-10 after an answer the next question has the focus, and j and k stop at cards',
  async ({ fresh }) => {
    const { page, begin } = fresh;
    const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
    for (const title of ['Which port?', 'Which name?', 'Which licence?'])
      await session.call('ask_owner', { title, options: OPTIONS });
    await open(page, 'needs');
    const card = (title: string) => page.locator('[data-question]').filter({ hasText: title });
    await expect(page.locator('[data-question]')).toHaveCount(3);
    await page.keyboard.press('j');
    await expect(card('Which port?')).toBeFocused();
    await page.keyboard.press('j');
    await expect(card('Which name?')).toBeFocused();
    await page.keyboard.press('2');
    await page.keyboard.press('Enter');
    await expect(card('Which name?')).toContainText('Answered: The second.');
    await expect(card('Which licence?')).toBeFocused();
    await page.keyboard.press('1');
    await page.keyboard.press('Enter');
    await expect(card('Which licence?')).toContainText('Answered: The first.');
    await expect(card('Which port?')).toBeFocused();
    await page.keyboard.press('1');
    await page.keyboard.press('Enter');
    await expect(card('Which port?')).toContainText('Answered: The first.');
    await expect(card('Which port?')).toBeFocused(); // nothing is left to be answered
  },
);

fresh(
  'PGE-10 a dialog begins at its main answer, once that is ready, and gives the focus back',
  async ({ fresh }) => {
    const { page } = fresh;
    await open(page, 'overview');
    const connect = page.getByRole('button', { name: 'Connect… claude' });
    await connect.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await expect(dialog.getByRole('button', { name: 'Connect', exact: true })).toBeFocused();
    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
    await expect(connect).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(dialog.getByRole('button', { name: 'Connect', exact: true })).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(dialog).toHaveCount(0);
    // The button of before is gone: its row has another one.
    await expect(page.locator('main :focus')).toHaveCount(1);
  },
);

fresh('PGE-10 a row that goes gives the focus to the next one', async ({ fresh }) => {
  const { page, begin } = fresh;
  const named = (name: string) => begin('--agent', 'claude', '--name', name, '--cwd', fresh.home);
  await named('one');
  const two = await named('two');
  const three = await named('three');
  await open(page, 'sessions?sort=name');
  const row = (name: string) => page.locator(`main [data-session="${name}"] [data-row]`);
  await expect(page.locator('main [data-row]')).toHaveCount(3);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await expect(row('three')).toBeFocused();
  await three.end();
  await expect(row('three')).toHaveCount(0);
  await expect(row('two')).toBeFocused();
  await two.end();
  await expect(row('one')).toBeFocused();
});
