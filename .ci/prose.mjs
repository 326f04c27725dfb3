// A linter of English prose, called by `npm run prose`: see docs/internals/testing.md, "Prose".
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { exampleOf, findingsIn, RULES } from './prose/check.mjs';
import { filesBelow, root as here } from './shell.mjs';

const ROOMS = ['.ci', 'deploy', 'docs', 'src', 'test'];
const PAGES = ['README.md', 'CHANGELOG.md'];
const HELP = `Usage: npm run prose -- [options] [path…]

Checks the English of Markdown pages, comments and messages. Without a path, also lists
the entries of .ci/prose/exceptions.json that can be removed.

  --kind <kind>    only doc, comment or message
  --rule <name>    only this rule
  --count          print the number of findings for each folder and rule, not the findings
  --rules          print the rules as JSON, each with an example that it flags and one that it does not flag
  --root <folder>  check another project
`;

let root = here;
const read = (path) => readFileSync(join(root, path), 'utf8');

/** Returns the paths of files below a folder of the project, or the path itself if it is a file. */
function filesAt(path) {
  if (!existsSync(join(root, path))) throw new Error(`${path} does not exist`);
  return statSync(join(root, path)).isFile() ? [path] : [...filesBelow(path, root)];
}

const isProse = (path) => /\.(?:md|ts|mjs|cjs|lua|html|ya?ml|sh)$/.test(path);

const MAX_EXCEPTIONS = 20;
const EXCEPTIONS = '.ci/prose/exceptions.json';

/** Reads exceptions.json. Throws an Error if there are too many exceptions or one is incomplete. */
function readExceptions() {
  if (!existsSync(join(root, EXCEPTIONS))) return [];
  const exceptions = JSON.parse(read(EXCEPTIONS));
  if (exceptions.length > MAX_EXCEPTIONS)
    throw new Error(`${EXCEPTIONS} has ${exceptions.length} exceptions; the maximum is ${MAX_EXCEPTIONS}`);
  for (const { path, rule, words, reason } of exceptions) {
    if (!RULES.some(({ name }) => name === rule)) throw new Error(`${EXCEPTIONS}: unknown rule ${rule}`);
    if (!words || (reason ?? '').length < 20)
      throw new Error(`${EXCEPTIONS}: ${path}: specify the words, and a reason of at least 20 characters`);
  }
  return exceptions;
}

/** Prints the entries of exceptions.json that a complete check did not need. */
function printNeedless(exceptions) {
  for (const { path, rule, used } of exceptions)
    if (!used)
      process.stdout.write(`${EXCEPTIONS}: ${rule} has no finding in ${path}; remove the exception\n`);
}

function optionsOf(args) {
  const [flag, text] = [{ type: 'boolean' }, { type: 'string' }];
  const options = { count: flag, help: flag, rules: flag, kind: text, rule: text, root: text };
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  root = values.root ?? here;
  const paths = positionals.map((path) => normalize(relative(root, resolve(path))).replace(/\/$/, ''));
  return { ...values, paths };
}

/** Prints the number of findings for each folder and for each rule, the largest first. */
function printCounts(findings) {
  for (const key of [({ path }) => dirname(path), ({ rule }) => rule]) {
    const counts = new Map();
    for (const finding of findings) counts.set(key(finding), (counts.get(key(finding)) ?? 0) + 1);
    for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1]))
      process.stdout.write(`${String(count).padStart(6)} ${name}\n`);
    process.stdout.write('\n');
  }
}

function run(options) {
  const standard = [...PAGES, ...ROOMS].filter((path) => existsSync(join(root, path)));
  const paths = options.paths.length > 0 ? options.paths : standard;
  const files = [...new Set(paths.flatMap(filesAt))].filter(isProse).sort();
  const exceptions = readExceptions();
  const findings = [];
  for (const path of files)
    findings.push(
      ...findingsIn(path, read(path), exceptions).filter(
        ({ kind, rule }) => (options.kind ?? kind) === kind && (options.rule ?? rule) === rule,
      ),
    );
  if (options.count) printCounts(findings);
  else
    for (const { path, line, rule, words } of findings)
      process.stdout.write(`${path}:${line}: ${rule}: "${words}" (${exampleOf(rule)})\n`);
  if (options.paths.length === 0 && !options.kind && !options.rule) printNeedless(exceptions);
  process.stdout.write(
    findings.length === 0 ? 'prose: no findings\n' : `${findings.length} prose findings\n`,
  );
  return findings.length === 0 ? 0 : 1;
}

// `| head` closes the pipe early.
process.stdout.on('error', () => process.exit(1));

try {
  const options = optionsOf(process.argv.slice(2));
  if (options.help) process.stdout.write(HELP);
  else if (options.rules) process.stdout.write(`${JSON.stringify(RULES)}\n`);
  else process.exitCode = run(options);
} catch (error) {
  process.stderr.write(`prose: ${error.message}\n`);
  process.exitCode = 2;
}
