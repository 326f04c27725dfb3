// Runs all checks for .ci/run: each check counts as one test, then `npm test`, some tests in an unusual environment,
// and `npm run test:matrix`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { change } from './features.mjs';
import { checkLeases } from './lease-model.mjs';
import { requireNode } from './node.mjs';
import { build, install } from './prepare.mjs';
import { Impossible, must, root, say } from './shell.mjs';
import { stopOnSignals } from './stop.mjs';
import { add, conclude, nothingYet, runAmongOddThings, runMatrix, runTests } from './test.mjs';

const npm = (...args) => must(`npm ${args.join(' ')}`, 'npm', args);

/** "resolved" addresses would bind every clone to the registry that was used to write the lock file. */
function checkLockFile() {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (/"resolved":|https?:\/\/[^"]*\.tgz/.test(lock))
    throw new Impossible('package-lock.json contains registry URLs; remove its "resolved" fields');
}

const weir = (...args) => must(`weir ${args[0]}`, process.execPath, ['build/src/main.js', ...args]);
const tsc = (...args) => must('tsc', process.execPath, ['node_modules/typescript/bin/tsc', ...args]);

const CHECKS = [
  ['lint', () => npm('run', '--silent', 'lint')],
  // The build has checked the types of all other files.
  ['the types of the page', () => tsc('--noEmit', '-p', 'src/page')],
  ['the lock file contains no registry URLs', checkLockFile],
  ['the bundled policies are valid', () => weir('check-config', 'deploy/policies')],
  ['generated files are current', () => npm('run', '--silent', 'docs', '--', '--check')],
  ['the lines of each feature can be counted', () => say(change())],
  ['leases keep their guarantees in every state of a model', checkLeases],
];

async function check(total, name, body) {
  const started = Date.now();
  try {
    await body();
    total.passed += 1;
    say(`ok: ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    total.failed += 1;
    const reason = error instanceof Impossible ? error.message : error.stack;
    say(`FAILED: ${name}: ${reason}`);
    total.notes.push(`failed: ${name}: ${reason.split('\n')[0]}`);
    return false;
  }
}

stopOnSignals();
const total = nothingYet();
try {
  requireNode();
  if (
    (await check(total, 'npm packages can be installed', install)) &&
    (await check(total, 'the source code compiles', build))
  ) {
    await Promise.all(CHECKS.map(([name, body]) => check(total, name, body)));
    add(total, await runTests());
    add(total, await runAmongOddThings());
    add(total, await runMatrix());
  }
} catch (error) {
  total.failed += 1;
  total.notes.push(error instanceof Impossible ? error.message : error.stack);
}
conclude(total);
