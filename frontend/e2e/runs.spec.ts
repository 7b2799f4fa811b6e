import { shot } from './shot';
import { looksRight } from './looks';
import { violations } from './axe';
import { CLOCK, pattern, STATE, wholeState } from './dashboard';
import { expect, test } from './jobs';

// None of them needs another one: the longest files would keep one worker busy to the end.
test.describe.configure({ mode: 'parallel' });

test('DSK-06 JOB-02 a job shows what it does, how far it is and what came of it', async ({ jobs, page }) => {
  const [first, second] = [jobs.gate(), jobs.gate()];
  const job = await jobs.give(
    [
      'say I look at the parser first.',
      'run go test ./... => 1',
      'progress 40 5 fixing the parser',
      first.line,
      'run go test ./...',
      second.line,
      'answer All tests **pass** now.',
    ],
    { title: 'Fix the parser' },
  );
  await page.goto('/#/runs');
  const row = page.locator(`main [data-run="${job}"]`);
  await expect(row).toContainText('running');
  await expect(row).toContainText('40 % · about 5 min left · fixing the parser');
  await expect(row).toContainText('for claude-api');
  await expect(row.getByRole('progressbar')).toHaveAttribute('value', '40');
  await row.getByRole('link', { name: 'Fix the parser' }).click();

  await expect(page).toHaveURL(new RegExp(`#/runs/${job}$`));
  const log = page.getByRole('region', { name: 'Log' });
  await expect(log).toContainText('I look at the parser first.');
  await expect(log.getByText('done (exit 1)')).toBeVisible();
  await expect(page.getByText('Follows the end')).toBeVisible();
  await first.open();
  await expect(log.getByText('done (exit 0)')).toBeVisible();

  await second.open();
  await expect(page.locator('main header').getByText('finished')).toBeVisible();
  // Its reader stays at the log until the result is asked for.
  await expect(log).toBeVisible();
  await page.getByRole('link', { name: 'Result' }).click();
  await expect(page.getByRole('heading', { name: 'What codex says' })).toBeVisible();
  await expect(page.locator('main strong', { hasText: 'pass' })).toBeVisible();
  const saw = page.getByRole('region', { name: 'What the runner saw' });
  await expect(saw).toContainText('It answered.');
  await expect(saw).toContainText('13k tokens');
  await expect(saw.getByText('exit 1', { exact: true })).toBeVisible();
  await expect(saw.getByText('exit 0', { exact: true })).toBeVisible();
  await expect(page.locator('main code', { hasText: 'codex resume 01a201cf' })).toBeVisible();
});

test('DSK-06 JOB-10 a log follows its end, and not a reader who went up', async ({ jobs, page }) => {
  const [more, end] = [jobs.gate(), jobs.gate()];
  const lines = Array.from({ length: 60 }, (_, i) => `run step ${i}`);
  const job = await jobs.give([...lines, more.line, 'run the last step', end.line], { title: 'Many steps' });
  await jobs.writes(job, 'step 59');
  await page.goto(`/#/runs/${job}`);
  const log = page.getByRole('region', { name: 'Log' });
  await expect(log.getByText('step 59', { exact: true })).toBeInViewport();
  await log.evaluate((e) => (e.scrollTop = 0));
  await expect(page.getByText('Not following: you have gone up')).toBeVisible();
  const before = await log.evaluate((e) => e.scrollTop);
  await more.open();
  await expect(log.getByText('the last step')).toBeAttached();
  expect(await log.evaluate((e) => e.scrollTop)).toBe(before);
  await expect(log.getByText('the last step')).not.toBeInViewport();
  await page.getByRole('button', { name: 'To the end' }).click();
  await expect(log.getByText('the last step')).toBeInViewport();
  await expect(page.getByText('Follows the end')).toBeVisible();
  await page.getByRole('checkbox', { name: 'Raw text' }).check();
  await expect(log.locator('pre')).toContainText('$ shell step 0\n= done (exit 0)');
});

