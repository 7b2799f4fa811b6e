import { defineConfig } from '@playwright/test';

// Tests run against a real dashboard: BRIDGE_URL is the launch link of one that
// runs, else BRIDGE_BIN, by default bin/bridge, is started as a demo, one for each
// worker. A test waits more than it works, so two files run at a time.
export default defineConfig({
  testDir: 'e2e',
  workers: process.env['BRIDGE_URL'] === undefined ? 3 : 1, // those of one dashboard would be in each other's way
  fullyParallel: false,
  forbidOnly: process.env['CI'] !== undefined,
  reporter: 'list',
  // Waits are for work, on a machine that may be very busy: what passes does not wait.
  timeout: 300_000,
  expect: { timeout: 30_000 },
  use: {
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: process.env['BRIDGE_CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
