import type { Page } from '@playwright/test';
import type { ChatResult } from '../src/lib/api';
import {
  addressOfChild,
  childOf,
  CLOCK,
  expect,
  open,
  pattern,
  stateOf,
  tellEveryone,
  test,
  unique,
  STATE,
  wholeState,
} from './dashboard';
import { Session } from './session';

// A page that is closing may still be asking.
test.afterEach(({ page }) => page.unrouteAll({ behavior: 'ignoreErrors' }));

/** Answers the owner's next message to a child itself; notes to its parent pass. */
async function answerDirect(page: Page, answer: ChatResult): Promise<unknown[]> {
  const bodies: unknown[] = [];
  await page.route('**/api/sessions/*/message', async (route) => {
    const body = route.request().postDataJSON() as { target?: string };
    bodies.push(body);
    if (body.target === undefined) await route.fulfill({ json: answer });
    else await route.continue();
  });
  return bodies;
}

const status = (page: Page) => page.locator('main form').getByRole('status');

test('CHT-10 CHT-17 a child is opened from the tree and always shows its limitation', async ({ page }) => {
  const { peer, child } = await childOf(page, 'claude');
  await open(page, `sessions/${encodeURIComponent(peer.name)}`);
  const tree = page.getByRole('list', { name: `Children of ${peer.name}` }).first();
  await expect(tree.locator('li', { hasText: child.title })).toContainText('only through its parent');
  await tree.getByRole('link', { name: child.title }).click();
  await expect(page.getByRole('heading', { level: 1, name: child.title })).toBeFocused();
  const limitation = page.getByText('A native child of claude takes no direct input.');
  await expect(limitation).toBeVisible();
  await expect(page.getByRole('button', { name: `Note to parent ${peer.name}` })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Send to the child' })).toHaveCount(0);
  await page.getByRole('textbox').fill('still writing');
  await expect(limitation).toBeVisible();
});

test('CHT-11 a note reaches the parent with the child’s id and title', async ({ page }) => {
  const { peer, child } = await childOf(page, 'claude');
  await open(page, addressOfChild({ peer, child }));
  const text = unique('a note about you');
  await page.getByRole('textbox').fill(text);
  await page.getByRole('button', { name: `Note to parent ${peer.name}` }).click();
  await expect(status(page)).toContainText(/Queued:|Delivered:/);
  const block = page.locator('main [data-message]', { hasText: text });
  await expect(block).toContainText(child.title);
  await expect(block.getByRole('button', { name: /^Delivery: / })).toBeVisible();
  const sent = (await stateOf(page)).messages.find((m) => m.body.includes(text));
  expect(sent).toMatchObject({ kind: 'owner', deliveries: [{ name: peer.name }] });
  expect(sent?.body).toContain(child.id);
});

test('CHT-10 a codex child takes direct input; where not, the parent is offered and the text kept', async ({
  page,
}) => {
  const { peer, child } = await childOf(page, 'codex');
  const bodies = await answerDirect(page, {
    state: 'not-supported',
    transport: 'parent',
    receipt: null,
    detail: 'codex cannot address this child: send a note to its parent.',
  });
  await open(page, addressOfChild({ peer, child }));
  await expect(page.getByText('codex takes words for a child only while')).toBeVisible();
  const text = unique('to the child');
  await page.getByRole('textbox').fill(text);
  await page.keyboard.press('Control+Enter');
  await expect(status(page)).toContainText('Not supported: codex cannot address this child');
  await expect(page.getByRole('textbox')).toHaveValue(text);
  const toParent = page.getByRole('button', { name: `Note to parent ${peer.name}` });
  await expect(toParent).toHaveClass(/primary/);
  await toParent.click();
  await expect(status(page)).toContainText(/Queued:|Delivered:/);
  await expect(page.getByRole('textbox')).toHaveValue('');
  expect(bodies).toEqual([
    { body: text, child: child.id },
    { body: text, child: child.id, target: 'parent' },
  ]);
});

test('CHT-06 what nobody confirmed is shown so and not sent again', async ({ page }) => {
  const target = await childOf(page, 'codex');
  const bodies = await answerDirect(page, {
    state: 'unconfirmed',
    transport: 'native-prompt',
    receipt: null,
    detail: 'Unconfirmed: codex did not answer in 10s. It is not sent again by itself.',
  });
  await open(page, addressOfChild(target));
  const text = unique('did it arrive');
  await page.getByRole('textbox').fill(text);
  await page.getByRole('button', { name: 'Send to the child' }).click();
  await expect(status(page)).toContainText('Unconfirmed: codex did not answer in 10s. It is not sent again');
  expect(bodies).toHaveLength(1);
});

test('CHT-17 drafts and status of a session and of its child stay apart', async ({ page }) => {
  const { peer, child } = await childOf(page, 'claude');
  await page.route('**/api/sessions/*/message', (route) =>
    route.fulfill({
      json: { state: 'queued', transport: 'bridge', receipt: null, detail: 'It waits in the inbox.' },
    }),
  );
  await open(page, `sessions/${encodeURIComponent(peer.name)}`);
  const nav = page.getByRole('navigation', { name: 'Main' });
  await page.getByRole('textbox').fill('done with this');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(status(page)).toContainText('Queued: It waits in the inbox. “done with this”');
  await page.getByRole('textbox').fill('next thought');
  await nav.getByRole('link', { name: child.title }).click();
  const note = page.getByRole('textbox', { name: `Note about ${child.title}` });
  await expect(note).toHaveValue('');
  await expect(status(page)).toHaveText('');
  await note.fill('about the child');
  await page.getByRole('main').getByRole('link', { name: peer.name }).first().click();
  await expect(page.getByRole('textbox', { name: `Message to ${peer.name}` })).toHaveValue('next thought');
  await expect(status(page)).toContainText('Queued: It waits in the inbox. “done with this”');
  await nav.getByRole('link', { name: child.title }).click();
  await expect(note).toHaveValue('about the child');
});

test('CHT-09 a receipt is followed until the message was read, by events alone', async ({ page }) => {
  const { instance, peers } = await stateOf(page);
  const name = unique('reader').replace(' ', '-');
  const flags = ['--home', instance.home, '--agent', 'opencode', '--name', name, '--session', name];
  const reader = await Session.begin(flags);
  try {
    await open(page, `sessions/${name}`);
    const asked: string[] = [];
    page.on('request', (r) => {
      if (r.url().includes('/api/chat-delivery/')) asked.push(r.url());
    });
    await page.getByRole('textbox').fill(unique('read me'));
    await page.getByRole('button', { name: 'Send' }).click();
    await expect(status(page)).toContainText('Queued:');
    expect(await reader.call('inbox')).toContain('read me');
    await reader.call('peers'); // that it goes on proves that it has read
    await expect(status(page)).toContainText(pattern(/Delivered: read /, CLOCK));
    expect(asked.length).toBeGreaterThan(0);
    // Nothing is asked about a message whose fate is known.
    const known = asked.length;
    const later = unique('something changes');
    await tellEveryone(page, later);
    await expect(page.locator('main [data-message]', { hasText: later })).toBeVisible();
    expect(asked).toHaveLength(known);
  } finally {
    await reader.end();
  }
  await expect.poll(async () => (await stateOf(page)).peers.length).toBe(peers.length);
});

test('CHT-18 CHT-19 diagnostics say what is open, which mail wakes, and what to do', async ({ page }) => {
  const { peers } = await stateOf(page);
  const [session] = peers;
  if (session === undefined) throw new Error('the dashboard under test has no sessions');
  const show = { ...session, agent: 'codex', autoWake: false, wakeOnDirect: true, sessionId: 'thread-1' };
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    const detail = 'it could not be woken while idle: this codex is too old to know the command `queue`.';
    const reach = {
      ...session.reach,
      owner: 'if that fails as it did last time, it waits as mail for the next turn.',
      wokenBy: 'only mail to exactly its name or id; auto-wake is off',
      obstacle: 'It could not be woken.',
    };
    await route.fulfill({
      response,
      json: {
        ...state,
        peers: [{ ...show, state: 'idle', transport: 'hooks', wake: 'failed', detail, reach }],
      },
    });
  });
  await open(page, `sessions/${encodeURIComponent(session.name)}`);
  await expect(page.getByText('It could not be woken.')).toBeVisible();
  await expect(page.locator('main code', { hasText: 'queue' })).toBeVisible();
  await expect(page.locator('main form')).toContainText('if that fails as it did last time');
  await page.getByText('Details', { exact: true }).click();
  await expect(page.locator('main dd').nth(1)).toContainText('only mail to exactly its name or id');
});

