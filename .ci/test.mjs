// `npm test`: installs, builds, fetches the tools, runs every tier, the one that measures by itself, then what sees weir from outside
// again on the grpc-js transport, then those that need no Envoy again on Node.js 24. Ends with what was skipped and why, and
// `N passed, N failed` as the last line. With arguments it runs jest once with those.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { endLeftovers, MARK } from './leftovers.mjs';
import { build, install } from './prepare.mjs';
import { Impossible, root, say } from './shell.mjs';
import { provideTools, TEST_TOOLS } from './tools.mjs';

/** Every tier but `stall`, which measures, and so runs when nothing else does. */
const TOGETHER = ['unit', 'property', 'contract', 'integration', 'conformance', 'e2e'];
const ALONE = ['--selectProjects', 'stall', '--runInBand'];
const ON_NODE24 = ['unit', 'property', 'contract', 'integration'];
/** What sees weir from outside only, run once more on the other transport: decisions, bad input, health, reflection, lifecycle, Envoy. */
const ON_GRPC_JS = [
  'integration/(bad-input|decisions|health|lifecycle|redis-away|reflection|server-without-redis)\\.test',
  'e2e/(api-keys|failure-mode|grpcurl|open-api|phases)\\.test',
];
/** Tiers that need fewer tools than all, when they are run alone. */
const TOOLS_OF = {
  unit: [],
  property: ['redis-server', 'redis-server-old'],
  contract: ['redis-server', 'redis-server-old'],
  conformance: [
    ...['python-hpack', 'h2spec', 'connectconformance', 'grpc-go-client', 'python-grpc'],
    ...['grpcurl', 'ghz', 'h2load'],
  ],
  stall: ['redis-server', 'envoy'],
};
const EXIT_GRACE_MS = 10_000;

/** Adds the counts of `more` to `total`. */
export function add(total, more) {
  total.passed += more.passed;
  total.failed += more.failed;
  total.notes.push(...more.notes);
}

/** One run of jest by the Node.js at `node`: {passed, failed, notes}. */
async function jest(node, args, env) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-test-'));
  const file = join(folder, 'counts.json');
  const mark = `${process.pid}-${Date.now()}`;
  const reporters = ['--reporters=default', `--reporters=${join(root, '.ci/jest-counts.cjs')}`];
  const child = spawn(node, ['node_modules/jest/bin/jest.js', ...reporters, ...args], {
    cwd: root,
    env: { ...process.env, ...env, WEIR_TEST_COUNTS: file, [MARK]: mark },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const stop = (signal) => child.kill(signal);
  process.on('SIGINT', stop).on('SIGTERM', stop);
  const result = { passed: 0, failed: 0, notes: [] };
  const fail = (note) => {
    result.failed += 1;
    result.notes.push(note);
  };
  let doneAt;
  const watch = setInterval(() => {
    if (!existsSync(file)) return;
    doneAt ??= Date.now();
    if (Date.now() - doneAt < EXIT_GRACE_MS || child.killed) return;
    fail(
      'jest did not end by itself: a test leaves a timer, socket or process open (--detectOpenHandles finds it)',
    );
    child.kill('SIGKILL');
  }, 500);
  const code = await new Promise((resolve) => child.once('close', (status) => resolve(status ?? 1)));
  clearInterval(watch);
  process.off('SIGINT', stop).off('SIGTERM', stop);
  for (const line of await endLeftovers(mark)) fail(line);
  if (existsSync(file)) {
    const counts = JSON.parse(readFileSync(file, 'utf8'));
    result.passed += counts.passed;
    result.failed += counts.failed;
    result.notes.push(...counts.left.map((name) => `skipped: ${name}`));
  }
  rmSync(folder, { recursive: true, force: true });
  if (result.passed + result.failed === 0) fail('no test ran');
  else if (code !== 0 && result.failed === 0) fail(`jest ended with ${code}`);
  return result;
}

/** Tiers that jest arguments select; all of them where they do not say. */
function selectedTiers(args) {
  const start = args.findIndex((arg) => arg.startsWith('--selectProjects'));
  if (start === -1) return [];
  const inline = args[start].split('=')[1];
  if (inline !== undefined) return [inline];
  const rest = args.slice(start + 1);
  const end = rest.findIndex((arg) => arg.startsWith('-'));
  return end === -1 ? rest : rest.slice(0, end);
}

/** Runs the tests. Rejects with {@link Impossible} where a needed tool cannot be had. */
export async function runTests(args = []) {
  const total = { passed: 0, failed: 0, notes: [] };
  const tiers = selectedTiers(args);
  const tools = tiers.length === 0 ? TEST_TOOLS : tiers.flatMap((tier) => TOOLS_OF[tier] ?? TEST_TOOLS);
  const { env, skipped } = await provideTools([...new Set(tools)]);
  if (args.length > 0) {
    // A test is named by its source; what runs is what it was compiled to.
    const named = args.map((arg) => arg.replace(/(\.test)\.ts$/, '$1.js'));
    if (tiers.includes('stall')) named.push('--runInBand');
    add(total, await jest(process.execPath, named, env));
    const byName = args.some((arg) => /^(-t|--testNamePattern)/.test(arg));
    if (byName) total.notes = total.notes.filter((note) => !note.startsWith('skipped: '));
    total.notes.push(...skipped.filter((line) => !line.includes('second run')));
    return total;
  }
  add(total, await jest(process.execPath, ['--selectProjects', ...TOGETHER], env));
  say('by itself, since it measures: stall');
  add(total, await jest(process.execPath, ALONE, env));
  const addAgain = (again) =>
    add(total, { ...again, notes: again.notes.filter((note) => !total.notes.includes(note)) });
  say(`again with GRPC_TRANSPORT=grpc-js: ${ON_GRPC_JS.join(', ')}`);
  const blackBox = ['--selectProjects', 'integration', 'e2e', '--testPathPatterns', ...ON_GRPC_JS];
  addAgain(await jest(process.execPath, blackBox, { ...env, WEIR_TEST_TRANSPORT: 'grpc-js' }));
  if (env.WEIR_TEST_NODE24 !== undefined && !process.version.startsWith('v24.')) {
    say(`again on Node.js 24: ${ON_NODE24.join(', ')}`);
    addAgain(await jest(env.WEIR_TEST_NODE24, ['--selectProjects', ...ON_NODE24], env));
  }
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

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  let total = { passed: 0, failed: 0, notes: [] };
  try {
    await install();
    await build();
    total = await runTests(process.argv.slice(2));
  } catch (error) {
    total.failed += 1;
    total.notes.push(error instanceof Impossible ? error.message : error.stack);
  }
  conclude(total);
}