test('JOB-02 what an agent says is on an open page while it goes on', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const job = await jobs.give(['say I begin.', gate.line, 'ticks 40', 'answer Over.'], { title: 'Ticks' });
  await page.goto(`/#/runs/${job}`);
  const log = page.getByRole('region', { name: 'Log' });
  await expect(log).toContainText('I begin.');
  await log.evaluate((region) => {
    const seen = new Map<string, number>();
    Object.assign(window, { seen });
    new MutationObserver(() => {
      for (const [, at = ''] of (region.textContent ?? '').matchAll(/tick (\d{13})/g))
        if (!seen.has(at)) seen.set(at, Date.now());
    }).observe(region, { subtree: true, childList: true, characterData: true });
  });
  await gate.open();
  await jobs.reaches(job, 'finished');
  await expect(log).toContainText('Over.');
  const times = await page.evaluate(() =>
    [...(window as unknown as { seen: Map<string, number> }).seen]
      .map(([at, seen]) => ({ at: Number(at), seen }))
      .toSorted((a, b) => a.at - b.at),
  );
  expect(times).toHaveLength(40);
  const [first, last] = [times[0], times[39]];
  expect(first?.seen, 'the first line is shown before the last one is written').toBeLessThan(last?.at ?? 0);
});

test('JOB-15 jobs stand by their outcome, and a filter survives', async ({ jobs, page }) => {
  const failed = await jobs.give(['fail the disk is full'], { title: 'Fails' });
  const limited = await jobs.give(['limit'], { title: 'Is limited' });
  await jobs.reaches(failed, 'failed');
  await jobs.reaches(limited, 'limit');
  await page.goto('/#/runs');
  const ended = page.getByRole('region', { name: 'Ended' });
  await expect(ended.locator(`[data-run="${failed}"]`)).toContainText('The agent reports an error.');
  await expect(ended.locator(`[data-run="${limited}"]`)).toContainText('usage is used up');

  await page.getByRole('combobox', { name: 'Outcome' }).selectOption('limit');
  await expect(ended.locator(`[data-run="${failed}"]`)).toHaveCount(0);
  await ended.getByRole('link', { name: 'Is limited' }).click();
  await page.goBack();
  await expect(page.getByRole('combobox', { name: 'Outcome' })).toHaveValue('limit');
  await page.reload();
  await expect(page.getByRole('combobox', { name: 'Outcome' })).toHaveValue('limit');
  await expect(ended.locator(`[data-run="${failed}"]`)).toHaveCount(0);
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await expect(ended.locator(`[data-run="${failed}"]`)).toBeVisible();

  // What failed needs its owner until that is put away.
  await page.goto('/#/needs');
  await expect(page.getByText('Fails failed', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: /Dismiss.*Fails failed/ }).click();
  await expect(page.getByText('Fails failed', { exact: true })).toHaveCount(0);
});

