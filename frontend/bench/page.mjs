// Measures the page in Chromium for `bench -only page`. It reads one request a line and
// answers each with one line of JSON: {"do":"load","times":N}, {"do":"idle","seconds":N},
// {"do":"begin"} and {"do":"end"}. BRIDGE_LAUNCH is the address that `bridge serve` printed.
import { createInterface } from 'node:readline';
import { chromium } from '@playwright/test';

const browser = await chromium.launch({ executablePath: process.env.BRIDGE_CHROMIUM });
const system = await browser.newBrowserCDPSession();
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const first = await context.newPage();
await first.goto(process.env.BRIDGE_LAUNCH);
await first.locator('main').waitFor();
const origin = new URL(first.url()).origin;
await first.close();

/** Returns the processor time of all pages so far, in ms. */
async function cpu() {
  const { processInfo } = await system.send('SystemInfo.getProcessInfo');
  const pages = processInfo.filter(({ type }) => type === 'renderer');
  return pages.reduce((sum, { cpuTime }) => sum + cpuTime * 1000, 0);
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Opens the Overview and returns the page, its first paint in ms, and how often it asked for the state. */
async function load() {
  const page = await context.newPage();
  let states = 0;
  page.on('request', (request) => (states += Number(new URL(request.url()).pathname === '/api/state')));
  await page.goto(`${origin}/#/overview`);
  await page.locator('main :is([data-session], details.quiet)').first().waitFor({ state: 'attached' });
  const paint = await page.evaluate(
    () =>
      new Promise((done) =>
        new PerformanceObserver((list) => {
          const [entry] = list.getEntriesByName('first-contentful-paint');
          if (entry !== undefined) done(entry.startTime);
        }).observe({ type: 'paint', buffered: true }),
      ),
  );
  return { page, paint, states };
}

let shown;
let begun = 0;
const requests = {
  async load({ times }) {
    const paints = [];
    let states = 0;
    for (let i = 0; i < times; i++) {
      await shown?.close();
      const loaded = await load();
      shown = loaded.page;
      paints.push(loaded.paint);
      states = Math.max(states, loaded.states);
    }
    await pause(3000); // what is loaded later than the first view
    return { paints, states };
  },
  async idle({ seconds }) {
    const before = await cpu();
    await pause(seconds * 1000);
    return { cpu: (await cpu()) - before };
  },
  async begin() {
    begun = await cpu();
    return {};
  },
  async end() {
    await pause(1000); // what the last event still draws
    return { cpu: (await cpu()) - begun };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify(await requests[request.do](request)));
}
await browser.close();
