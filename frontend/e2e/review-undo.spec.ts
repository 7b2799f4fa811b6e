import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Finished } from '../src/lib/api';
import { expect, git, test } from './jobs';
import { looksRight } from './looks';

test('PGE-11 a landing is undone after a dry run, and what is in the way is named', async ({
  jobs,
  page,
}) => {
  const job = await jobs.give(['write landed.txt one', 'answer Written.'], {
    title: 'Lands a file',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  const squash = async () => {
    await page.getByRole('button', { name: 'Squash…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Squash', exact: true }).click();
    await expect(page.getByText(/Landed as [0-9a-f]{7} on main, \d\d:\d\d/)).toBeVisible();
  };
  await squash();
  const undo = page.getByRole('button', { name: 'Undo…' });
  await expect(undo).toBeFocused();
  await expect(page.getByRole('button', { name: 'Squash…' })).toHaveCount(0);
  await looksRight(page, 'landed', [360, 800, 1440, 1920]);
  await page.goto('/#/runs');
  await expect(page.locator('[data-run]')).toContainText(/Landed as [0-9a-f]{7} on main/);
  await looksRight(page, 'landed-in-runs', [360, 1440]);
  await page.goto(`/#/runs/${job}/changes`);

  const asked: unknown[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/finish')) asked.push(request.postDataJSON());
  });
  const dialog = page.getByRole('dialog', { name: 'Undo the landing of Lands a file?' });
  const sure = dialog.getByRole('button', { name: 'Undo the landing' });
  await undo.click();
  await expect(dialog).toContainText('Bridge adds a commit to main that reverts the landing.');
  await expect(dialog).toContainText('It can be undone without a conflict.');
  await expect(dialog.getByRole('button', { name: 'Not now' })).toBeFocused();
  await looksRight(page, 'undo', [360, 1440]);
  await page.keyboard.press('Enter');
  await expect(dialog).toHaveCount(0);
  expect(asked).toEqual([{ action: 'undo', dryRun: true }]);

  // A later commit in the same lines is in the way.
  await writeFile(join(jobs.folder, 'landed.txt'), 'the owner goes on\n');
  await git(jobs.folder, 'commit', '-q', '-a', '-m', 'later');
  await undo.click();
  await expect(dialog).toContainText('1 file does not fit:');
  await expect(dialog.getByRole('listitem')).toHaveText('landed.txt');
  await expect(sure).toBeDisabled();
  await looksRight(page, 'undo-conflict', [360, 1440]);
  await page.keyboard.press('Escape');
  await git(jobs.folder, 'reset', '-q', '--hard', 'HEAD~1');

  await writeFile(join(jobs.folder, 'landed.txt'), 'not committed\n');
  await undo.click();
  await expect(dialog.getByRole('alert')).toContainText('landed.txt');
  await expect(sure).toBeDisabled();
  await page.keyboard.press('Escape');
  await git(jobs.folder, 'checkout', '-q', '--', 'landed.txt');

  // The state can arrive before the answer does.
  await page.route('**/api/runs/*/finish', async (route) => {
    const response = await route.fetch();
    const isDone = ((await response.json()) as Finished).done;
    if (isDone) await expect(page.getByRole('button', { name: 'Apply…' })).toBeVisible();
    await route.fulfill({ response });
  });
  await undo.click();
  await sure.click();
  await expect(page.getByText(/Landing undone: [0-9a-f]{10}\./)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Apply…' })).toBeFocused();
  await page.unroute('**/api/runs/*/finish');
  await expect(undo).toHaveCount(0);
  await looksRight(page, 'undone', [360, 1440]);
  await squash();
  await undo.click();
  await sure.click();
  await expect(page.getByText(/Landing undone: [0-9a-f]{10}\./)).toBeVisible();
});

test('PGE-11 what is staged or dropped is taken back, too', async ({ jobs, page }) => {
  const job = await jobs.give(['write staged.txt one', 'answer Written.'], {
    title: 'Stages a file',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  for (const [name, words] of [
    ['Apply', /Applied: staged in your checkout, \d\d:\d\d/],
    ['Discard', /Discarded, \d\d:\d\d/],
  ] as const) {
    await page.getByRole('button', { name: `${name}…` }).click();
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
    await expect(page.getByText(words)).toBeVisible();
    await page.getByRole('button', { name: 'Undo…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Undo the landing' }).click();
    await expect(page.getByText('Landing undone.')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Undo…' })).toHaveCount(0);
    await expect(page.getByRole('button', { name: 'Squash…' })).toBeEnabled();
  }
});

test('PGE-11 what came since the last review is shown alone', async ({ jobs, page }) => {
  const job = await jobs.give(['write first.txt one', 'answer Written.'], {
    title: 'Goes on after a review',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  const file = (path: string) => page.locator('main details').filter({ hasText: path });
  const which = page.getByRole('group', { name: 'Which changes are shown' });
  await page.getByRole('button', { name: 'Comment on added line 1' }).click();
  await page.getByRole('textbox', { name: 'Comment on line 1 of first.txt' }).fill('Good.');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Send as one message' }).click();
  await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
  await jobs.reaches(job, 'finished');
  await expect(which).toHaveCount(0); // it changed nothing since

  await page.getByRole('textbox', { name: /^Message to/ }).fill('write later.txt two\nanswer More.');
  await page.getByRole('button', { name: 'Continue it' }).click();
  await expect(file('later.txt')).toBeVisible();
  await jobs.reaches(job, 'finished');
  await page.reload();
  await expect(which.getByRole('button', { name: 'All changes' })).toHaveAttribute('aria-pressed', 'true');
  await expect(file('first.txt')).toBeVisible();
  await which.getByRole('button', { name: 'Since my last review' }).focus();
  await page.keyboard.press('Enter');
  await expect(file('first.txt')).toHaveCount(0);
  await expect(file('later.txt')).toBeVisible();
  await looksRight(page, 'since', [360, 800, 1440, 1920]);

  // A branch that was rewritten has that commit no more.
  await page.route('**/diff?since=*', (route) =>
    route.fulfill({ status: 404, json: { error: 'no commit' } }),
  );
  await which.getByRole('button', { name: 'All changes' }).click();
  await expect(file('first.txt')).toBeVisible();
  await which.getByRole('button', { name: 'Since my last review' }).click();
  await expect(
    page.getByText('The job’s branch no longer has the commit of your last review.'),
  ).toBeVisible();
  await expect(which.getByRole('button', { name: 'All changes' })).toHaveAttribute('aria-pressed', 'true');
  await expect(file('first.txt')).toBeVisible();
});
