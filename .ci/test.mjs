// `npm test`: installs, builds, fetches the tools and runs every tier once, but for chaos, memory, page and stall.
// `npm run test:matrix` (--matrix) runs these, a crowd in the container of deploy/, the image, alerts and dashboard,
// the signs of life of benchmarks, and a part on Node.js 22. Each ends with what was skipped and why, and
// `N passed, N failed` as the last line. With other arguments jest runs once with those.
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { jestAmongOddThings } from './hostile.mjs';
import { jest } from './jest.mjs';
import { requireNode } from './node.mjs';
import { build, install } from './prepare.mjs';
import { Impossible, isProgram, root, say } from './shell.mjs';
import { stopOnSignals } from './stop.mjs';
import { MATRIX_TOOLS, provideTools, TEST_TOOLS } from './tools.mjs';

/** Every tier but those that measure, and so run when nothing else does. */
const TOGETHER = ['unit', 'property', 'contract', 'integration', 'conformance', 'e2e'];
const MEASURING = ['chaos', 'memory', 'stall'];
const TIERS = [...TOGETHER, ...MEASURING, 'page'];
const alone = (tier) => ['--selectProjects', tier, '--runInBand'];
/** What `npm test` says of what takes too long for it. */
const NOT_HERE =
  'not in this run: chaos, memory, page and stall, the image, alerts and dashboard, and signs of life of ' +
  'benchmarks, which npm run test:matrix and .ci/run have';
/** What looks at weir from outside and takes long: the image, alerts and dashboard, and signs of life of benchmarks. */
const NOT_IN_NPM_TEST = ['integration/deploy/dockerfile', 'integration/alerts', 'integration/bench'];
/** What runs once more on Node.js 22: contracts, HTTP/2, the codec, and a server from start to end. */
const ON_NODE22 = [
  'test/contract/',
  'test/(unit|property)/(codec|h2)/',
  'integration/(decisions|h2-server|lifecycle)\\.test',
];
/** What is measured once more, in the container of deploy/. */
const MEASURED_AGAIN = ['memory/crowd'];
/** Tiers that need fewer tools than all, when they are run alone. */
const TOOLS_OF = {
  unit: [],
  property: ['redis-server', 'redis-server-old', 'nutcracker', 'envoy'],
  contract: ['redis-server', 'redis-server-old', 'valkey-server', 'nutcracker', 'envoy'],
  conformance: [
    ...['python-hpack', 'h2spec', 'connectconformance', 'grpc-go-client', 'python-grpc'],
    ...['grpcurl', 'ghz', 'h2load'],
  ],
  page: ['redis-server', 'chromium'],
  memory: ['redis-server'],
  stall: ['redis-server', 'envoy'],
  chaos: ['redis-server', 'valkey-server', 'stepping-clock'],
};
/**
 * Half of the tests wait for servers most of the time, so that one more than there are cores keeps all of them busy.
 */
const WORKERS = process.env.WEIR_TEST_WORKERS ?? String(availableParallelism() + 1);
/** A page mostly waits for the next step of a history, so that a core keeps more of its tests busy. */
const WAITING_WORKERS = process.env.WEIR_TEST_WORKERS ?? String(3 * availableParallelism());

/** Where the processes of a run find what others of it have compiled; a new build removes it. */
const COMPILE_CACHE = join(root, 'build/compile-cache');

export const nothingYet = () => ({ passed: 0, failed: 0, notes: [], tests: [] });

/** Adds what `more` has counted to `total`; of what two runs have skipped, one note is enough. */
export function add(total, more) {
  total.passed += more.passed;
  total.failed += more.failed;
  total.notes.push(...more.notes.filter((note) => !total.notes.includes(note)));
  total.tests.push(...more.tests);
}

/** Whether a word of a command line may name files: it is not an option, a number, or the value of -t. */
const mayBePath = (word, index, words) =>
  !/^-|^\d+%?$/.test(word) && !/^(-t|--testNamePattern)$/.test(words[index - 1]);

/** A word of a command line; where it names a file or a folder from `/` or `./`, as a path in the checkout. */
const inCheckout = (word, index, words) =>
  /^\.?\//.test(word) && mayBePath(word, index, words) ? relative(root, resolve(root, word)) : word;

/**
 * The tier that a path of a test, or of a folder of tests, lies in; undefined where it does not say. A word without a
 * slash is not a path: jest runs every file whose path contains it.
 */
const tierOf = (path) =>
  path.includes('/') ? TIERS.find((tier) => `/${path}/`.includes(`/${tier}/`)) : undefined;

/** Options whose values are words of their own here, also where the command line has a = before them. */
const INLINE = /^(--selectProjects|--testPathPatterns)=(.*)$/s;

