import { shot } from './shot';
import { looksRight } from './looks';
import { violations } from './axe';
import { expect, test } from './jobs';

const CODE = [
  'package main',
  '',
  '// Port is where it "listens".',
  'const Port = 4777',
  '',
  'func main() {',
  '  print("<b>hello</b>")',
  '}',
].join('\\n');

test('JOB-18 a change is read in colours, and several lines are commented on by keyboard and mouse', async ({
  jobs,
  page,
}) => {
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  const job = await jobs.give([`write main.go ${CODE}`, 'write plain.text a b', 'answer Written.'], {
    title: 'Writes a program',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}`);
  await page.locator('main h1').first().waitFor();
  expect(loaded.some((path) => path.includes('highlight'))).toBe(false);
  await page.goto(`/#/runs/${job}/changes`);
  const file = page.locator('main details').filter({ hasText: 'main.go' });
  await expect(file.locator('.tok.t-keyword').filter({ hasText: 'package' })).toBeVisible();
  await expect(file.locator('.tok.t-comment')).toHaveText('// Port is where it "listens".');
  await expect(file.locator('.tok.t-string')).toHaveText('"<b>hello</b>"');
  expect(loaded.some((path) => path.includes('highlight'))).toBe(true);
  // Every line is there as it was written, spaces and all.
  expect(await file.locator('.line.added .text').allTextContents()).toEqual(
    CODE.split('\\n').map((line) => `+${line === '' ? ' ' : line}`),
  );

  await file.getByRole('button', { name: 'Comment on added line 6' }).click();
  await file.getByRole('button', { name: 'Comment on added line 8' }).click({ modifiers: ['Shift'] });
  await expect(file.locator('.line.picked')).toHaveCount(3);
  const box = file.getByRole('textbox', { name: 'Comment on line 8 of main.go' });
  await box.fill('Say less.');
  await page.keyboard.press('Control+Enter');
  await expect(file.getByText('Lines 6 to 8:')).toBeVisible();

  // The same without a mouse.
  const line = file.getByRole('button', { name: 'Comment on added line 4' });
  await line.focus();
  await page.keyboard.press('Enter');
  const other = file.getByRole('textbox', { name: 'Comment on line 4 of main.go' });
  await expect(other).toBeFocused();
  await other.fill('Why this one?');
  await page.keyboard.press('Tab');
  await page.keyboard.type('3');
  await page.keyboard.press('Enter');
  await expect(file.getByText('Lines 3 to 4:')).toBeVisible();
  await expect(page.getByText('2 comments', { exact: true })).toBeVisible();

  await looksRight(page, 'review', [360, 1280]);

  await page.route('**/comments', async (route) => {
    expect(route.request().postDataJSON()).toEqual({
      comments: [
        { path: 'main.go', line: 8, side: 'new', body: 'Lines 6 to 8: Say less.' },
        { path: 'main.go', line: 4, side: 'new', body: 'Lines 3 to 4: Why this one?' },
      ],
    });
    await route.continue();
  });
  await page.getByRole('button', { name: 'Send as one message' }).click();
  await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
  await jobs.reaches(job, 'finished');
});

test('JOB-18 DSK-06 old and new beside each other, with comments on both sides', async ({ jobs, page }) => {
  const job = await jobs.give(['write main.go x', 'answer Written.'], {
    title: 'Changes a program',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  const patch =
    '@@ -1,4 +1,4 @@\n package main\n-const Port = 1\n-const Old = 2\n+const Port = 4777\n func main() {}\n';
  const file = {
    path: 'main.go',
    from: '',
    status: 'modified',
    added: 1,
    removed: 2,
    binary: false,
    patch,
    cut: false,
  };
  await page.route('**/diff', (route) =>
    route.fulfill({ json: { base: 'a'.repeat(40), head: '', files: [file] } }),
  );
  await page.setViewportSize({ width: 1440, height: 800 });
  await page.goto(`/#/runs/${job}/changes`);
  const looks = page.getByRole('group', { name: 'How changes are shown' });
  await looks.getByRole('button', { name: 'Split' }).focus();
  await page.keyboard.press('Enter');
  const rows = page.locator('main .lines > .row');
  await expect(rows).toHaveCount(4);
  const sides = rows.nth(1).locator('.half');
  await expect(sides.first()).toContainText('const Port = 1');
  await expect(sides.last()).toContainText('const Port = 4777');
  await expect(rows.nth(2).locator('.half.none')).toHaveCount(1);

  await page.getByRole('button', { name: 'Comment on removed line 3' }).click();
  await page.getByRole('textbox', { name: 'Comment on line 3 of main.go' }).fill('Why not?');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Comment on added line 2' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: 'Comment on line 2 of main.go' }).fill('Better.');
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('2 comments', { exact: true })).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await shot(page, 'split');
  // A narrow window has no room for two, and shows the same comments in one.
  await page.setViewportSize({ width: 800, height: 800 });
  await expect(looks).toHaveCount(0);
  await expect(rows).toHaveCount(0);
  await expect(page.getByText('Why not?')).toBeVisible();
  await page.setViewportSize({ width: 1440, height: 800 });
  await page.reload();
  await expect(rows).toHaveCount(4);

  await page.getByRole('button', { name: 'Comment on removed line 2' }).click();
  await page.getByRole('textbox', { name: 'Comment on line 2 of main.go' }).fill('Gone?');
  await page.keyboard.press('Control+Enter');
  let sent: unknown;
  await page.route('**/comments', async (route) => {
    sent = route.request().postDataJSON();
    await route.fulfill({ json: { job, status: 'queued', delivery: 'queued' } });
  });
  await page.getByRole('button', { name: 'Send as one message' }).click();
  await expect
    .poll(() => sent)
    .toEqual({
      comments: [
        { path: 'main.go', line: 3, side: 'old', body: 'Why not?' },
        { path: 'main.go', line: 2, side: 'new', body: 'Better.' },
        { path: 'main.go', line: 2, side: 'old', body: 'Gone?' },
      ],
    });
});

test('JOB-18 each way to finish shows first what it would do', async ({ jobs, page }) => {
  const job = await jobs.give(['write kept.txt x', 'answer Written.'], {
    title: 'Keeps a file',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  const done: boolean[] = [];
  page.on('request', (request) => {
    if (!request.url().endsWith('/finish')) return;
    done.push((request.postDataJSON() as { dryRun?: boolean }).dryRun !== true);
  });
  await page.goto(`/#/runs/${job}/changes`);
  for (const name of ['Apply', 'Squash', 'Merge', 'Keep', 'Discard']) {
    const opener = page.getByRole('button', { name: `${name}…` });
    await opener.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: `${name} Keeps a file?` });
    await expect(dialog.getByRole('button', { name, exact: true })).toBeEnabled();
    const lands = !['Keep', 'Discard'].includes(name);
    await expect(dialog.getByText('It fits without a conflict.')).toHaveCount(lands ? 1 : 0);
    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
    await expect(opener).toBeFocused(); // a little later; before, the next focus would be lost
  }
  expect(done).toEqual([false, false, false, false, false]);
});
