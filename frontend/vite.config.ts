import { readFileSync, rmSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Rolldown } from 'vite';
import { defineConfig } from 'vitest/config';

type PluginContext = Rolldown.PluginContext;
type OutputBundle = Rolldown.OutputBundle;

// Old hashed files must go before a build, but dist/.gitkeep must stay: Go
// embeds dist even where the page was never built.
const clearAssets = {
  name: 'clear-assets',
  apply: 'build' as const,
  buildStart() {
    rmSync('dist/assets', { recursive: true, force: true });
  },
};

// Which packages the bundle was made from, for the list of licences
// (build/licences.go): what the bundler took, not what is installed.
const tellPackages = {
  name: 'tell-packages',
  apply: 'build' as const,
  generateBundle(this: PluginContext, _: unknown, bundle: OutputBundle) {
    const folders = new Set<string>();
    for (const part of Object.values(bundle)) {
      // Of code what was rendered, of typefaces and pictures the files that were copied.
      const taken =
        part.type === 'chunk'
          ? Object.entries(part.modules).flatMap(([id, { renderedLength }]) =>
              renderedLength > 0 ? [id] : [],
            )
          : part.originalFileNames.map((name) => resolve(name));
      for (const id of taken) {
        const folder = /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll('\\', '/'))?.[1];
        if (folder !== undefined) folders.add(folder);
      }
    }
    const packages = [...folders].sort().map((folder) => {
      const about = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as Record<string, string>;
      const { name = '', version = '', license: licence = '' } = about;
      return { name, version, licence, folder: relative('.', folder).replaceAll('\\', '/') };
    });
    this.emitFile({ type: 'asset', fileName: 'assets/packages.json', source: JSON.stringify(packages) });
  },
};

export default defineConfig({
  plugins: [svelte(), clearAssets, tellPackages],
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
    // One browser for all files: a new one for each takes five times as long. Each file
    // restores what it replaces.
    isolate: false,
  },
});
