import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';

/** The rules whose outcome hangs on colours alone: the rest is the same in both schemes. */
const COLOURS = ['color-contrast', 'link-in-text-block'];

/**
 * What axe objects to in what the page shows now, each with its element: by every rule
 * in the scheme at hand, and by the rules about colours in the other one.
 */
export async function violations(page: Page): Promise<string[]> {
  const here = await page.evaluate(() =>
    matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
  );
  const there = here === 'dark' ? 'light' : 'dark';
  await changed(page);
  const found = await axe(page).analyze();
  await page.emulateMedia({ colorScheme: there });
  await changed(page);
  const colours = await axe(page)
    .options({ runOnly: COLOURS, resultTypes: ['violations'] })
    .analyze();
  await page.emulateMedia({ colorScheme: here });
  return [...said(here, found), ...said(there, colours)];
}

/** Waits until no colour is on its way to another one: axe would look at one between. */
const changed = (page: Page) =>
  page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const moving = () => document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    // A new colour scheme is in force in the next frame: only then do its transitions begin.
    await frame();
    await frame();
    for (let left = moving(); left.length > 0; left = moving()) {
      await Promise.all(left.map(({ finished }) => finished.catch(() => undefined)));
    }
  });

/** The page has no frames: so it is looked at as a whole, which takes a third of the time. */
const axe = (page: Page) => new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] });

type Results = Awaited<ReturnType<AxeBuilder['analyze']>>;

const said = (scheme: string, results: Results) =>
  results.violations.flatMap((v) =>
    v.nodes.map((n) => `${scheme}: ${v.id}: ${n.html} ${n.failureSummary ?? ''}`),
  );
