// Runs all checks for .ci/run: each check counts as one test, then `npm test`, some tests in an unusual environment,
// and `npm run test:matrix`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { requireNode } from './node.mjs';
import { build, install } from './prepare.mjs';
import { Impossible, must, root, say } from './shell.mjs';
import { stopOnSignals } from './stop.mjs';
import { add, conclude, nothingYet, runAmongOddThings, runMatrix, runTests } from './test.mjs';

const npm = (...args) => must(`npm ${args.join(' ')}`, 'npm', args);

const manifest = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** "resolved" addresses would bind every clone to the registry that was used to write the lock file. */
function checkLockFile() {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (/"resolved":|https?:\/\/[^"]*\.tgz/.test(lock))
    throw new Impossible('package-lock.json contains registry URLs; remove its "resolved" fields');
}

const CHECKS = [
  ['lint', () => npm('run', '--silent', 'lint')],
  ['types', () => npm('run', '--silent', 'typecheck')],
  ['the lock file contains no registry URLs', checkLockFile],
  [
    'the bundled policies are valid',
    () =>
      must('weir check-config', process.execPath, ['build/src/main.js', 'check-config', 'deploy/policies']),
  ],
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
    for (const [name, body] of CHECKS) await check(total, name, body);
    if (manifest().scripts.docs !== undefined) {
      await check(total, 'generated files are current', () =>
        npm('run', '--silent', 'docs', '--', '--check'),
      );
    }
    add(total, await runTests());
    add(total, await runAmongOddThings());
    add(total, await runMatrix());
  }
} catch (error) {
  total.failed += 1;
  total.notes.push(error instanceof Impossible ? error.message : error.stack);
}
conclude(total);
