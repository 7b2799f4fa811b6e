import { expect } from '@playwright/test';
import type { Question } from '../src/lib/api';
import { shot } from './shot';
import { looksRight } from './looks';
import { test } from './fresh';

const ASKED = {
  title: 'Which port shall the service listen on?',
  context: '4777 is taken by another program on this PC.\nThe tests want a fixed one.',
  topic: 'port',
  options: [
    { label: '4778', consequence: 'The tests run as they are; a second checkout cannot run beside it.' },
    { label: 'A free one', consequence: 'Two checkouts run side by side; three tests are rewritten.' },
  ],
};

test('NED-03 a question is answered by its number, pinned, and reaches its session once', async ({
  fresh,
}) => {
  const { page, begin } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await page.goto(new URL('/#/needs', page.url()).href);
  await expect(page.getByText('Nothing needs you.')).toBeVisible();
  await session.call('ask_owner', ASKED);
  const card = page.locator('[data-question]');
  await expect(card).toContainText(ASKED.title);
  await expect(card).toContainText('Two checkouts run side by side');
  await expect(page.getByRole('navigation', { name: 'Main' }).getByText('1', { exact: true })).toBeVisible();

  await looksRight(page, 'question');

  await card.getByLabel('Pin it as a decision').check();
  await card.getByLabel('Or in words, or a remark').fill('for now');
  await page.getByRole('heading', { level: 1 }).focus();
  await page.keyboard.press('2');
  await expect(card.locator('[data-option="2"]')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(card).toContainText('Answered: A free one. for now.');
  await expect(card).toContainText('Pinned as a decision.');
  await expect(card.getByRole('link', { name: 'How far it came' })).toBeVisible();
  await expect(card.getByRole('button')).toHaveCount(0);
  await shot(page, 'question-answered');

  const mail = await session.call('inbox', { limit: 100 });
  expect(mail.match(/A free one\. for now/g)).not.toBeNull();
  expect(await session.call('inbox')).not.toContain('A free one. for now');
  expect(await session.call('decisions')).toContain('A free one. for now');
});

test('NED-03 a question that waits gets words, and what came too late is told', async ({ fresh }) => {
  const { page, begin } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await page.goto(new URL('/#/needs', page.url()).href);
  const told = session.call('ask_owner', { title: 'Shall I go on?', blocking: true });
  const card = page.locator('[data-question]');
  await expect(card).toContainText('waits for the answer');
  await expect(card.getByRole('button', { name: 'Answer in words' })).toBeDisabled();
  await card.getByLabel('Your answer').fill('yes, and mind the tests');
  await page.keyboard.press('Control+Enter');
  expect(await told).toContain('yes, and mind the tests');
  await expect(card).toContainText('Answered: yes, and mind the tests.');

  const { question } = JSON.parse(await session.call('ask_owner', { title: 'And now?' })) as {
    question: string;
  };
  const late = page.locator(`[data-question="${question}"]`);
  await late.getByLabel('Your answer').fill('go');
  await page.route('**/api/questions', (route) => route.abort()); // the page does not hear of it
  await session.call('withdraw_question', { question });
  await late.getByRole('button', { name: 'Answer in words' }).click();
  await expect(late).toContainText('its asker has taken it back: this did nothing');
  await expect(late).toContainText('asker has taken it back.');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('NED-03 a question outlives the broker and its session', async ({ fresh }) => {
  const { page, begin, kill, again } = fresh;
  const session = await begin('--agent', 'claude', '--name', 'asker', '--session', 's1');
  await session.call('ask_owner', ASKED);
  await session.end();
  await kill();
  await again();
  await page.goto(new URL('/#/needs', page.url()).href);
  await expect(page.locator('[data-question]')).toContainText(ASKED.title);
  const { questions } = (await (
    await page.request.get(new URL('/api/questions', page.url()).href)
  ).json()) as {
    questions: Question[];
  };
  expect(questions.map((q) => q.state)).toEqual(['open']);
});
