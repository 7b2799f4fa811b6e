import { rmSync } from 'node:fs';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Old hashed files must go before a build, but dist/.gitkeep must stay: Go
// embeds dist even where the page was never built.
const clearAssets = {
  name: 'clear-assets',
  apply: 'build' as const,
  buildStart() {
    rmSync('dist/assets', { recursive: true, force: true });
  },
};

export default defineConfig({
  plugins: [svelte(), clearAssets],
  build: {
    outDir: 'dist',
    emptyOutDir: false,
    target: 'es2022',
    // The page's policy allows no inline script and every browser we serve
    // preloads modules by itself.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.ts'],
  },
});
