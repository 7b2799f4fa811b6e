// The tasks that an owner has most often, each with the clicks and keys that it may take. A typed
// text counts no keys, nor does what a test does to come to where the task begins.

import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from '@playwright/test';
import { counts } from './counts';
import { open } from './dashboard';
import { test as fresh } from './fresh';
import { git, test as jobs } from './jobs';
import { pair, test as pcs } from './pcs';
import { choose, hook } from './prompting';

const PORT = {
  title: 'Which port?',
  context: '4777 is taken.',
  options: [
    { label: '4778', consequence: 'The tests run as they are.' },
    { label: 'A free one', consequence: 'Three tests are rewritten.' },
  ],
  blocking: true,
};

fresh(
  'PGE-01 why a session is quiet is one click away, and answered there with one more',
  async ({ fresh }) => {
    const { page, begin } = fresh;
    const session = await begin('--agent', 'claude', '--name', 'mobile-5', '--session', 's1');
    const answer = session.call('ask_owner', PORT);
    await open(page, 'settings');
    const counted = await counts(page);
    await page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: /mobile-5/ })
      .click();
    const card = page.locator('main [data-question]');
    await expect(card).toContainText('Which port?');
    await expect(card).toContainText('waits for the answer');
    await expect(card).toBeInViewport({ ratio: 1 });
    expect(await counted()).toEqual({ clicks: 1, keys: 0 });
    await card.getByRole('button', { name: '4778' }).click();
    expect(await answer).toContain('4778');
    expect(await counted()).toEqual({ clicks: 2, keys: 0 });
  },
);

fresh(
  'PGE-07 a question is answered and a permission allowed with one click, or three keys',
  async ({ fresh }) => {
    const { page, begin, home } = fresh;
    const session = await begin('--agent', 'claude', '--name', 'web', '--session', 's1');
    await choose(page, 'always');
    for (const place of ['overview', 'needs'] as const) {
      await open(page, place);
      const answer = session.call('ask_owner', PORT);
      const button = page.getByRole('main').getByRole('button', { name: '4778' });
      await expect(button).toBeVisible();
      let counted = await counts(page);
      await button.click();
      expect(await answer).toContain('4778');
      expect(await counted()).toEqual({ clicks: 1, keys: 0 });

      const call = { tool_name: 'Bash', tool_input: { command: `make ${place}` } };
      const asked = hook(home, 'PermissionRequest', call);
      await expect(page.getByRole('main').getByRole('button', { name: 'Allow once' })).toBeVisible();
      counted = await counts(page);
      await page.keyboard.press('a');
      await page.keyboard.press('Enter');
      expect(JSON.parse(await asked.said)).toMatchObject({
        hookSpecificOutput: { decision: { behavior: 'allow' } },
      });
      expect(await counted()).toEqual({ clicks: 0, keys: 2 });
    }
  },
);

jobs(
  'PGE-11 a review with two comments takes four clicks, or by keys alone a dozen',
  async ({ jobs, page }) => {
    // A file of its own: other tests land parser.txt.
    await writeFile(join(jobs.folder, 'counted.txt'), 'one\nthree\n');
    await git(jobs.folder, 'add', 'counted.txt');
    await git(jobs.folder, 'commit', '-q', '-m', 'Count');
    const lines = ['write counted.txt one\\n2\\nthree\\n4', 'answer Changed the parser.'];
    const give = async (title: string) => {
      const job = await jobs.give(lines, { title, access: 'edit', worktree: true });
      await jobs.reaches(job, 'finished');
      return job;
    };
    const first = await give('By mouse');
    await page.goto('/#/needs');
    let counted = await counts(page);
    const row = page.locator('main li', { hasText: 'By mouse has changes for you' });
    await row.getByRole('link', { name: 'Review' }).click();
    const file = page.locator('main details').filter({ hasText: 'counted.txt' });
    for (const line of [2, 4]) {
      await file.getByRole('button', { name: `Comment on added line ${line}` }).click();
      await page
        .getByRole('textbox', { name: `Comment on line ${line} of counted.txt` })
        .pressSequentially('Why?');
      await page.keyboard.press('Control+Enter');
    }
    await page.getByRole('button', { name: 'Send as one message' }).click();
    await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
    // Two texts of four letters, and twice two keys that end them.
    expect(await counted()).toEqual({ clicks: 4, keys: 2 * 4 + 2 * 2 });
    await jobs.reaches(first, 'finished');

    const job = await give('By keys');
    await page.goto(`/#/runs/${job}/changes`);
    await expect(file).toContainText('three');
    counted = await counts(page);
    for (const line of [2, 4]) {
      await page.keyboard.press('n');
      await page.keyboard.press('Enter');
      await expect(
        page.getByRole('textbox', { name: `Comment on line ${line} of counted.txt` }),
      ).toBeFocused();
      await page.keyboard.type('Why?');
      await page.keyboard.press('Control+Enter');
    }
    await page.keyboard.press('Control+Enter');
    await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
    const { clicks, keys } = await counted();
    expect(clicks).toBe(0);
    expect(keys - 2 * 4).toBeLessThanOrEqual(12);
    await jobs.reaches(job, 'finished');
  },
);

