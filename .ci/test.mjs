// `npm test`: installs, builds, fetches the tools, and runs every tier once, except attack, chaos and page. `npm run
// test:matrix` (--matrix) runs those tiers, a load test in a container, tests of deploy/, releases, alerts and the
// dashboard, short runs of benchmarks, and some tests on Node.js 22. Each run ends with skipped tests and reasons, and
// `N passed, N failed` as the last line. With other arguments, jest runs once with these arguments.
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative, resolve } from 'node:path';
import { jestAmongOddThings } from './hostile.mjs';
import { jest } from './jest.mjs';
import { requireNode } from './node.mjs';
import { build, install } from './prepare.mjs';
import { Impossible, isProgram, root, say } from './shell.mjs';
import { stopOnSignals } from './stop.mjs';
import { MATRIX_TOOLS, provideTools, TEST_TOOLS } from './tools.mjs';

/** The tiers that need tools, except those that measure, which need an idle machine. */
const AFTER_UNIT = ['property', 'contract', 'integration', 'conformance', 'e2e'];
const MEASURING = ['attack', 'chaos'];
const TIERS = ['unit', ...AFTER_UNIT, ...MEASURING, 'page'];
const alone = (tier) => ['--selectProjects', tier, '--runInBand'];
/** Note of `npm test` about tests that are too slow for it. */
const NOT_HERE =
  'not in this run: the attack, chaos and page tiers, the tests of deploy/, releases, alerts, the ' +
  'dashboard and the first edition, and short benchmarks; npm run test:matrix and .ci/run include these tests';
/**
 * Slow tests from outside: the files of deploy/, the image, a release, alerts and dashboard, the first edition, and
 * short benchmarks.
 */
const NOT_IN_NPM_TEST = [
  'integration/deploy/',
  'integration/release',
  'integration/alerts',
  'integration/two-editions',
  'integration/bench',
];
/** Tests that also run on Node.js 22: contracts, HTTP/2, the codec, and the life cycle of a server. */
const ON_NODE22 = [
  'test/contract/',
  'test/(unit|property)/(codec|h2)/',
  'integration/(decisions|h2-server|lifecycle)\\.test',
];
/** Tests that also run in the container of deploy/. */
const MEASURED_AGAIN = ['attack/crowd'];
/** Tiers that need only some of the tools when they run alone. */
const TOOLS_OF = {
  unit: [],
  property: ['redis-server', 'redis-server-old'],
  contract: ['redis-server', 'redis-server-old', 'valkey-server'],
  conformance: [
    ...['h2spec', 'connectconformance', 'grpc-go-client', 'python-grpc'],
    ...['grpcurl', 'ghz', 'h2load'],
  ],
  page: ['redis-server', 'chromium'],
  attack: ['redis-server', 'envoy'],
  chaos: ['redis-server', 'valkey-server', 'stepping-clock', 'envoy'],
};
/**
 * Half of the tests mostly wait, for servers or for the next step of a history in a browser, so two workers more than
 * cores keep all cores busy.
 */
const WORKERS = process.env.WEIR_TEST_WORKERS ?? String(availableParallelism() + 2);

export const nothingYet = () => ({ passed: 0, failed: 0, notes: [], tests: [] });

/** Adds the counts of `more` to `total`. If both runs have the same note about skipped tests, one is kept. */
export function add(total, more) {
  total.passed += more.passed;
  total.failed += more.failed;
  total.notes.push(...more.notes.filter((note) => !total.notes.includes(note)));
  total.tests.push(...more.tests);
}

/** Returns whether a word of a command line may name files: it is not an option, a number, or the value of -t. */
const mayBePath = (word, index, words) =>
  !/^-|^\d+%?$/.test(word) && !/^(-t|--testNamePattern)$/.test(words[index - 1]);

/** Returns a word of a command line. A path that begins with `/` or `./` becomes relative to the checkout. */
const inCheckout = (word, index, words) =>
  /^\.?\//.test(word) && mayBePath(word, index, words) ? relative(root, resolve(root, word)) : word;

/**
 * Returns the tier of a test or folder of tests, or undefined if the path does not determine one. A word without a
 * slash is not a path: jest runs every file whose path contains it.
 */
const tierOf = (path) =>
  path.includes('/') ? TIERS.find((tier) => `/${path}/`.includes(`/${tier}/`)) : undefined;

/** Options whose values are separate words here, even if the command line contains an = before the value. */
const INLINE = /^(--selectProjects|--testPathPatterns)=(.*)$/s;

/**
 * Returns the {tiers, tools, args} of a run with `args`; the returned args are for jest. jest treats every word after
 * --selectProjects as a tier; here, words that are not tiers select files. A path alone determines its tier, and .ts
 * paths of tests are accepted. Throws {@link Impossible} if --selectProjects names an unknown tier.
 */
export function planOf(args) {
  const words = args.flatMap((arg) => INLINE.exec(arg)?.slice(1) ?? [arg]).map(inCheckout);
  const start = words.indexOf('--selectProjects') + 1;
  const isTier = (word) => TIERS.includes(word);
  if (start > 0 && !isTier(words[start])) {
    throw new Impossible(
      `--selectProjects: '${words[start] ?? ''}' is not a tier; the tiers are ${TIERS.join(', ')}`,
    );
  }
  let end = start;
  if (start > 0) while (isTier(words[end])) end += 1;
  const ofPaths = words.filter(mayBePath).map(tierOf);
  const tiers =
    start > 0 ? words.slice(start, end) : ofPaths.includes(undefined) ? [] : [...new Set(ofPaths)];
  const tools = tiers.length === 0 ? TEST_TOOLS : tiers.flatMap((tier) => TOOLS_OF[tier] ?? TEST_TOOLS);
  const forJest = words.map((word) => word.replace(/(\.test)\.ts$/, '$1.js'));
  if (end > 0 && forJest[end]?.startsWith('-') === false) forJest.splice(end, 0, '--testPathPatterns');
  if (MEASURING.some((tier) => tiers.includes(tier))) forJest.push('--runInBand');
  return { tiers, tools: [...new Set(tools)], args: forJest };
}