/**
 * What a run with `args` takes: {tiers, tools, args}, the last for jest. Jest takes every word after --selectProjects
 * for a tier; here those that are not say which files run. A path alone says which tier it is, and a test is named by
 * its source. Throws {@link Impossible} where --selectProjects names what is not a tier.
 */
export function planOf(args) {
  const words = args.flatMap((arg) => INLINE.exec(arg)?.slice(1) ?? [arg]).map(inCheckout);
  const start = words.indexOf('--selectProjects') + 1;
  const isTier = (word) => TIERS.includes(word);
  if (start > 0 && !isTier(words[start])) {
    throw new Impossible(
      `--selectProjects: '${words[start] ?? ''}' is not a tier; tiers are ${TIERS.join(', ')}`,
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
 * Runs every tier, or jest once with `args`. Resolves with {passed, failed, notes, tests}; rejects with
 * {@link Impossible} where a needed tool cannot be had.
 */
export async function runTests(args = []) {
  const total = nothingYet();
  const plan = planOf(args);
  const { env, skipped } = await provideTools(plan.tools);
  if (args.length > 0) {
    const saysWorkers = plan.args.some((arg) => /^(--maxWorkers|--runInBand|-w|-i)\b/.test(arg));
    const words = saysWorkers ? plan.args : ['--maxWorkers', WORKERS, ...plan.args];
    add(total, await jest(process.execPath, words, env));
    const byName = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
    if (byName) total.notes = total.notes.filter((note) => !note.startsWith('skipped: '));
  } else {
    const together = ['--maxWorkers', WORKERS, '--selectProjects', ...TOGETHER];
    const words = [...together, '--testPathIgnorePatterns', ...NOT_IN_NPM_TEST];
    add(total, await jest(process.execPath, words, { ...env, WEIR_TEST_COMPILE_CACHE: COMPILE_CACHE }));
    total.notes.push(NOT_HERE);
  }
  total.notes.push(...skipped);
  return total;
}

/**
 * Runs the tiers and tests that {@link runTests} leaves out, and on Node.js 22 what may differ there. Resolves and
 * rejects as that.
 */
export async function runMatrix() {
  const total = nothingYet();
  const { env, skipped } = await provideTools(MATRIX_TOOLS);
  const run = async (what, args, more = {}, node = process.execPath) => {
    say(what);
    add(total, await jest(node, args, { ...env, ...more }));
  };
  for (const tier of MEASURING) await run(`by itself, since it measures: ${tier}`, alone(tier));
  const several = ['--maxWorkers', WORKERS, '--selectProjects'];
  const waiting = ['--maxWorkers', WAITING_WORKERS, '--selectProjects'];
  await run('in a browser: page', [...waiting, 'page']);
  await run(
    `in 512 MiB: ${MEASURED_AGAIN.join(', ')}`,
    [...alone('memory'), '--testPathPatterns', ...MEASURED_AGAIN],
    { WEIR_TEST_CONTAINER: '512' },
  );
  await run(`not in npm test: ${NOT_IN_NPM_TEST.join(', ')}`, [
    ...several,
    'integration',
    '--testPathPatterns',
    ...NOT_IN_NPM_TEST,
  ]);
  if (env.WEIR_TEST_NODE22 !== undefined) {
    const tiers = ['unit', 'property', 'contract', 'integration'];
    await run(
      `on Node.js 22: ${ON_NODE22.join(', ')}`,
      [...several, ...tiers, '--testPathPatterns', ...ON_NODE22],
      {},
      env.WEIR_TEST_NODE22,
    );
  }
  total.notes.push(...skipped);
  return total;
}

/** What {@link runAmongOddThings} runs: what prints, what asks a terminal, and what writes and follows files. */
const AMONG_ODD_THINGS = [
  'unit/(cli|config/files|docs|support)/',
  'integration/(cli|colours|config-reload|policy-start|ratelimit-commands|terminal)\\.test',
  'integration/mistakes/commands',
];

/** Runs some tests once more where variables, locale, umask and path are odd. Resolves and rejects as the others. */
export async function runAmongOddThings() {
  const total = nothingYet();
  const { env, skipped } = await provideTools(['redis-server']);
  say(`among odd variables, with a umask of 077 and a space in the path: ${AMONG_ODD_THINGS.join(', ')}`);
  const args = ['--maxWorkers', WORKERS, '--selectProjects', 'unit', 'integration'];
  const patterns = ['--testPathPatterns', ...AMONG_ODD_THINGS];
  add(total, await jestAmongOddThings(process.execPath, [...args, ...patterns], env));
  total.notes.push(...skipped);
  return total;
}

/** Prints the closing lines; the very last is the one that programs read. */
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
