// Writes generated parts of the manual: the bundled policy, the tables of settings, bounds and metrics (from compiled
// src/server/settings/settings-table.ts and .ci/docs/), the keys of policy files, and the help of commands (src/cli/).
// It also writes the schema of policy files, the settings in the schema of the Helm chart, and the lines of each
// feature. With --check, it only compares, and fails if a file is out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as chart from './chart.mjs';
import * as features from './features.mjs';
import { policyKeys } from './policy-keys-page.mjs';
import * as policySchema from './policy-schema.mjs';

const isCheck = process.argv.includes('--check');
const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const compiled = createRequire(import.meta.url);
const { hasReferenceDefault, INERT_VARIABLES, inertByReason, SETTINGS } = compiled(
  join(root, 'build/src/server/settings/settings-table.js'),
);
const { CHOICES } = compiled(join(root, 'build/src/server/settings/settings-values.js'));
const { describeMetrics, describeReference } = compiled(join(root, 'build/.ci/docs/describe-metrics.js'));
const { mainHelp } = compiled(join(root, 'build/src/cli/help.js'));
const { commandHelps } = compiled(join(root, 'build/src/cli/run.js'));
const { BOUNDS } = compiled(join(root, 'build/.ci/docs/bounds.js'));

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

const NAMES_IN_ROW = 16;
const inRows = (all) =>
  Array.from({ length: Math.ceil(all.length / NAMES_IN_ROW) }, (_, row) =>
    all.slice(row * NAMES_IN_ROW, (row + 1) * NAMES_IN_ROW),
  );

const known = SETTINGS.filter(({ reference }) => reference !== undefined);
const differs = (setting) => setting.reference.differs !== undefined || !hasReferenceDefault(setting);
const reference = [
  '| variable | default in envoyproxy/ratelimit | default in weir | difference |',
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
  ...[...inertByReason()].map(([reason, inert]) => `| ${names(inert)} | | | No effect: ${cell(reason)} |`),
  ...inRows(known.filter((setting) => !differs(setting)).map(({ name }) => name)).map(
    (row) => `| ${names(row)} | | | No difference. |`,
  ),
].join('\n');

const bounds = `| what | bound | when the bound is reached |\n|---|---|---|\n${BOUNDS}`;

/** Returns the names of a metric's labels. */
const labelsOf = ({ labels }) => names(Object.keys(labels));

/** Returns the labels of metrics. Labels with the same meaning share a row. */
function labelTable(described) {
  const rows = new Map();
  for (const { name, labels } of described) {
    for (const [label, { meaning, values = {} }] of Object.entries(labels)) {
      const texts = Object.entries(values).map(([value, text]) => `\`${value}\`: ${text}.`);
      const row = `${cell(meaning)} | ${cell(texts.join('<br>'))} |`;
      const key = `${label} ${row}`;
      if (!rows.has(key)) rows.set(key, { label, row, metrics: new Set() });
      rows.get(key).metrics.add(name);
    }
  }
  return [
    '| label | of | meaning | values |',
    '|---|---|---|---|',
    ...[...rows.values()].map(
      ({ label, row, metrics }) => `| \`${label}\` | ${names([...metrics])} | ${row}`,
    ),
  ].join('\n');
}

const described = [...describeMetrics()].sort((one, other) => (one.name < other.name ? -1 : 1));
const metrics = [
  '| metric | type | labels | meaning |',
  '|---|---|---|---|',
  ...described.map((one) => `| \`${one.name}\` | ${one.type} | ${labelsOf(one)} | ${cell(one.help)} |`),
  '',
  labelTable(described),
].join('\n');

const stats = describeReference();
const statistics = [
  '| statistic | type | Prometheus metric | Prometheus labels | meaning |',
  '|---|---|---|---|---|',
  ...stats.map(
    ({ name, type, meaning, metric }) =>
      `| \`${name}\` | ${type} | \`${metric.name}\`, ${metric.type} | ${labelsOf(metric)} | ${cell(meaning)} |`,
  ),
  '',
  labelTable(stats.map(({ metric }) => metric)),
].join('\n');

// The tables are made from the schemas, so the schemas are written first.
write(policySchema.SCHEMA, policySchema.schemaText());
write(chart.SCHEMA, chart.schemaText(SETTINGS, INERT_VARIABLES, CHOICES));

/** A help text with a paragraph for each setting. The page of settings contains these paragraphs. */
const WITH_SETTINGS = 'weir serve';

/** Returns a section with the output of `weir --help` and of each `weir <command> --help`. */
const commands = [['weir', mainHelp()], ...[...commandHelps()].map(([name, help]) => [`weir ${name}`, help])]
  .map(([title, help]) => {
    const shown = title === WITH_SETTINGS ? help.slice(0, help.indexOf('\n  --')) : help;
    const rest = title === WITH_SETTINGS ? '\n\n[Settings](settings.md) lists every setting.' : '';
    return `## ${title}\n\n\`\`\`text\n${shown.trimEnd()}\n\`\`\`${rest}`;
  })
  .join('\n\n');

const policy = readFileSync(join(root, 'deploy/policies/open-api.yaml'), 'utf8');

/** The generated parts: [page, name of the part, content]. */
const parts = [
  ['README.md', 'policy', `\`\`\`yaml\n${policy}\`\`\``],
  ['docs/reference/settings.md', 'settings', settings],
  ['docs/migrate.md', 'reference', reference],
  ['docs/reference/bounds.md', 'bounds', bounds],
  [chart.PAGE, 'values', chart.valuesTable()],
  ['docs/reference/metrics.md', 'metrics', metrics],
  ['docs/reference/metrics.md', 'statistics', statistics],
  ['docs/reference/policy-keys.md', 'keys', policyKeys()],
  ['docs/reference/commands.md', 'commands', commands],
  [features.PAGE, 'features', features.table()],
];

const texts = new Map();
for (const [page, name, content] of parts) {
  const text = texts.get(page) ?? readFileSync(join(root, page), 'utf8');
  texts.set(page, replace(page, text, name, content));
}
for (const [page, after] of texts) write(page, after);
for (const fault of features.faults()) fail(fault);

/** Writes a file if it has changed, and names it. With --check, only reports that it is out of date. */
function write(path, after) {
  const before = readFileSync(join(root, path), 'utf8');
  if (after === before) return;
  if (!isCheck) {
    writeFileSync(join(root, path), after);
    console.log(`wrote ${path}`);
    return;
  }
  // Numbers that change with every commit are not checked.
  if (path === features.PAGE && features.withoutNumbers(after) === features.withoutNumbers(before)) return;
  fail(`${path} is out of date; run npm run docs, and commit the file`);
}

function fail(sentence) {
  console.error(sentence);
  process.exitCode = 1;
}

/** Returns the text of a page with the part between the two comments of `name` replaced. */
function replace(page, text, name, content) {
  const begin = `<!-- ${name}: printed by npm run docs -->`;
  const end = `<!-- ${name} end -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to === -1) {
    console.error(`${page} must contain the lines ${begin} and ${end}`);
    process.exit(1);
  }
  return `${text.slice(0, from)}${begin}\n${content}\n${text.slice(to)}`;
}
