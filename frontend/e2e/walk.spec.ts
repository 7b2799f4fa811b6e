// What somebody does who has never seen Bridge: from the start of the demo to a job's
// work applied, in steps and seconds. BRIDGE_WALK=build starts it as the README says,
// with `go run ./build demo`.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test, type Page } from '@playwright/test';
import { BINARY, start, stateOf, stop } from './dashboard';
import { fitsEverywhere } from './fits';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

function startDemo(): Promise<{ url: string; child: ChildProcess }> {
  if (process.env['BRIDGE_WALK'] !== 'build') return start(BINARY, ['demo', '--no-open']);
  return start('setsid', ['go', '-C', ROOT, 'run', './build', 'demo', '--no-open']);
}

/** `go run` passes no signal on: all that it started is told, as by Ctrl-C in a terminal. */
async function stopDemo(child: ChildProcess): Promise<void> {
  if (process.env['BRIDGE_WALK'] !== 'build' || child.pid === undefined) return stop(child);
  const ended = once(child, 'exit');
  process.kill(-child.pid, 'SIGINT');
  await ended;
}

/** Counts what the stranger does, and says how long each took. */
class Walk {
  readonly #began = Date.now();
  steps = 0;

  async step(words: string, does: () => Promise<unknown>): Promise<void> {
    await does();
    this.steps++;
    console.log(`${this.steps}. ${words}: ${((Date.now() - this.#began) / 1000).toFixed(1)} s`);
  }
}

test('DSK-06 a stranger allows, reads, comments and applies in the demo, in nine steps, and sees the rest', async ({
  browser,
}) => {
  const walk = new Walk();
  const { url, child } = await startDemo();
  const began = Date.now();
  try {
    const page = await browser.newPage({ baseURL: new URL(url).origin });
    const main = page.getByRole('main');
    await walk.step('opens the link that the demo printed', () => page.goto(url));
    const asks = main.getByRole('listitem').filter({ hasText: 'Show what changed in the cart asks' });
    await expect(asks.first()).toContainText('git commit');
    await walk.step('reads what needs her, and allows the command once', () =>
      asks.getByRole('button', { name: 'Allow once' }).click(),
    );
    await expect(main).toContainText('allowed by you');
    await walk.step('goes to what needs her', () =>
      page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Needs you' }).click(),
    );
    const review = main
      .getByRole('listitem')
      .filter({ hasText: 'Show what changed in the cart has changes' });
    await walk.step('reviews what the job has changed', () =>
      review.getByRole('link', { name: 'Review' }).click(),
    );
    const file = main.locator('details').filter({ hasText: 'src/cart.js' });
    await expect(file).toContainText('export function changes(before, after)');
    await expect(main).toContainText("Choose a line's number to comment on it");
    await walk.step('chooses a line', () =>
      file.getByRole('button', { name: 'Comment on added line 9' }).click(),
    );
    await walk.step('writes a comment', async () => {
      await file
        .getByRole('textbox', { name: 'Comment on line 9 of src/cart.js' })
        .fill('Name what came, too.');
      await file.getByRole('button', { name: 'Add comment' }).click();
    });
    const endedAt = async () =>
      (await stateOf(page)).runs.find((run) => run.title === 'Show what changed in the cart')?.endedAt ?? 0;
    const before = await endedAt();
    await walk.step('sends it', () => page.getByRole('button', { name: 'Send as one message' }).click());
    await expect(page.getByText(/Queued: it (goes on with this now|stands in line)/)).toBeVisible();
    // The job reads it, says that a script has no words for that, and has ended again: what is
    // open about its change goes when it begins anew.
    await expect.poll(endedAt).toBeGreaterThan(before);
    await walk.step('asks what it would be to apply the change', () =>
      page.getByRole('button', { name: 'Apply…' }).click(),
    );
    const dialog = page.getByRole('dialog', { name: 'Apply Show what changed in the cart?' });
    await expect(dialog).toContainText('It fits without a conflict.');
    await walk.step('applies it', () => dialog.getByRole('button', { name: 'Apply', exact: true }).click());
    await expect(dialog).toHaveCount(0);
    await expect(main.getByRole('status').filter({ hasText: /[Aa]pplied/ })).toBeVisible();
    expect(walk.steps).toBe(9);
    await seeTheRest(page);
    console.log(`the rest was seen ${((Date.now() - began) / 1000).toFixed(1)} s after the start`);
    await page.context().close();
  } finally {
    await stopDemo(child);
  }
});

/** What else the demo shows within a minute: steps, another diff, a question, a decision's history. */
async function seeTheRest(page: Page): Promise<void> {
  const main = page.getByRole('main');
  const { runs } = await stateOf(page);
  const [cart, guide] = ['Show what changed', 'Document'].map((words) =>
    runs.find((r) => r.title.startsWith(words)),
  );
  await page.goto(`/#/runs/${cart?.job ?? ''}/log`);
  for (const step of ['Read src/cart.js', 'Edit src/cart.js', 'git diff --stat'])
    await expect(main.getByText(step).first()).toBeVisible();
  await fitsEverywhere(page, 'a log');
  await page.goto(`/#/runs/${guide?.job ?? ''}/changes`);
  const file = main.locator('details').filter({ hasText: 'docs/errors.md' });
  await expect(file).toContainText('409 from the order endpoint');
  await fitsEverywhere(page, 'changes');
  await page.goto(`/#/runs/${guide?.job ?? ''}/result`);
  await expect(main.getByText('What the runner saw')).toBeVisible();
  await expect(main.getByRole('heading', { name: 'What script says' })).toBeVisible(); // not its kind, acp
  await fitsEverywhere(page, 'a result');
  await page.goto('/#/sessions/api');
  await expect(main.locator('[data-message]').first()).toBeVisible();
  await fitsEverywhere(page, 'a session');
  await page.goto('/#/needs');
  await expect(main.getByText('What does the shopper see first after a 409?')).toBeVisible();
  await page.goto(`/#/decisions/${encodeURIComponent('error format')}`);
  await expect(main.getByText('people read the sentence').first()).toBeVisible();
  await expect(main.getByText('status codes carry the meaning').first()).toBeAttached();
}