/**
 * Runs every tier, or jest once with `args`. Resolves with {passed, failed, notes, tests}. Rejects with {@link
 * Impossible} if a required tool is not available.
 */
export async function runTests(args = []) {
  const total = nothingYet();
  const plan = planOf(args);
  const fetching = provideTools(plan.tools);
  if (args.length === 0) {
    // The unit tests need no tools, so they run in the meantime.
    fetching.catch(() => {});
    add(total, await jest(process.execPath, ['--maxWorkers', WORKERS, '--selectProjects', 'unit']));
  }
  const { env, skipped } = await fetching;
  if (args.length > 0) {
    const saysWorkers = plan.args.some((arg) => /^(--maxWorkers|--runInBand|-w|-i)\b/.test(arg));
    const words = saysWorkers ? plan.args : ['--maxWorkers', WORKERS, ...plan.args];
    add(total, await jest(process.execPath, words, env));
    const byName = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
    if (byName) total.notes = total.notes.filter((note) => !note.startsWith('skipped: '));
  } else {
    const together = ['--maxWorkers', WORKERS, '--selectProjects', ...AFTER_UNIT];
    const words = [...together, '--testPathIgnorePatterns', ...NOT_IN_NPM_TEST];
    add(total, await jest(process.execPath, words, env));
    total.notes.push(NOT_HERE);
  }
  total.notes.push(...skipped);
  return total;
}

/**
 * Runs the tiers and tests that {@link runTests} omits, and some tests on Node.js 22. Resolves and rejects like
 * runTests.
 */
export async function runMatrix() {
  const total = nothingYet();
  const { env, skipped } = await provideTools(MATRIX_TOOLS);
  const run = async (what, args, more = {}, node = process.execPath) => {
    say(what);
    add(total, await jest(node, args, { ...env, ...more }));
  };
  for (const tier of MEASURING)
    await run(`running alone, because this tier takes measurements: ${tier}`, alone(tier));
  await run(`running the browser tests, and the tests that npm test omits: ${NOT_IN_NPM_TEST.join(', ')}`, [
    ...['--maxWorkers', WORKERS, '--selectProjects', 'page', 'integration'],
    ...['--testPathPatterns', 'test/page/', ...NOT_IN_NPM_TEST],
  ]);
  await run(
    `running with 512 MiB of memory: ${MEASURED_AGAIN.join(', ')}`,
    [...alone('attack'), '--testPathPatterns', ...MEASURED_AGAIN],
    { WEIR_TEST_CONTAINER: '512' },
  );
  if (env.WEIR_TEST_NODE22 !== undefined) {
    const tiers = ['unit', 'property', 'contract', 'integration'];
    await run(
      `running on Node.js 22: ${ON_NODE22.join(', ')}`,
      ['--maxWorkers', WORKERS, '--selectProjects', ...tiers, '--testPathPatterns', ...ON_NODE22],
      {},
      env.WEIR_TEST_NODE22,
    );
  }
  total.notes.push(...skipped);
  return total;
}

/** The tests of {@link runAmongOddThings}: tests of output, of terminals, and of written and watched files. */
const AMONG_ODD_THINGS = [
  'unit/(cli|config/files|docs|support)/',
  'integration/(cli|colours|config-reload|policy-start|ratelimit-commands|terminal)\\.test',
  'integration/mistakes/commands',
];

/** Runs some tests again with unusual variables, locale, umask and path. Resolves and rejects like {@link runTests}. */
export async function runAmongOddThings() {
  const total = nothingYet();
  const { env, skipped } = await provideTools(['redis-server']);
  say(
    'running with unusual environment variables, a umask of 077 and a space in the path: ' +
      `${AMONG_ODD_THINGS.join(', ')}`,
  );
  const args = ['--maxWorkers', WORKERS, '--selectProjects', 'unit', 'integration'];
  const patterns = ['--testPathPatterns', ...AMONG_ODD_THINGS];
  add(total, await jestAmongOddThings(process.execPath, [...args, ...patterns], env));
  total.notes.push(...skipped);
  return total;
}

/** Prints the last lines. Programs read the very last line. */
export function conclude({ passed, failed, notes }) {
  for (const note of notes) process.stdout.write(`${note}\n`);
  const nothing = passed + failed === 0;
  process.stdout.write(`${passed} passed, ${nothing ? 1 : failed} failed\n`);
  process.exitCode = failed > 0 || nothing ? 1 : 0;
}

if (isProgram(import.meta.url)) {
  stopOnSignals();
  const args = process.argv.slice(2);
  let total = nothingYet();
  try {
    requireNode();
    await install();
    await build();
    total = args[0] === '--matrix' ? await runMatrix() : await runTests(args);
    const list = process.env.WEIR_TEST_LIST;
    if (list !== undefined) {
      const names = total.tests.map(({ file, name }) => `${file}: ${name}\n`);
      writeFileSync(list, names.sort().join(''));
    }
  } catch (error) {
    total.failed += 1;
    total.notes.push(error instanceof Impossible ? error.message : error.stack);
  }
  conclude(total);
}
