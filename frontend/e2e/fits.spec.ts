import { fitsEverywhere, PLACES } from './fits';
import { test } from './fresh';
import { full } from './full';
import { open, test as dashboard } from './dashboard';

test('DSK-06 every page fits every size with nothing in it', async ({ fresh }) => {
  for (const place of PLACES) {
    await open(fresh.page, place);
    await fitsEverywhere(fresh.page, place);
  }
});

dashboard('DSK-06 every list fits every size with 56 sessions and 50 jobs in it', async ({ page }) => {
  await full(page);
  for (const place of ['needs', 'overview', 'sessions', 'runs', 'storage', 'network']) {
    await open(page, place);
    await fitsEverywhere(page, place);
  }
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
