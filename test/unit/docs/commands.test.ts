/*
 * Every command that the manual shows is run by a test, or stands here with the reason why not. Commands in blocks of
 * language `console` are run by the examples and the walkthroughs themselves.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { manualPages, pageText } from '../../support/docs/pages.js';
import { repositoryRoot } from '../../support/process/tools.js';

/** Commands, by what they begin with, and the test that runs them. */
const RUN_BY: readonly (readonly [begins: RegExp, test: string])[] = [
  [/^npm start\b/, 'test/e2e/walkthroughs.test.ts'],
  [/^npm run demo\b/, 'test/e2e/demo.test.ts'],
  [
    /^(?:DECISION_METADATA=true npm start|until curl|sed -e|envoy -c|node build\/deploy\/demo\/|curl -i|curl -s -Z)/,
    'test/e2e/one-machine.test.ts',
  ],
  [/^\{ printf .* kubectl apply/, 'test/integration/deploy/kubernetes.test.ts'],
  [/^helm install /, 'test/integration/deploy/helm/chart.test.ts'],
  [/^(?:[A-Z_]+=\S+ )*npm test --|^npm run build && npx jest/, 'test/integration/test-command.test.ts'],
  [/^npm run bench\b/, 'test/integration/bench.test.ts'],
  [/^npm run release\b/, 'test/integration/release.test.ts'],
  [/^npm run fuzz\b/, 'test/conformance/fuzz.test.ts'],
  [/^npm run stall\b/, 'test/stall/stall.test.ts'],
  [/^npm run chaos\b/, 'test/chaos/chaos.test.ts'],
  [/^npm run soak\b/, 'test/chaos/soak.test.ts'],
  [/^grpcurl -plaintext -d .* 127\.0\.0\.1:8081 /, 'test/e2e/grpcurl.test.ts'],
  [/^weir (?:migrate|check-config|ratelimit-config-check) /, 'test/integration/deploy/migrate-page.test.ts'],
  [
    /^(?:npm pack|mkdir weir|npm install --omit=dev|npx weir serve)/,
    'test/integration/deploy/package.test.ts',
  ],
];

/** Commands that no test runs, and why. */
const NOT_RUN: readonly (readonly [begins: RegExp, reason: string])[] = [
  [/^npm (?:test$|run test)/, 'it is what runs the tests'],
  [/^npm run mutate\b/, 'it takes up to an hour; test/unit/mutation/ holds how it draws and changes'],
  [
    /^npm run messages\b/,
    'it may change the source; test/integration/messages.test.ts runs it on small files',
  ],
  [/^npm run bench:compare/, 'it needs two revisions and minutes; .ci/run has no other revision'],
  [
    /^docker |^alias weir='docker|^curl http:\/\/127\.0\.0\.1:8080\/healthcheck/,
    'it needs a container engine; the steps of the Dockerfile are run without one',
  ],
  [/^(?:kubectl|helm) /, 'it needs a cluster; the manifests are checked by kubernetes-validate'],
  [/^curl http:\/\/127\.0\.0\.1:6070\/rlconfig/, 'it asks through kubectl port-forward'],
  [/^(?:npm install @grpc|go mod init |go get |pip install )/, 'it fetches packages'],
  [/^redis-cli /, 'it belongs to Redis; test/integration/tuning-page.test.ts asks the same without it'],
  [/^printf 'REDIS_AUTH=/, 'it writes passwords; test/integration/deploy/variables.test.ts reads its names'],
  [/^git (?:tag|reset) /, 'it undoes a release by hand'],
];

/** Commands of the blocks of language `sh` of a page: comments cut off, continued lines joined. */
function commandsIn(page: string): string[] {
  return [...pageText(page).matchAll(/^( *)```sh\n(.*?)^\1```/gms)]
    .flatMap(([, , block = '']) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
    .filter((line) => line !== '');
}

const commands = manualPages().flatMap((page) => commandsIn(page).map((command) => ({ page, command })));

test('the manual shows commands', () => expect(commands.length).toBeGreaterThan(30));

test('every command is run by a test, or stands on the list with the reason why not', () => {
  const known = [...RUN_BY, ...NOT_RUN];
  const unknown = commands.filter(({ command }) => !known.some(([begins]) => begins.test(command)));
  expect(unknown).toEqual([]);
});

describe('the list', () => {
  test.each(RUN_BY)('%s is run by %s, which is there', (_, path) => {
    expect(existsSync(join(repositoryRoot, path))).toBe(true);
  });

  test('has nothing that no page shows', () => {
    const unused = [...RUN_BY, ...NOT_RUN].filter(
      ([begins]) => !commands.some(({ command }) => begins.test(command)),
    );
    expect(unused).toEqual([]);
  });

  test('names scripts that package.json has', () => {
    const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
    const named = commands.flatMap(({ command }) => /\bnpm run ([\w:]+)/.exec(command)?.[1] ?? []);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
