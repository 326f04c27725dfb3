/* Tests an older Node.js: `npm start` and `npm test` download Node.js 24, and weir itself runs with a warning. */
import { chmodSync, cpSync, existsSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../support/process/tools.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir, WEIR_MAIN } from '../support/weir/weir.js';

/** The target of the download is a folder of links. */
const link = optionalToolPath('node20');
const node20 = link === undefined ? undefined : realpathSync(link);
const onNode20 = node20 === undefined ? describe.skip : describe;
const older = node20 ?? '';
const WARNING =
  /^Node\.js 20\.\S+ is older than 22\.15, the oldest version that weir supports; install Node\.js 24$/;

onNode20('weir on Node.js 20', () => {
  test.each(['h2', 'grpc-js'])('warns and decides, with GRPC_TRANSPORT=%s and Redis', async (transport) => {
    const redis = await startRedis();
    const env = {
      GRPC_TRANSPORT: transport,
      REDIS_URL: `127.0.0.1:${redis.port}`,
      TRACING_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    };
    const server = await startWeir({ node: older, env });
    const client = new RlsClient(server.grpcPort);
    const { response } = await client.ask('open-api', [descriptor(['tenant=a', 'resource_group=chats'])]);
    client.close();
    expect(response?.overallCode).toBe(CODE.OK);
    const [warning] = server.log().filter(({ msg }) => WARNING.test(String(msg)));
    expect(warning).toMatchObject({ level: 'warning' });
    await expect(server.stop()).resolves.toEqual({ code: 0, signal: null });
  });

  test('reports that reuse-port is not supported', async () => {
    const { code, stderr } = await runToEnd(older, [WEIR_MAIN, 'serve'], {
      bareEnvironment: true,
      env: { REDIS_URL: '127.0.0.1:1', WORKERS: '2', WORKER_SCHEDULING: 'reuse-port' },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^weir: WORKER_SCHEDULING: reuse-port needs Node\.js 22\.12 or later, but this is Node\.js 20\.\S+; up.*\n$/,
    );
  });
});

describe('the Node.js that commands run on', () => {
  let clone: TempDir;
  const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
  const clones: TempDir[] = [];

  beforeEach(() => {
    clone = new TempDir();
    clones.push(clone);
    cpSync(join(repositoryRoot, '.ci'), clone.join('.ci'), { recursive: true });
    cpSync(join(repositoryRoot, 'package.json'), clone.join('package.json'));
  });

  /** Puts a program `npm` on PATH that installs another Node.js than the package. */
  const npmThatMakes = (script: string) => {
    const lines = [
      '#!/bin/sh',
      `name=$(sed -n 's/.*"dependencies":{"\\([^"]*\\)".*/\\1/p' package.json)`,
      'mkdir -p "node_modules/$name/bin"',
      `printf '#!/bin/sh\\n${script}\\n' > "node_modules/$name/bin/node"`,
      'chmod +x "node_modules/$name/bin/node"',
    ];
    chmodSync(clone.write('bin/npm', `${lines.join('\n')}\n`), 0o755);
  };
  const npmThatFails = () =>
    chmodSync(clone.write('bin/npm', '#!/bin/sh\necho no such package\nexit 1\n'), 0o755);
  const runOn = (node: string, line: string) =>
    runToEnd('sh', ['-c', line], {
      cwd: clone.path,
      env: {
        PATH: [clone.join('bin'), dirname(node), process.env['PATH']].join(delimiter),
        WEIR_TEST_NODE24: '',
      },
    });
  const ask = (node: string) => runOn(node, `'${node}' .ci/node.mjs`);

  test('is the installed one, if it is supported', async () => {
    npmThatFails();
    expect(await ask(process.execPath)).toMatchObject({
      code: 0,
      stdout: `${process.execPath}\n`,
      stderr: '',
    });
  });

  onNode20('on Node.js 20', () => {
    test('is Node.js 24, downloaded once, by version and checksum', async () => {
      npmThatMakes(`exec "${process.execPath}" "$@"`);
      const first = await ask(older);
      const path = first.stdout.trim();
      expect(path).toMatch(/\/\.tools\/node24\/node_modules\/node-\w+-\w+\/bin\/node$/);
      expect(first.stderr).toMatch(
        /^weir: Node\.js 20\.\S+ is older than 22\.15; continuing with Node\.js 24 /,
      );
      const { packages } = JSON.parse(readFileSync(clone.join('.tools/node24/package-lock.json'), 'utf8'));
      expect(Object.values(packages)).toContainEqual({
        version: expect.stringMatching(/^24\.\d+\.\d+$/),
        integrity: expect.stringMatching(/^sha512-[\w+/]{86}==$/),
      });
      npmThatFails();
      const second = await ask(older);
      expect({ ...second, lines: second.stderr.split('\n').length }).toMatchObject({
        code: 0,
        stdout: `${path}\n`,
        lines: 2,
      });
    });

    test.each([
      ['cannot be fetched', npmThatFails, 'no such package'],
      ['does not run', () => npmThatMakes('exit 1'), 'does not run'],
    ])('is the installed one, with a warning, if Node.js 24 %s', async (_, prepare, reason) => {
      prepare();
      const { code, stdout, stderr } = await ask(older);
      expect({ code, stdout }).toEqual({ code: 0, stdout: `${older}\n` });
      expect(stderr).toContain(reason);
      expect(stderr).toMatch(
        /^weir: continuing with Node\.js 20\.\S+, although weir is not tested with it$/m,
      );
      expect(existsSync(clone.join('.tools/node24/.fetched'))).toBe(false);
    });

    test('npm start continues without Node.js 24, and npm test ends with an error message', async () => {
      npmThatFails();
      clone.write('.ci/prepare.mjs', 'console.log("prepared on", process.version);');
      clone.write('build/src/main.js', 'console.log("served on", process.version);');
      const start = await runOn(older, scripts.start);
      expect(start.code).toBe(0);
      expect(start.stdout).toMatch(/^prepared on v20\.\S+\nserved on v20\.\S+\n$/);

      cpSync(join(repositoryRoot, '.ci'), clone.join('.ci'), { recursive: true });
      const tests = await runOn(older, scripts.test);
      expect(tests.code).toBe(1);
      expect(tests.stdout).toMatch(
        /^tests need Node\.js 22\.15 or later, but this is Node\.js 20\.[^\n]*\n0 passed, 1 failed\n$/,
      );
    });

    test('npm start runs on Node.js 24 if it can be downloaded', async () => {
      npmThatMakes(`exec "${process.execPath}" "$@"`);
      clone.write('.ci/prepare.mjs', 'console.log("prepared on", process.version);');
      clone.write('build/src/main.js', 'console.log("served on", process.version);');
      const { stdout } = await runOn(older, scripts.start);
      expect(stdout).toBe(`prepared on ${process.version}\nserved on ${process.version}\n`);
    });
  });
});
