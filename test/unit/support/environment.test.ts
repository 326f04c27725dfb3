/* Checks that the terminal, locale and shell do not affect the tests or the processes that they start. */
import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';

/** Some variables that change the output or behavior of programs. integration/test-environment.test.ts sets them. */
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

/** Returns the environment, umask and output of a process that inherits its environment from this process. */
function childEnvironment(): { env: NodeJS.ProcessEnv; umask: number; stdout: string } {
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

test('processes that tests start have the same environment', () => {
  const { env, umask, stdout } = childEnvironment();
  expect(Object.keys(env).filter((name) => UNWANTED.includes(name))).toEqual([]);
  expect(env).toMatchObject(FIXED);
  expect(umask).toBe(0o022);
  expect(stdout).toBe('[ 1 ]\n');
});

test('connections to this machine do not use a proxy', () => {
  expect(process.env['no_proxy']).toMatch(/^127\.0\.0\.1,localhost,::1,/);
});
