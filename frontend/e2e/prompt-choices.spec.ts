import { expect } from '@playwright/test';
import { test } from './fresh';
import { looksRight } from './looks';
import { choose, hook } from './prompting';

const QUESTIONS = [
  {
    question: 'Which library shall format dates?',
    header: 'Library',
    options: [
      { label: 'date-fns', description: 'small, by functions', preview: 'format(day, "d. M.")\nparse(text)' },
      { label: 'Own code', description: 'no dependency' },
    ],
    multiSelect: false,
  },
  {
    question: 'Which tests shall run?',
    header: 'Tests',
    options: [
      { label: 'Unit', description: 'two minutes' },
      { label: 'Browser', description: 'ten minutes' },
    ],
    multiSelect: true,
  },
];
const CALL = { tool_name: 'AskUserQuestion', tool_input: { questions: QUESTIONS } };

test('NED-02 what a session’s model asks is answered in its card, with pointer and words', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const asked = hook(home, 'PermissionRequest', CALL);
  const card = page.locator('[data-approval]');
  await expect(card).toContainText('A question for claude-web');
  await expect(card.getByRole('group', { name: /Which library shall format dates/ })).toBeVisible();
  await expect(card.getByText('small, by functions', { exact: true })).toBeVisible();
  const answer = card.getByRole('button', { name: 'Answer' });
  await expect(answer).toBeDisabled();
  await expect(card.getByRole('button', { name: 'Allow once' })).toHaveCount(0);
  await expect(card).toContainText('2 questions are not answered yet.');

  await looksRight(page, 'choices');

  await card.getByRole('radio', { name: 'date-fns' }).check();
  await card
    .getByRole('group', { name: /Which library/ })
    .getByLabel('Or in your own words')
    .fill('Temporal');
  await expect(card.getByRole('radio', { name: 'date-fns' })).not.toBeChecked();
  await expect(card).toContainText('One question is not answered yet.');
  await card.getByRole('checkbox', { name: 'Browser' }).check();
  await card.getByRole('checkbox', { name: 'Unit' }).check();
  await answer.click();
  expect(JSON.parse(await asked.said)).toEqual({
    hookSpecificOutput: {
      hookEventName: 'PermissionRequest',
      decision: {
        behavior: 'allow',
        updatedInput: {
          questions: QUESTIONS,
          answers: {
            'Which library shall format dates?': 'Temporal',
            'Which tests shall run?': 'Unit, Browser',
          },
        },
      },
    },
  });
  await expect(card).toContainText('Delivered: chosen by you');
  await expect(card.getByRole('listitem').nth(0)).toContainText('Temporal');
  await hook(home, 'PostToolUse', { ...CALL, tool_use_id: 't1' }).said;
  await expect(card).toContainText('Applied: chosen by you');
});

test('NED-02 a question of a session’s model is answered by keyboard alone, or refused', async ({
  fresh,
}) => {
  const { page, begin, home } = fresh;
  await begin('--agent', 'claude', '--name', 'claude-web', '--session', 's1');
  await choose(page, 'always');
  const call = { ...CALL, tool_input: { questions: [QUESTIONS[0]] } };
  const asked = hook(home, 'PermissionRequest', call);
  const card = page.locator('[data-approval].open');
  await expect(card.getByRole('radio')).toHaveCount(2);
  await page.keyboard.press('2'); // goes to the second answer
  await expect(card.getByRole('radio', { name: 'Own code' })).toBeFocused();
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  expect(JSON.parse(await asked.said).hookSpecificOutput.decision.updatedInput.answers).toEqual({
    'Which library shall format dates?': 'Own code',
  });

  const second = hook(home, 'PermissionRequest', { ...CALL, tool_input: { questions: [QUESTIONS[1]] } });
  const next = page.locator('[data-approval].open');
  await next.getByRole('button', { name: 'Deny…' }).click();
  await next.getByLabel('Why not?').fill('ask me tomorrow');
  await page.keyboard.press('Control+Enter');
  expect(JSON.parse(await second.said).hookSpecificOutput.decision).toEqual({
    behavior: 'deny',
    message: 'ask me tomorrow',
  });
});
