import type { Page } from '@playwright/test';
import type { Decision, Message } from '../src/lib/api';
import { scopeWords } from '../src/features/decisions/decisions';
import { violations } from './axe';
import { expect, open, test } from './dashboard';

async function decisionsOf(page: Page, path = ''): Promise<Decision[]> {
  const response = await page.request.get(`/api/decisions${path}`);
  return ((await response.json()) as { decisions: Decision[] }).decisions;
}

test('DEC-21 current decisions are shown with scope, author and time', async ({ page }) => {
  await open(page, 'decisions');
  const current = await decisionsOf(page);
  expect(current.length).toBeGreaterThan(0);
  const entries = page.locator('main [data-decision]');
  await expect(entries).toHaveCount(current.length);
  for (const decision of current) {
    const link = page.getByRole('link', { name: decision.topic, exact: true });
    const row = entries.filter({ has: link });
    await expect(row.locator('.prose').first()).toHaveText(decision.text); // plain text in the demo
    await expect(row).toContainText(decision.author.name);
    await expect(row).toContainText(/now|\d+ (s|min|h|d)/);
    await expect(row).toContainText(scopeWords(decision.scope));
  }
  const newest = [...current].sort((a, b) => b.createdAt - a.createdAt).map((d) => d.topic);
  await expect(entries.getByRole('heading')).toHaveText(newest);

  // By project, and so after the page is loaded again.
  await page.getByRole('button', { name: 'By project' }).click();
  await page.reload();
  await expect(page.getByRole('button', { name: 'By project' })).toHaveAttribute('aria-pressed', 'true');
  for (const decision of current) {
    const link = page.getByRole('link', { name: decision.topic, exact: true });
    const group = page.locator('main section', { has: link });
    const scope = scopeWords(decision.scope);
    await expect(group.locator('h2')).toContainText(
      decision.scope === 'all' ? 'Everywhere' : 'sessions' in decision.scope ? 'Single sessions' : scope,
    );
  }
});

test('DEC-21 decisions are searched while typing', async ({ page }) => {
  await open(page, 'decisions');
  const [first] = await decisionsOf(page);
  if (first === undefined) throw new Error('the dashboard under test has no decisions');
  const search = page.getByRole('searchbox', { name: 'Search decisions' });
  await search.pressSequentially(first.topic.toUpperCase());
  const matching = await decisionsOf(page, `?q=${encodeURIComponent(first.topic)}`);
  await expect(page.locator('main [data-decision]')).toHaveCount(matching.length);
  await search.fill('zzz nothing says this zzz');
  await expect(page.getByText('No current decision matches')).toBeVisible();
});

test('DEC-21 under a decision: its history as differences and whom it reached', async ({ page }) => {
  const decision = (await decisionsOf(page)).find((d) => d.supersedes !== null);
  if (decision === undefined) throw new Error('the dashboard under test has no changed decision');
  const history = await decisionsOf(page, `/${encodeURIComponent(decision.topic)}/history`);
  await open(page, 'decisions');
  const entry = page.locator(`main [data-decision="${decision.id}"]`);
  const told = entry.locator('.told');
  await expect(told).toContainText('Delivered to');
  const response = await page.request.get(`/api/decisions/${encodeURIComponent(decision.topic)}/notices`);
  const { messages } = (await response.json()) as { messages: Message[] };
  const names = messages
    .filter((m) => m.conversation_id === `decision-${decision.id}`)
    .flatMap((m) => m.deliveries.map((d) => d.name));
  expect(names.length).toBeGreaterThan(0);
  const folded = told.getByRole('button', { name: /^read by/ });
  if (await folded.isVisible()) await folded.click();
  for (const name of names) await expect(told).toContainText(name);

  await expect(entry.locator('ol')).toBeHidden();
  const fold = entry.getByText('How it changed');
  await fold.focus();
  await page.keyboard.press('Enter');
  const revisions = entry.locator('ol > li');
  await expect(revisions).toHaveCount(history.length);
  const [newest] = history;
  const before = history.find((d) => d.id === newest?.supersedes);
  // Without what went it is the new text, without what came the old one.
  const sides = await revisions
    .first()
    .locator('.diff')
    .evaluate((diff) => {
      const without = (what: string) => {
        const copy = diff.cloneNode(true) as HTMLElement;
        for (const part of copy.querySelectorAll(`${what}, .sr-only`)) part.remove();
        return copy.textContent.trim();
      };
      return [without('ins'), without('del')];
    });
  expect(sides).toEqual([before?.text, newest?.text]);
  await expect(revisions.last().locator('.prose')).toHaveText(history.at(-1)?.text ?? '');
  expect(await violations(page)).toEqual([]);
  await told.getByRole('button', { name: 'Delivered to' }).click();
  await expect(page.getByRole('complementary', { name: 'Details' })).toContainText('read');
});

test('DEC-21 a topic shows what each revision changed, and each in full', async ({ page }) => {
  const decision = (await decisionsOf(page)).find((d) => d.supersedes !== null);
  const topic = decision?.topic ?? '';
  await open(page, `decisions/${encodeURIComponent(topic)}`);
  const entries = page.locator('main ol > li');
  const changes = entries.locator('.change');
  const history = await decisionsOf(page, `/${encodeURIComponent(topic)}/history`);
  await expect(changes).toHaveCount(history.filter((d) => d.supersedes !== null).length);
  await expect(entries.first().locator('.prose')).toHaveText(decision?.text ?? '');
  await expect(entries.first()).toContainText('Delivered to');
  await page.getByRole('button', { name: 'Revisions in full' }).click();
  await expect(changes).toHaveCount(0);
  await expect(entries.locator('.prose')).toHaveText(history.map((d) => d.text));
});

test('DEC-21 a topic shows its whole history: what superseded what, by whom and when', async ({ page }) => {
  const topic = (await decisionsOf(page)).find((d) => d.supersedes !== null)?.topic ?? '';
  expect(topic).not.toBe('');
  const history = await decisionsOf(page, `/${encodeURIComponent(topic)}/history`);
  await open(page, 'decisions');
  await page.getByRole('link', { name: topic, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: topic })).toBeFocused();
  const entries = page.locator('main ol > li');
  await expect(entries).toHaveCount(history.length);
  for (const [i, decision] of history.entries()) {
    const entry = entries.nth(i);
    await expect(entry).toContainText(`Revision ${history.length - i}`);
    await expect(entry).toContainText(decision.current ? 'current' : 'superseded');
    await expect(entry).toContainText(decision.author.name);
    await expect(entry).toContainText(scopeWords(decision.scope));
    await expect(entry).toContainText(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/);
    if (decision.supersedes !== null) {
      await expect(entry).toContainText(`replaced revision ${history.length - i - 1}`);
    }
  }
  await page.getByRole('searchbox', { name: 'Search this history' }).fill('zzz nothing says this zzz');
  await expect(entries).toHaveCount(0);
});

test('DSK-06 the stream shows a decision by its topic and text, the details what its sessions read', async ({
  page,
}) => {
  const [first] = await decisionsOf(page);
  if (first === undefined) throw new Error('the dashboard under test has no decisions');
  await open(page, 'overview');
  const row = page.locator('main [data-message]', { hasText: `decision: ${first.topic}` }).first();
  await expect(row).not.toContainText('pinned for');
  await row.getByRole('button').first().click();
  await expect(page.getByRole('complementary', { name: 'Details' })).toContainText('pinned for');
});