jobs('PGE-11 a change lands with two clicks, and is taken back with two', async ({ jobs, page }) => {
  const job = await jobs.give(['write lands.txt one', 'answer Written.'], {
    title: 'Lands',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  let counted = await counts(page);
  await page.getByRole('button', { name: 'Squash…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Squash Lands?' });
  await dialog.getByRole('button', { name: 'Squash', exact: true }).click();
  await expect(page.getByText(/Landed as [0-9a-f]{7} on main/).first()).toBeVisible();
  expect(await counted()).toEqual({ clicks: 2, keys: 0 });
  counted = await counts(page);
  await page.getByRole('button', { name: 'Undo…' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^(Undo|Revert)/ })
    .click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Squash…' })).toBeVisible();
  expect(await counted()).toEqual({ clicks: 2, keys: 0 });
});

fresh('PGE-06 a session is six keys away', async ({ fresh }) => {
  const { page, begin } = fresh;
  for (const name of ['api', 'docs', 'mobile-5'])
    await begin('--agent', 'codex', '--name', name, '--session', `s-${name}`);
  await open(page, 'settings');
  const counted = await counts(page);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('mob');
  await expect(page.getByRole('dialog').getByRole('option', { selected: true })).toContainText('mobile-5');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1, name: 'mobile-5' })).toBeFocused();
  expect(await counted()).toEqual({ clicks: 0, keys: 6 });
});

fresh('PGE-06 an older message of one session is one search away', async ({ fresh }) => {
  const { page, begin } = fresh;
  const api = await begin('--agent', 'codex', '--name', 'api', '--session', 's1');
  const web = await begin('--agent', 'codex', '--name', 'web', '--session', 's2');
  await web.call('peers');
  await api.call('send', { to: 'web', message: 'The port is 4778.' });
  await web.call('send', { to: 'api', message: 'Thanks for the port.' });
  await open(page, 'settings');
  const counted = await counts(page);
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox', { name: 'Search messages and decisions' })).toBeFocused();
  expect((await counted()).keys).toBe(1);
  await page.keyboard.type('port from:api after:00:00');
  await expect(page.getByRole('main')).toContainText('The port is 4778.');
  await expect(page.getByRole('main')).not.toContainText('Thanks for the port.');
  expect((await counted()).clicks).toBe(0);
});

pcs('RMT-06 another PC may run jobs after four clicks', async ({ fresh, laptop }) => {
  const { page } = fresh;
  await pair(page, laptop);
  const src = join(await realpath(fresh.home), 'src');
  await mkdir(src);
  await fresh.begin('--agent', 'codex', '--name', 'api', '--session', 's1', '--cwd', src);
  const counted = await counts(page);
  await page.getByRole('button', { name: 'What laptop may do…' }).click();
  const dialog = page.getByRole('dialog', { name: 'What may laptop do here?' });
  await dialog.getByRole('checkbox', { name: 'Have jobs done here' }).check();
  await dialog.getByRole('button', { name: /^Add .*src$/ }).click();
  const may = `laptop may start codex jobs that edit files below ${src}`;
  await expect(dialog.getByRole('status', { name: 'What that means' })).toContainText(may);
  await expect(dialog.getByRole('checkbox', { name: 'Links with paired PCs are on' })).toBeChecked();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.locator('[data-pc=laptop]')).toContainText(may);
  expect(await counted()).toEqual({ clicks: 4, keys: 0 });
});
