// Prints the bundled policy and the tables of settings and bounds (compiled src/server/settings/settings-table.ts,
// src/server/bounds-table.ts) into README.md. With --check it only compares and fails when README is out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const compiled = createRequire(import.meta.url);
const { SETTINGS } = compiled(join(root, 'build/src/server/settings/settings-table.js'));
const { inertByReason } = compiled(join(root, 'build/src/server/settings/inert-settings.js'));
const { hasReferenceDefault } = compiled(join(root, 'build/src/server/settings/reference-defaults.js'));
const { BOUNDS } = compiled(join(root, 'build/src/server/bounds-table.js'));
const readme = join(root, 'README.md');

const cell = (text) => text.replaceAll('|', '\\|');
const code = (text) => (text === '' ? '–' : `\`${text}\``);
const names = (variables) => variables.map((name) => `\`${name}\``).join(', ');

const settings = [
  '| variable | type | default | meaning |',
  '|---|---|---|---|',
  ...SETTINGS.map(
    ({ name, type, default: value, help }) =>
      `| \`${name}\` | ${type.replaceAll('_', ' ')} | ${code(value)} | ${cell(help)} |`,
  ),
].join('\n');

const known = SETTINGS.filter(({ reference }) => reference !== undefined);
const differs = (setting) => setting.reference.differs !== undefined || !hasReferenceDefault(setting);
const reference = [
  '| variable | default there | default here | what differs |',
  '|---|---|---|---|',
  ...known
    .filter(differs)
    .map(
      ({
        name,
        default: here,
        help,
        reference: { default: there, differs: text = here === '' ? help : '' },
      }) => `| \`${name}\` | ${code(there)} | ${code(here)} | ${cell(text)} |`,
    ),
  ...[...inertByReason()].map(
    ([reason, inert]) => `| ${names(inert)} | | | Changes nothing: ${cell(reason)} |`,
  ),
  '',
  'The same in name, meaning and default: ' +
    `${names(known.filter((setting) => !differs(setting)).map(({ name }) => name))}.`,
].join('\n');

/** One table; a group begins with a line of its own. */
const bounds = [
  '| what | bound | beyond it |',
  '|---|---|---|',
  ...BOUNDS.flatMap(({ title, bounds }) => [
    `| **${title}** | | |`,
    ...bounds.map(({ what, bound, beyond }) => `| ${cell(what)} | ${cell(bound)} | ${cell(beyond)} |`),
  ]),
].join('\n');

const policy = readFileSync(join(root, 'deploy/policies/open-api.yaml'), 'utf8');

const before = readFileSync(readme, 'utf8');
let after = replace(before, 'policy', `\`\`\`yaml\n${policy}\`\`\``);
after = replace(after, 'settings', settings);
after = replace(after, 'reference', reference);
after = replace(after, 'bounds', bounds);
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