test('CHT-19 MSG-11 a session says why its queue refused and which versions were tried, whatever else is known', async ({
  page,
}) => {
  const { peers } = await stateOf(page);
  const [session] = peers;
  if (session === undefined) throw new Error('the dashboard under test has no sessions');
  const queue =
    "codex's queue did not take what it was given last: this codex is too old to know the command `queue`.";
  const version = 'codex 0.150.0 is older than 0.160.1, the oldest that Bridge was tried with.';
  await page.route(STATE, async (route) => {
    const { response, state } = await wholeState(route);
    const shown = {
      ...session,
      agent: 'codex',
      state: 'idle',
      transport: 'tools only',
      wake: 'failed',
      sessionId: 'thread-1',
      reach: { ...session.reach, obstacle: 'Only its inbox is open.' },
    };
    const problem = `${queue} ${version}`;
    const detail = `No hook has reported from this session yet. ${problem}`;
    const cli = '0.150.0; tried with 0.160.1 to 0.169.0';
    await route.fulfill({ response, json: { ...state, peers: [{ ...shown, detail, problem, cli }] } });
  });
  await open(page, `sessions/${encodeURIComponent(session.name)}`);
  await expect(page.getByText('Only its inbox is open.')).toBeVisible();
  await expect(page.getByText('too old to know the command')).toBeVisible();
  await expect(page.getByText('older than 0.160.1')).toBeVisible();
  await page.getByText('Details', { exact: true }).click();
  await expect(page.locator('main dt', { hasText: 'Agent CLI' }).locator('+ dd')).toHaveText(
    '0.150.0; tried with 0.160.1 to 0.169.0',
  );
});
