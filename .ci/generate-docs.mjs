// Prints the bundled policy and the settings table (compiled src/server/settings-table.ts) into README.md. With --check it only compares and fails when
// README is out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { SETTINGS } = createRequire(import.meta.url)(join(root, 'build/src/server/settings-table.js'));
const readme = join(root, 'README.md');

const cell = (text) => text.replaceAll('|', '\\|');
const rows = SETTINGS.map(
  ({ name, type, default: value, help }) =>
    `| \`${name}\` | ${type.replaceAll('_', ' ')} | ${value === '' ? '–' : `\`${value}\``} | ${cell(help)} |`,
);
const table = ['| variable | type | default | meaning |', '|---|---|---|---|', ...rows].join('\n');

const policy = readFileSync(join(root, 'deploy/policies/open-api.yaml'), 'utf8');

const before = readFileSync(readme, 'utf8');
let after = replace(before, 'policy', `\`\`\`yaml\n${policy}\`\`\``);
after = replace(after, 'settings', table);
if (after === before) process.exit(0);
if (process.argv.includes('--check')) {
  console.error('README.md is out of date; run npm run docs and commit it');
  process.exit(1);
}
writeFileSync(readme, after);

/** README with the part between the two comments of `name` replaced. */
function replace(text, name, content) {
  const begin = `<!-- ${name}: printed by npm run docs -->`;
  const end = `<!-- ${name} end -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to === -1) {
    console.error(`README.md must hold the lines ${begin} and ${end}`);
    process.exit(1);
  }
  return `${text.slice(0, from)}${begin}\n${content}\n${text.slice(to)}`;
}
