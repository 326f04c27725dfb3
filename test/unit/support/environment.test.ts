/* Tests see nothing of the terminal, the locale and the shell that they are started from; nor does what they start. */
import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';

/** Some of what changes what programs print or do; integration/test-environment.test.ts sets each of them. */
const UNWANTED = [
  ...[
    'FORCE_COLOR',
    'NO_COLOR',
    'COLUMNS',
    'LINES',
    'TERM',
    'LC_ALL',
    'LANGUAGE',
    'NODE_DEBUG',
    'GRPC_TRACE',
  ],
  ...['LOG_LEVEL', 'REDIS_URL', 'PORT', 'GRPC_PORT', 'CONFIG_PATH', 'RUNTIME_ROOT', 'npm_lifecycle_event'],
];
const FIXED = { TZ: 'UTC', NODE_ENV: 'test', LANG: 'C.UTF-8', HOME: expect.stringMatching(/^\//) };

/** What a process that is started without an environment of its own finds. */
function ofChild(): { env: NodeJS.ProcessEnv; umask: number; stdout: string } {
  const script =
    'console.log(JSON.stringify({ env: process.env, umask: process.umask() })); console.log([1])';
  const [json = '', ...rest] = execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }).split(
    '\n',
  );
  return { ...JSON.parse(json), stdout: rest.join('\n') };
}

test('the environment of tests is the same everywhere', () => {
  expect(Object.keys(process.env).filter((name) => UNWANTED.includes(name))).toEqual([]);
  expect(process.env).toMatchObject(FIXED);
  expect(process.umask()).toBe(0o022);
  expect(new Date(0).getTimezoneOffset()).toBe(0);
});

test('so is that of the processes that they start', () => {
  const { env, umask, stdout } = ofChild();
  expect(Object.keys(env).filter((name) => UNWANTED.includes(name))).toEqual([]);
  expect(env).toMatchObject(FIXED);
  expect(umask).toBe(0o022);
  expect(stdout).toBe('[ 1 ]\n');
});

test('a proxy is not asked for what is on this machine', () => {
  expect(process.env['no_proxy']).toMatch(/^127\.0\.0\.1,localhost,::1,/);
});
