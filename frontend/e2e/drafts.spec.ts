import { expect, test } from './jobs';
import { violations } from './axe';

test('JOB-18 CHT-17 neither Esc nor a reload loses a comment, a message or a decision', async ({
  jobs,
  page,
}) => {
  const job = await jobs.give(['write main.go one\\ntwo\\nthree\\nfour', 'answer Written.'], {
    title: 'Writes four lines',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  const line = (n: number) => page.getByRole('button', { name: `Comment on added line ${n}`, exact: true });
  const box = (n: number) => page.getByRole('textbox', { name: `Comment on line ${n} of main.go` });

  // Esc closes an empty comment, and leaves one with words in it.
  await line(1).click();
  await expect(box(1)).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(box(1)).toHaveCount(0);
  await expect(line(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await page.keyboard.type('Why one?');
  await page.keyboard.press('Escape');
  await expect(line(1)).toBeFocused();
  await expect(box(1)).toHaveValue('Why one?');
  await page.keyboard.press('Enter');
  await expect(box(1)).toBeFocused();
  await page.keyboard.press('Control+Enter');
  await expect(line(1)).toBeFocused();

  // One that is left on purpose comes back, and one that is being written stays when another is begun.
  await line(2).click();
  await page.keyboard.type('And two?');
  await page.getByRole('button', { name: 'Leave it' }).click();
  await expect(box(2)).toHaveCount(0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(box(2)).toHaveValue('And two?');
  expect(await violations(page)).toEqual([]);
  await line(4).click();
  await expect(page.getByText('2 comments', { exact: true })).toBeVisible();
  await page.keyboard.type('Half of a');
  const message = page.getByRole('textbox', { name: 'Message to Writes four lines' });
  await message.fill('Go on');

  await page.reload();
  await expect(page.getByText('2 comments', { exact: true })).toBeVisible();
  await expect(page.getByText('Why one?')).toBeVisible();
  await expect(page.getByText('And two?')).toBeVisible();
  await expect(box(4)).toHaveValue('Half of a');
  await expect(message).toHaveValue('Go on');

  await page.goto('/#/decisions');
  await page.getByRole('button', { name: 'Pin a decision…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pin a decision' });
  await dialog.getByRole('combobox', { name: 'Topic' }).fill('line ends');
  await dialog.getByRole('textbox', { name: 'Decision' }).fill('Only line feeds.');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await page.reload();
  await page.getByRole('button', { name: 'Pin a decision…' }).click();
  await expect(dialog.getByRole('textbox', { name: 'Decision' })).toHaveValue('Only line feeds.');
  await dialog.getByRole('button', { name: /^Pin/ }).click();
  await expect(dialog).toHaveCount(0);

  // What was sent does not come back.
  await page.goto(`/#/runs/${job}/changes`);
  await box(4).fill('');
  await page.route('**/comments', (route) =>
    route.fulfill({ json: { job, status: 'queued', delivery: 'queued' } }),
  );
  await page.getByRole('button', { name: 'Send as one message' }).click();
  await expect(page.getByText('2 comments', { exact: true })).toHaveCount(0);
  await message.fill('');
  expect(
    await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('bridge.draft.'))),
  ).toEqual([]);
});
