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
  await page.getByRole('button', { name: 'Cancel' }).click();
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

test('PGE-03 a draft is on every page of this Bridge, until it is sent', async ({ jobs, page, browser }) => {
  const job = await jobs.give(['answer Done.'], { title: 'Waits for words' });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}`);
  const told = page.waitForResponse(
    (r) => r.url().endsWith('/api/drafts') && r.request().method() === 'POST',
  );
  await page.getByRole('textbox', { name: 'Message to Waits for words' }).fill('answer Thought through.');
  await told;

  // Another browser, as the desktop window is after a restart: no storage of the first one.
  const context = await browser.newContext({
    baseURL: new URL(page.url()).origin,
    storageState: { cookies: await page.context().cookies(), origins: [] },
  });
  const other = await context.newPage();
  await other.goto(`/#/runs/${job}`);
  await expect(other.getByRole('textbox', { name: 'Message to Waits for words' })).toHaveValue(
    'answer Thought through.',
  );
  const sent = other.waitForResponse(
    (r) => r.url().endsWith('/api/drafts') && r.request().method() === 'POST',
  );
  await other.getByRole('button', { name: 'Continue it' }).click();
  await sent;
  await other.goto(`/#/runs/${job}/result`);
  await expect(other.getByRole('region', { name: 'What codex says' })).toContainText('Thought through.');
  await jobs.reaches(job, 'finished');
  await context.close();

  await page.reload();
  await expect(page.getByRole('textbox', { name: 'Message to Waits for words' })).toHaveValue('');
});