test('JOB-07 a question is answered in place, and what became of the answer is shown as it is', async ({
  jobs,
  page,
}) => {
  const job = await jobs.give(['ask rm -rf build', 'ask curl localhost', 'answer Done.'], {
    title: 'Asks twice',
  });
  await jobs.reaches(job, 'waiting');
  await page.goto('/#/needs');
  await expect(
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: /Needs you/ }),
  ).toContainText(/[1-9]/);
  const cards = page.locator('main [data-approval]');
  const first = cards.filter({ hasText: 'rm -rf build' });
  await expect(first).toContainText('for Asks twice');
  await expect(first.getByRole('region', { name: 'What exactly' })).toHaveText('rm -rf build');
  await expect(first).toContainText(/min \d\d s left, then it is denied/);
  await page.keyboard.press('a');
  await expect(first.getByRole('button', { name: 'Allow once' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(first.getByRole('status')).toContainText(/Applied: allowed by you \d\d:\d\d/);

  await page.goto(`/#/runs/${job}`);
  const second = cards.filter({ hasText: 'curl localhost' });
  await expect(second).toBeVisible();
  await page.locator('main h1').focus();
  await page.keyboard.press('d');
  await page.keyboard.press('Enter');
  await second.getByRole('textbox', { name: /Why not/ }).fill('stay off the network');
  await second.getByRole('button', { name: 'Deny', exact: true }).click();
  await expect(second.getByRole('status')).toContainText('denied by you');
  await expect(page.getByRole('region', { name: 'Log' })).toContainText(
    'I read: Refused: stay off the network',
  );
  await jobs.reaches(job, 'finished');
});

test('JOB-07 who was quicker is shown to whoever answers later', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const job = await jobs.give(['ask rm -rf build', gate.line], { title: 'Asks once' });
  await jobs.reaches(job, 'waiting');
  await page.goto(`/#/runs/${job}`);
  const card = page.locator('main [data-approval]');
  const allow = card.getByRole('button', { name: 'Allow once' });
  await expect(allow).toBeVisible();
  const id = (await card.getAttribute('data-approval')) ?? '';
  // The page does not hear of it before it answers itself.
  await page.route(STATE, () => undefined);
  await jobs.supervisor.call('message_subagent', { job, approval_id: id, decision: 'deny', reason: 'no' });
  await allow.click();
  await expect(card.getByRole('alert')).toContainText('answered already');
  await expect(card.getByRole('status')).toContainText('denied by claude-api');
  await expect(allow).toHaveCount(0);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('JOB-05 JOB-06 CHT-17 a job is written to, changed, cancelled and continued', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const job = await jobs.give(['say I begin.', gate.line, 'answer Over.'], { title: 'Steered' });
  const other = await jobs.give(['answer Other.'], { title: 'Other' });
  await jobs.reaches(job, 'running');
  await jobs.reaches(other, 'finished');
  await page.goto(`/#/runs/${job}`);
  const log = page.getByRole('region', { name: 'Log' });
  const words = page.getByRole('textbox', { name: 'Message to Steered' });
  await words.fill('also fix the docs');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  const status = page.locator('main form [role=status]');
  await expect(status).toContainText(
    'Queued: its runner hands it over at the next safe step. “also fix the docs”',
  );
  await expect(log).toContainText('I read: also fix the docs');

  // A draft and a status belong to their job.
  await words.fill('half a thought');
  await page.goto(`/#/runs/${other}`);
  await expect(page.getByRole('textbox', { name: 'Message to Other' })).toHaveValue('');
  await expect(status).toHaveText('');
  await page.goto(`/#/runs/${job}`);
  await expect(words).toHaveValue('half a thought');
  await expect(status).toContainText('also fix the docs');

  await page.getByRole('button', { name: 'Settings…' }).click();
  const settings = page.getByRole('dialog', { name: 'Settings of Steered' });
  expect(await violations(page)).toEqual([]);
  await settings.getByRole('textbox', { name: 'Title' }).fill('Steered well');
  await settings.getByRole('combobox', { name: 'Access' }).selectOption('edit');
  await expect(settings).toContainText('count when it is continued');
  await settings.getByRole('button', { name: 'Change' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Steered well' })).toBeVisible();

  await page.getByRole('button', { name: 'Cancel…' }).click();
  const cancel = page.getByRole('dialog', { name: 'Cancel Steered well?' });
  await expect(cancel).toContainText('every process that it started');
  expect(await violations(page)).toEqual([]);
  await cancel.getByRole('button', { name: 'Let it go on' }).click();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await cancel.getByRole('button', { name: 'Cancel the job' }).click();
  await expect(page.locator('main header').getByText('cancelled')).toBeVisible();

  await page.getByRole('textbox', { name: 'Message to Steered well' }).fill('answer It went on.');
  await page.getByRole('button', { name: 'Continue it' }).click();
  await jobs.reaches(job, 'finished');
  await page.getByRole('link', { name: 'Result' }).click();
  await expect(page.getByRole('region', { name: 'What codex says' })).toHaveText(/It went on\./);
});

test('JOB-21 an agent’s models are offered, and how much of its limits is used', async ({ jobs, page }) => {
  const job = await jobs.give(['answer Done.'], { title: 'Offers' });
  await jobs.reaches(job, 'finished');
  // Other agents of this PC are not to be started for this.
  await page.route('**/api/usage', (route) =>
    route.continue({ url: `${new URL(page.url()).origin}/api/usage?agent=codex` }),
  );
  await page.goto('/#/runs');
  const folded = page.locator('main details', { hasText: 'Usage limits' });
  await expect(folded.getByRole('listitem')).toHaveCount(0);
  await folded.getByText('Usage limits').click();
  await expect(folded).toContainText(pattern(/codex plus · as of /, CLOCK));
  const limits = folded.getByRole('listitem').filter({ hasNot: page.getByRole('listitem') });
  await expect(limits).toHaveText([
    pattern(/5 h\s+94 % used resets /, CLOCK),
    pattern(/7 d\s+12 % used resets /, CLOCK),
  ]);
  expect(await violations(page)).toEqual([]);

  await page.goto(`/#/runs/${job}`);
  await page.getByRole('button', { name: 'Settings…' }).click();
  const settings = page.getByRole('dialog', { name: 'Settings of Offers' });
  const offered = (label: string) =>
    settings
      .getByLabel(label)
      .evaluate((e) => [...((e as HTMLInputElement).list?.options ?? [])].map((o) => o.value));
  await expect.poll(() => offered('Model')).toEqual(['test-model', 'small-model']);
  await settings.getByLabel('Model').fill('test-model');
  expect(await offered('Effort')).toEqual(['low', 'high']);
  await settings.getByLabel('Model').fill('small-model');
  expect(await offered('Effort')).toEqual(['low']);
  expect(await violations(page)).toEqual([]);
  await settings.getByRole('button', { name: 'Change' }).click();
  await expect.poll(async () => (await jobs.runs()).find((r) => r.job === job)?.model).toBe('small-model');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('DSK-06 the pages of jobs pass axe and fit every width', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const done = await jobs.give(['run go vet ./... => 1', 'answer It is done.'], { title: 'Done' });
  await jobs.reaches(done, 'finished');
  const job = await jobs.give(
    ['say I begin.', 'run go test ./... => 1', `ask ${'rm -rf build && '.repeat(40)}true`, gate.line],
    { title: 'Asks for something with a title that is rather long' },
  );
  await jobs.reaches(job, 'waiting');
  const wrote = await jobs.give(
    [
      `write parser.txt one\\n${'a long line of it '.repeat(20)}\\nthree`,
      'write new.txt file',
      'answer Changed.',
    ],
    { title: 'Changes the parser', access: 'edit', worktree: true },
  );
  await jobs.reaches(wrote, 'finished');
  const looks: [string, () => Promise<void>][] = [
    [`runs/${wrote}/changes`, () => expect(page.getByText('new.txt').first()).toBeVisible()],
    [`runs/${wrote}/result`, () => expect(page.getByText('It answered.')).toBeVisible()],
    ['runs', () => expect(page.locator(`[data-run="${job}"]`)).toContainText('waits for you')],
    ['needs', () => expect(page.getByRole('button', { name: 'Allow once' })).toBeVisible()],
    [`runs/${job}`, () => expect(page.getByRole('button', { name: 'Allow once' })).toBeVisible()],
    [`runs/${done}/log`, () => expect(page.getByText('done (exit 1)')).toBeVisible()],
    [
      `runs/${done}/result`,
      async () => {
        await page.getByText(/variables of yours$/).click();
        await expect(page.getByText(/\bHOME\b/)).toBeVisible(); // JOB-28: the names, no value
      },
    ],
  ];
  for (const [place, shows] of looks) {
    await page.goto(`/#/${place}`);
    await shows();
    await looksRight(page, place.replaceAll('/', '-').replace(/-job-\w+/, ''));
  }
});

test('JOB-18 JOB-08 a worktree job is read line by line, commented on and squashed into the checkout', async ({
  jobs,
  page,
}) => {
  const gate = jobs.gate();
  const job = await jobs.give(
    ['write parser.txt one\\n2\\nthree', 'write new file.txt', gate.line, 'answer Changed the parser.'],
    { title: 'Change the parser', access: 'edit', worktree: true },
  );
  await jobs.reaches(job, 'running');
  await gate.open();
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/changes`);
  const file = page.locator('main details').filter({ hasText: 'parser.txt' });
  await expect(file).toContainText('two');
  await file.getByRole('button', { name: 'Comment on added line 2' }).click();
  await file.getByRole('textbox', { name: 'Comment on line 2 of parser.txt' }).fill('Write it out.');
  await file.getByRole('button', { name: 'Add comment' }).click();
  await expect(page.getByText('1 comment', { exact: true })).toBeVisible();
  expect(await violations(page)).toEqual([]);
  await shot(page, 'changes');

  await page.getByRole('button', { name: 'Squash…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Squash Change the parser?' });
  await expect(dialog).toContainText('It fits without a conflict.');
  expect(await violations(page)).toEqual([]);
  await shot(page, 'squash');
  await dialog.getByRole('textbox', { name: 'Commit message' }).fill('Parser: two is 2');
  await dialog.getByRole('button', { name: 'Squash', exact: true }).click();
  await expect(page.getByText(/Landed as [0-9a-f]{7} on main, \d\d:\d\d/)).toBeVisible();

  // What was said about its lines continues it.
  await page.getByRole('button', { name: 'Send as one message' }).click();
  await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
  await jobs.reaches(job, 'finished');
});

test('JOB-18 what does not fit is named, and nothing is done', async ({ jobs, page }) => {
  const give = (word: string) =>
    jobs.give([`write conflict.txt ${word}`, 'answer Written.'], {
      title: word,
      access: 'edit',
      worktree: true,
    });
  const [first, other] = [await give('One'), await give('Other')];
  await jobs.reaches(first, 'finished');
  await jobs.reaches(other, 'finished');
  await page.goto(`/#/runs/${first}/changes`);
  await page.getByRole('button', { name: 'Squash…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Squash', exact: true }).click();
  await expect(page.getByText(/Landed as [0-9a-f]{7} on main/)).toBeVisible();
  await page.goto(`/#/runs/${other}/changes`);
  await page.getByRole('button', { name: 'Merge…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Merge Other?' });
  await expect(dialog).toContainText('1 file does not fit:');
  await expect(dialog.getByRole('listitem')).toHaveText('conflict.txt');
  await expect(dialog.getByRole('button', { name: 'Merge', exact: true })).toBeDisabled();
  await dialog.getByRole('button', { name: 'Not now' }).click();
  await page.getByRole('button', { name: 'Discard…' }).click();
  const discard = page.getByRole('dialog', { name: 'Discard Other?' });
  await expect(discard).toContainText('30 days');
  await discard.getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(page.getByText(/Discarded, \d\d:\d\d/)).toBeVisible();
});

test('CHT-12 a native child of a job takes a note to the job, and nothing else', async ({ jobs, page }) => {
  const gate = jobs.gate();
  const job = await jobs.give(['say I have a child.', gate.line], { title: 'With a child' });
  await jobs.reaches(job, 'running');
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    const [peer] = state.peers;
    if (peer === undefined) throw new Error('there is no session');
    const children = [{ id: 'c-1', title: 'explore the tests', state: 'busy' }];
    await route.fulfill({
      response,
      json: { ...state, peers: [...state.peers, { ...peer, id: 'p-job', name: job, children }] },
    });
  });
  const bodies: unknown[] = [];
  await page.route('**/api/jobs/*/message', (route) => {
    bodies.push([new URL(route.request().url()).pathname, route.request().postDataJSON()]);
    return route.fulfill({
      json: {
        state: 'queued',
        transport: 'parent',
        receipt: null,
        detail: 'It gets it as a note at its next step.',
      },
    });
  });
  await page.goto(`/#/runs/${job}`);
  await page.locator('main').getByRole('link', { name: 'explore the tests' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'explore the tests' })).toBeVisible();
  await expect(page.locator('main').getByRole('link', { name: 'With a child' }).first()).toBeVisible();
  // A job's own session is with its job, not among the sessions.
  await expect(page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: job })).toHaveCount(
    0,
  );
  await expect(page.getByRole('button', { name: 'Send to the child' })).toHaveCount(0);
  await page.getByRole('textbox').fill('look at the slow ones');
  await page.getByRole('button', { name: 'Note to parent With a child' }).click();
  await expect(page.locator('main form [role=status]')).toContainText(
    'Queued: It gets it as a note at its next step.',
  );
  expect(bodies).toEqual([
    [`/api/jobs/${job}/message`, { body: 'look at the slow ones', child: 'c-1', target: 'parent' }],
  ]);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('PGE-05 a job is a conversation, and a failed turn hides no answer', async ({ jobs, page }) => {
  const job = await jobs.give(['answer The first answer.'], { title: 'Talks' });
  await jobs.reaches(job, 'finished');
  await page.goto(`/#/runs/${job}/result`);
  const words = page.getByRole('textbox', { name: 'Message to Talks' });
  const said = page.getByRole('region', { name: 'What codex says' });
  await expect(said).toContainText('The first answer.');
  await expect(page.getByRole('region', { name: 'Earlier turns' })).toHaveCount(0);

  await words.fill('fail no account');
  await page.getByRole('button', { name: 'Continue it' }).click();
  await jobs.reaches(job, 'failed');
  const earlier = page.getByRole('region', { name: 'Earlier turns' });
  await expect(earlier.getByText('The first answer.').last()).toBeVisible();
  await expect(said).toContainText('fail no account');

  await words.fill('answer The third answer.');
  await page.getByRole('button', { name: 'Continue it' }).click();
  await jobs.reaches(job, 'finished');
  await expect(said).toContainText('The third answer.');
  await expect(earlier.getByText('Turn 1')).toBeVisible();
  await expect(earlier.getByText('Turn 2')).toBeVisible();
  await expect(page.getByText('Message from you').last()).toBeVisible();
  await page.reload();
  await expect(earlier.getByText('The first answer.').last()).toBeHidden();
  await page
    .getByRole('tab', { name: 'Log' })
    .or(page.getByRole('link', { name: 'Log' }))
    .click();
  const log = page.getByRole('region', { name: 'Log' });
  await expect(log.getByText('Turn 2 from you')).toBeVisible();
  await expect(log.getByText('Turn 3 from you')).toBeVisible();
  await expect(log).toContainText('fail no account');
  await page.goBack();
  await earlier.getByText('Turn 1').click();
  await expect(earlier.getByText('The first answer.').last()).toBeVisible();
  await expect(earlier.getByText(/^Task from [a-z]/)).toBeVisible();
  expect(await violations(page)).toEqual([]);
});
