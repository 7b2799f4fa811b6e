import { expect, open, stateOf, test, unique } from './dashboard';
import { violations } from './axe';
import { shot } from './shot';

test('PGE-09 a message is answered, pinned and copied where it is open', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const { messages, peers } = await stateOf(page);
  const live = new Set(peers.map((p) => p.name));
  const message = messages.find((m) => live.has(m.from_name) && m.kind === 'message');
  if (message === undefined) throw new Error('the dashboard under test has no message of a live session');
  const answer = await page.request.post(`/api/sessions/${message.from_name}/message`, {
    headers: { 'x-bridge': '1' },
    data: { body: unique('an answer'), reply_to: message.id },
  });
  expect(answer.ok()).toBe(true);
  await open(page, `overview?m=${encodeURIComponent(message.id)}`);
  const details = page.getByRole('complementary', { name: 'Details' });
  const actions = details.getByRole('group', { name: 'Actions' });

  // The names lead to their sessions, ids stand behind a word.
  await expect(details.getByRole('link', { name: message.from_name }).first()).toHaveAttribute(
    'href',
    `#/sessions/${message.from_name}`,
  );
  await expect(details.getByText(message.conversation_id).first()).toBeHidden();
  await details.getByText('Technical').click();
  await expect(details.getByText(message.conversation_id).first()).toBeVisible();

  // The thread: this one stands under what it answers.
  const thread = details.getByRole('list', { name: 'Thread' });
  const edge = (row: number) =>
    thread
      .getByRole('listitem')
      .nth(row)
      .evaluate((li) => li.getBoundingClientRect().left);
  await expect(thread.locator('[aria-current]')).toContainText(message.from_name);
  expect(await edge(1)).toBeGreaterThan(await edge(0));
  expect(await violations(page)).toEqual([]);
  await shot(page, 'message-details');

  await actions.getByRole('button', { name: 'Copy text' }).click();
  await expect(details.getByText('Text copied.')).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(message.body);
  await actions.getByRole('button', { name: 'Copy link' }).click();
  await expect(details.getByText('Link copied.')).toBeVisible();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link).toBe(`${new URL(page.url()).origin}/#/overview?m=${message.id}`);

  // r opens the answer, which goes to the sender as a reply to this message.
  await page.keyboard.press('r');
  const box = details.getByRole('textbox', { name: `Reply to ${message.from_name}` });
  await expect(box).toBeFocused();
  const words = unique('thanks');
  await page.keyboard.type(words);
  await page.keyboard.press('Control+Enter');
  await expect(box).toHaveValue('');
  await expect(thread.getByText(words)).toBeVisible();
  const sent = (await stateOf(page)).messages.find((m) => m.body === words);
  expect(sent).toMatchObject({
    reply_to: message.id,
    conversation_id: message.conversation_id,
    kind: 'owner',
  });
  await page.keyboard.press('Escape');
  await expect(details.getByRole('heading', { name: 'Message', exact: true })).toBeFocused();

  await actions.getByRole('button', { name: 'Pin…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pin a decision' });
  await expect(dialog.getByRole('textbox', { name: 'Decision' })).toHaveValue(message.body);
  await expect(dialog.getByRole('combobox', { name: 'Topic' })).toHaveValue('');
});

test('PGE-09 r answers the message that has the focus', async ({ page }) => {
  const { messages, peers } = await stateOf(page);
  const live = new Set(peers.map((p) => p.name));
  const message = messages.find((m) => live.has(m.from_name) && m.kind === 'message');
  await open(page, 'overview');
  await page.locator(`main [data-message="${message?.id ?? ''}"] [data-row]`).focus();
  await page.keyboard.press('r');
  const details = page.getByRole('complementary', { name: 'Details' });
  await expect(details.getByRole('textbox', { name: `Reply to ${message?.from_name ?? ''}` })).toBeFocused();
});
