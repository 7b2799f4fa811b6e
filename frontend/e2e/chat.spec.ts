import { expect, open, someSession, stateOf, test, unique } from './dashboard';

test('CHT-17 drafts survive switching chats', async ({ page }) => {
  const [a, b] = [await someSession(page, 0), await someSession(page, 1)];
  await open(page, `sessions/${a}`);
  const tree = page.getByRole('navigation', { name: 'Main' });
  const session = (name: string) => tree.locator(`a[href="#/sessions/${name}"]`);
  await page.getByRole('textbox', { name: `Message to ${a}` }).fill('half a thought');
  await session(b).click();
  const other = page.getByRole('textbox', { name: `Message to ${b}` });
  await expect(other).toHaveValue('');
  await other.fill('another');
  await session(a).click();
  await expect(page.getByRole('textbox', { name: `Message to ${a}` })).toHaveValue('half a thought');
  await tree.getByRole('link', { name: 'Overview' }).click();
  await expect(page.getByRole('textbox', { name: 'Write a message' })).toHaveValue('');
  await session(b).click();
  await expect(page.getByRole('textbox', { name: `Message to ${b}` })).toHaveValue('another');
});

test('DSK-06 the owner writes to one session and sees it arrive in the conversation', async ({ page }) => {
  const name = await someSession(page);
  await open(page, `sessions/${name}`);
  const text = unique('from the owner');
  const box = page.getByRole('textbox', { name: `Message to ${name}` });
  await box.fill(text);
  await page.keyboard.press('Control+Enter');
  const block = page.locator('main [data-message]', { hasText: text });
  await expect(block).toBeVisible();
  await expect(block).toContainText('you');
  await expect(box).toHaveValue('');
  const status = page.getByRole('form', { name: `Message to ${name}` }).getByRole('status');
  await expect(status).toHaveText(/(Queued|Delivered|Unconfirmed)/);
  const sent = (await stateOf(page)).messages.find((m) => m.body === text);
  expect(sent).toMatchObject({ kind: 'owner', from_agent: 'owner', deliveries: [{ name }] });
});

test('DSK-06 the owner writes to everyone, after choosing so', async ({ page }) => {
  await open(page, 'overview');
  const text = unique('to everyone');
  await page.getByRole('textbox', { name: 'Write a message' }).fill(text);
  const send = page.getByRole('button', { name: 'Send' });
  await expect(send).toBeDisabled();
  await page.getByRole('combobox', { name: 'To' }).selectOption('*');
  await send.click();
  await expect(page.locator('main [data-message]', { hasText: text })).toContainText('everyone');
  const { peers, messages } = await stateOf(page);
  expect(messages.find((m) => m.body === text)?.deliveries).toHaveLength(peers.length);
});

test('what the server refuses stays in the composer, with its sentence', async ({ page }) => {
  const name = await someSession(page);
  await open(page, `sessions/${name}`);
  await page.route('**/api/sessions/*/message', (route) =>
    route.fulfill({ status: 429, json: { error: 'too many messages; wait a moment' } }),
  );
  const box = page.getByRole('textbox', { name: `Message to ${name}` });
  await box.fill('keep me');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByRole('form').getByRole('status')).toHaveText(
    /Not sent: too many messages; wait a moment/,
  );
  await expect(box).toHaveValue('keep me');
});
