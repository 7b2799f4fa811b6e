import { expect, type Locator } from '@playwright/test';
import { test } from './fresh';
import { choose, hook } from './prompting';

const call = (command: string) => ({ tool_name: 'Bash', tool_input: { command } });

/** The card that the pointer is over. */
const under = (button: Locator) =>
  button.evaluate((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return document
      .elementFromPoint(x + width / 2, y + height / 2)
      ?.closest('[data-approval]')
      ?.getAttribute('data-approval');
  });

test('NED-01 NED-02 the card under the pointer stays there while others come, and a click answers that one', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const first = hook(home, 'PermissionRequest', call('make first'));
  const card = page.locator('[data-approval]').filter({ hasText: 'make first' });
  const allow = card.getByRole('button', { name: 'Allow once' });
  await allow.hover();
  const id = await card.getAttribute('data-approval');
  const before = await allow.boundingBox();

  const others: ReturnType<typeof hook>[] = [];
  for (let i = 0; i < 12; i++) {
    others.push(hook(home, 'PermissionRequest', call(`make other-${i}`)));
    if (i % 4 === 3) await expect(page.locator('[data-approval].open')).toHaveCount(others.length + 1);
  }
  expect(await allow.boundingBox()).toEqual(before);
  expect(await under(allow)).toBe(id);

  // One of the others is answered at its terminal, and one here: neither moves it.
  await hook(home, 'PostToolUse', { ...call('make other-3'), tool_use_id: 't3' }).said;
  await expect(page.getByText('At the terminal: it was allowed there.')).toBeVisible();
  expect(await allow.boundingBox()).toEqual(before);

  await page.mouse.down();
  await page.mouse.up();
  expect(JSON.parse(await first.said).hookSpecificOutput.decision).toEqual({ behavior: 'allow' });
  await expect(page.locator('[data-approval].open')).toHaveCount(11);
  await expect(card).toContainText('Delivered: allowed by you');
  for (const [i, other] of others.entries()) if (i !== 3) other.child.kill();
  expect(await Promise.all(others.map((other) => other.said))).toEqual(others.map(() => ''));
});
