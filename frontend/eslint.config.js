import svelte from 'eslint-plugin-svelte';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'playwright-report/', 'test-results/'] },
  ...ts.configs.strict,
  ...ts.configs.stylistic,
  ...svelte.configs.recommended,
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig } },
  },
  {
    rules: {
      'svelte/no-at-html-tags': 'error',
      'id-denylist': ['error', 'one'], // a variable has the noun's name
      'svelte/no-navigation-without-resolve': 'off', // a SvelteKit rule; our links are hashes
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Only lib/markdown.ts makes HTML from text.' },
      ],
    },
  },
  { files: ['src/lib/markdown*.ts'], rules: { 'no-restricted-properties': 'off' } },
);
