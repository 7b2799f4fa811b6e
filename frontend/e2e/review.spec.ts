import { shot } from './shot';
import { looksRight } from './looks';
import { violations } from './axe';
import { expect, test } from './jobs';

// None of them needs another one: the longest files would keep one worker busy to the end.
test.describe.configure({ mode: 'parallel' });

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
        { path: 'main.go', line: 4, side: 'new', body: 'Lines 3 to 4: Why this one?' },
        { path: 'main.go', line: 8, side: 'new', body: 'Lines 6 to 8: Say less.' },
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
        { path: 'main.go', line: 2, side: 'old', body: 'Gone?' },
        { path: 'main.go', line: 2, side: 'new', body: 'Better.' },
        { path: 'main.go', line: 3, side: 'old', body: 'Why not?' },
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
  for (const name of ['Apply', 'Squash', 'Merge', 'Keep for later', 'Discard']) {
    const opener = page.getByRole('button', { name: `${name}…` });
    await opener.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', {
      name: name === 'Keep for later' ? 'Keep Keeps a file for later?' : `${name} Keeps a file?`,
    });
    await expect(dialog.getByRole('button', { name, exact: true })).toBeEnabled();
    const lands = !['Keep for later', 'Discard'].includes(name);
    await expect(dialog.getByText('It fits without a conflict.')).toHaveCount(lands ? 1 : 0);
    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
    await expect(opener).toBeFocused(); // a little later; before, the next focus would be lost
  }
  expect(done).toEqual([false, false, false, false, false]);
});

/** Three changed files, the last of which has two changes. */
function threeFiles(port: string) {
  const file = (path: string, patch: string) => ({
    path,
    from: '',
    status: 'modified',
    added: 1,
    removed: 1,
    binary: false,
    patch,
    cut: false,
  });
  const same = Array.from({ length: 40 }, (_, i) => ` line ${i}\n`).join('');
  return [
    file(
      'a.go',
      `@@ -1,2 +1,2 @@\n package main\n-const Port = 1 // of all\n+const Port = ${port} // of all\n`,
    ),
    file('docs/readme.md', '@@ -1 +1 @@\n-Nothing in common here\n+An entirely other sentence\n'),
    file('web/main.ts', `@@ -1,43 +1,42 @@\n-old();\n${same}-const last = 1;\n+const last = 2;\n`),
  ];
}

test('PGE-11 files are seen one by one, and a changed file has to be seen again', async ({ jobs, page }) => {
  const job = await jobs.give(['write main.go x', 'answer Written.'], {
    title: 'Changes three files',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  let port = '4777';
  await page.route('**/diff', (route) =>
    route.fulfill({ json: { base: 'a'.repeat(40), head: 'b'.repeat(40), files: threeFiles(port) } }),
  );
  await page.setViewportSize({ width: 1440, height: 800 });
  await page.goto(`/#/runs/${job}/changes`);
  const list = page.getByRole('navigation', { name: 'Changed files' });
  const seen = (path: string) => list.getByRole('checkbox', { name: `Seen: ${path}` });
  const file = (path: string) => page.locator('main details').filter({ hasText: path });
  await expect(list).toContainText('0 of 3 seen');
  await expect(file('a.go').locator('.line.removed .changed')).toHaveText('1');
  await expect(file('a.go').locator('.line.added .changed')).toHaveText('4777');
  await expect(file('docs/readme.md').locator('.changed')).toHaveCount(0);

  await seen('docs/readme.md').check();
  await expect(list).toContainText('1 of 3 seen');
  await expect(file('docs/readme.md')).not.toHaveAttribute('open');
  // At the end of a file it is marked, too; the next one that was not seen has the focus.
  await file('a.go').getByRole('checkbox', { name: 'Seen: a.go' }).check();
  await expect(list).toContainText('2 of 3 seen');
  await expect(file('web/main.ts').locator('summary')).toBeFocused();
  await file('a.go').locator('summary').click();
  await expect(file('a.go').locator('.line.added')).toBeVisible();
  await looksRight(page, 'review-files', [360, 800, 1280, 1920]);

  await page.setViewportSize({ width: 360, height: 800 });
  const fold = list.getByRole('button', { name: 'Files, 2 of 3 seen' });
  await expect(fold).toHaveAttribute('aria-expanded', 'false');
  await fold.click();
  await seen('web/main.ts').check();
  await expect(list).toContainText('3 of 3 seen');
  await looksRight(page, 'review-files-unfolded', [360]);
  await page.setViewportSize({ width: 1440, height: 800 });

  port = '4778';
  await page.reload();
  await expect(list).toContainText('2 of 3 seen');
  await expect(seen('a.go')).not.toBeChecked();
  await expect(file('a.go').locator('.line.added')).toBeVisible();
  await expect(seen('docs/readme.md')).toBeChecked();
});

test('PGE-11 n, p, ] and [ go through changes and files, and a comment is removed', async ({
  jobs,
  page,
}) => {
  const job = await jobs.give(['write main.go x', 'answer Written.'], {
    title: 'Goes by keys',
    access: 'edit',
    worktree: true,
  });
  await jobs.reaches(job, 'finished');
  await page.route('**/diff', (route) =>
    route.fulfill({ json: { base: 'a'.repeat(40), head: 'b'.repeat(40), files: threeFiles('2') } }),
  );
  for (const split of [false, true]) {
    await page.setViewportSize({ width: 1440, height: 500 });
    await page.goto(`/#/runs/${job}/changes`);
    await page.getByRole('button', { name: split ? 'Split' : 'Unified' }).click();
    await page.locator('main h1').focus();
    const at = page.locator('main :focus');
    const stops = [
      ['a.go', 'removed line 2'],
      ['docs/readme.md', 'removed line 1'],
      ['web/main.ts', 'removed line 1'],
      ['web/main.ts', 'removed line 42'],
    ] as const;
    const isAt = async ([path, name]: readonly [string, string]) => {
      await expect(at).toHaveText(
        new RegExp(`^Comment on ${name.replace(/ \d+$/, '')}\\s*${/\d+$/.exec(name)?.[0]}$`),
      );
      await expect(page.locator('main details').filter({ has: page.locator(':focus') })).toContainText(path);
      await expect(at).toBeInViewport();
    };
    for (const stop of stops) {
      await page.keyboard.press('n');
      await isAt(stop);
    }
    await page.keyboard.press('n'); // there is none after it
    await isAt(stops[3]);
    for (const stop of stops.slice(0, 3).toReversed()) {
      await page.keyboard.press('p');
      await isAt(stop);
    }
    await page.keyboard.press(']');
    await expect(at).toContainText('docs/readme.md');
    await expect(at).toBeInViewport();
    await page.keyboard.press(']');
    await expect(at).toContainText('web/main.ts');
    await page.keyboard.press('[');
    await expect(at).toContainText('docs/readme.md');
  }

  // They are letters for who types.
  const words = page.getByRole('textbox', { name: 'Message to Goes by keys' });
  await words.focus();
  await page.keyboard.type('np][');
  await expect(words).toHaveValue('np][');
  await words.fill('');
  await page.locator('main h1').focus();
  await page.keyboard.press('n');
  await page.keyboard.press('Enter');
  await page.keyboard.type('Why n?');
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('1 comment', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Remove', exact: true }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByText('Why n?')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Comment on removed line 2' }).first()).toBeFocused();
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(page.getByRole('textbox', { name: 'Comment on line 2 of a.go' })).toHaveValue('Why n?');

  await page.locator('main h1').focus();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toContainText('next, previous change of a job');
});
