/*
 * Checks that a test runs every command in the manual's `sh` blocks, or that this file lists the reason why not. The
 * tests of page examples and the walkthroughs run commands in `console` blocks.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { manualPages, pageText } from '../../support/docs/pages.js';
import { repositoryRoot } from '../../support/process/tools.js';

/** Patterns for the beginning of a command, each with the test that runs the command. */
const TESTED: readonly (readonly [pattern: RegExp, test: string])[] = [
  [/^(?:npm start\b|alias weir="\$\(node )/, 'test/e2e/walkthroughs.test.ts'],
  [/^npm run demo\b/, 'test/e2e/demo.test.ts'],
  [
    /^(?:DECISION_METADATA=true npm start|until curl|sed -e|envoy -c|node build\/deploy\/demo\/|curl -i|curl -s -Z)/,
    'test/e2e/one-machine.test.ts',
  ],
  [/^\{ printf .* kubectl apply/, 'test/integration/deploy/kubernetes.test.ts'],
  [/^(?:helm (?:install|template)|weir \S+ manifest\.yaml\b)/, 'test/integration/deploy/helm/chart.test.ts'],
  [/^(?:[A-Z_]+=\S+ )*npm test --|^npm run build && npx jest/, 'test/integration/test-command.test.ts'],
  [/^npm run bench\b/, 'test/integration/bench.test.ts'],
  [/^npm run release\b/, 'test/integration/release.test.ts'],
  [/^npm run fuzz\b/, 'test/conformance/fuzz.test.ts'],
  [/^npm run chaos\b/, 'test/chaos/chaos.test.ts'],
  [/^npm run soak\b/, 'test/chaos/soak.test.ts'],
  [/^grpcurl -plaintext -d .* 127\.0\.0\.1:8081 /, 'test/e2e/grpcurl.test.ts'],
  [/^weir replay /, 'test/e2e/replay.test.ts'],
  [/^weir (?:migrate|check-config|ratelimit-config-check) /, 'test/integration/deploy/migrate-page.test.ts'],
  [
    /^(?:npm pack|mkdir weir|npm install --omit=dev|npx weir serve)/,
    'test/integration/deploy/package.test.ts',
  ],
];

/** Pages whose commands one test extracts and runs. */
const TESTED_PAGES: ReadonlyMap<string, string> = new Map([
  ['docs/operate/verify.md', 'test/integration/release-rehearsal.test.ts'],
]);

/** Patterns for the beginning of a command that no test runs, each with the reason. */
const UNTESTED: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^npm (?:test$|run test)/, 'it runs the tests'],
  [/^npm run bench:compare/, 'it needs two revisions and takes minutes; .ci/run has only one revision'],
  [
    /^docker |^alias weir='docker|^curl http:\/\/127\.0\.0\.1:8080\/healthcheck/,
    'it needs a container engine; a test runs the steps of the Dockerfile without one',
  ],
  [/^(?:kubectl|helm) /, 'it needs a cluster; kubernetes-validate checks the manifests'],
  [/^curl http:\/\/127\.0\.0\.1:6070\/rlconfig/, 'it needs kubectl port-forward'],
  [/^(?:npm install @grpc|go mod init |go get |pip install )/, 'it downloads packages'],
  [
    /^redis-cli /,
    'redis-cli may be missing; test/integration/tuning-page.test.ts sends the same commands without redis-cli',
  ],
  [/^printf 'REDIS_AUTH=/, 'it writes passwords; test/integration/deploy/variables.test.ts checks the names'],
  [/^git (?:tag|reset) /, 'it undoes a release'],
  [/^git switch --create release-/, 'integration/release creates such a branch'],
];

/** Returns the commands in a page's `sh` blocks, without comments and with continued lines joined. */
function commandsIn(page: string): string[] {
  return [...pageText(page).matchAll(/^( *)```sh\n(.*?)^\1```/gms)]
    .flatMap(([, , block = '']) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
    .filter((line) => line !== '');
}

const commands = manualPages()
  .filter((page) => !TESTED_PAGES.has(page))
  .flatMap((page) => commandsIn(page).map((command) => ({ page, command })));

test('the manual contains commands', () => expect(commands.length).toBeGreaterThan(30));

test('a test runs every command, or the list of untested commands contains it', () => {
  const listed = [...TESTED, ...UNTESTED];
  const unlisted = commands.filter(({ command }) => !listed.some(([pattern]) => pattern.test(command)));
  expect(unlisted).toEqual([]);
});

describe('the list', () => {
  test.each([...TESTED, ...TESTED_PAGES])('%s refers to an existing test, %s', (_, path) => {
    expect(existsSync(join(repositoryRoot, path))).toBe(true);
  });

  test('has only patterns that match a command', () => {
    const unused = [...TESTED, ...UNTESTED].filter(
      ([pattern]) => !commands.some(({ command }) => pattern.test(command)),
    );
    expect(unused).toEqual([]);
  });

  test('uses only scripts in package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
    const named = commands.flatMap(({ command }) => /\bnpm run ([\w:]+)/.exec(command)?.[1] ?? []);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
