// Prints the settings table into README.md from the compiled src/server/settings-table.ts. With --check it only compares and fails when
// README is out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { SETTINGS } = createRequire(import.meta.url)(join(root, 'build/src/server/settings-table.js'));
const readme = join(root, 'README.md');
const begin = '<!-- settings: printed by npm run docs -->';
const end = '<!-- settings end -->';

const cell = (text) => text.replaceAll('|', '\\|');
const rows = SETTINGS.map(
  ({ name, type, default: value, help }) =>
    `| \`${name}\` | ${type.replace('_', ' ')} | ${value === '' ? '–' : `\`${value}\``} | ${cell(help)} |`,
);
const table = ['| variable | type | default | meaning |', '|---|---|---|---|', ...rows].join('\n');

const before = readFileSync(readme, 'utf8');
const from = before.indexOf(begin);
const to = before.indexOf(end);
if (from === -1 || to === -1) {
  console.error(`README.md must hold the lines ${begin} and ${end}`);
  process.exit(1);
}
const after = `${before.slice(0, from)}${begin}\n${table}\n${before.slice(to)}`;
if (after === before) process.exit(0);
if (process.argv.includes('--check')) {
  console.error('README.md: the settings table is out of date; run npm run docs and commit it');
  process.exit(1);
}
writeFileSync(readme, after);
