/*
 * Tests the npm package as a new user gets it: packed from the current build, installed with its production packages
 * into an empty folder, and used from other folders.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { cpuMicros } from '../../bench/cpu.js';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath, repositoryRoot } from '../../support/process/tools.js';
import { startWeir } from '../../support/weir/weir.js';

const MAX_BYTES = 10 * 1024 * 1024;
/** CPU time, because the duration of a start depends on other tests. */
const MAX_START_MICROS = 1_000_000;
const CALL = 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';
const grpcurl = optionalToolPath('grpcurl');

/** The files that the package can contain; no tests, sources or source maps. */
const ALLOWED = [
  /^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
  /^build\/package\.json$/,
  /^build\/src\/(?!page\/).+\.(js|lua)$/,
  /^build\/src\/page\/page\.(js|css|html)$/,
  /^build\/proto\/(files\.json|.+\.proto)$/,
  /^build\/deploy\/(?:init|policies)\/.+\.yaml$/,
  /^deploy\/(README\.md|(?:policy|decision-log)\.schema\.json|(?!helm\/).+\.yaml)$/,
  /^deploy\/grafana\/(.+\.json|README\.md)$/,
  /^deploy\/cluster\/(redis\.conf|form\.sh|start\.sh)$/,
  /^deploy\/sentinel\/(redis\.conf|sentinel\.conf|start\.sh)$/,
];

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

const home = new TempDir();
const other = new TempDir();

/** Returns the paths of files below a folder of the repository whose names end with `ending`. */
function filesIn(folder: string, ending: string): string[] {
  return readdirSync(join(repositoryRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(repositoryRoot, join(entry.parentPath, entry.name)));
}

async function npm(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runToEnd('npm', args, {
    cwd: args[0] === 'pack' ? repositoryRoot : home.path,
  });
  if (code !== 0) throw new Error(`npm ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

/** Runs the installed `weir` in an unrelated folder. */
function weir(...args: string[]) {
  const bin = join(home.path, 'node_modules/.bin/weir');
  return runToEnd(bin, args, { cwd: other.path, bareEnvironment: true });
}

describe('the npm package', () => {
  let packed: Packed;
  beforeAll(async () => {
    // Without its prepack script, which would build again.
    const list = await npm('pack', '--json', '--ignore-scripts', '--pack-destination', home.path);
    [packed] = JSON.parse(list) as [Packed];
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
    // Without a prefix, npm installs into the nearest parent folder that has a package.json or node_modules.
    await npm('install', '--prefix', home.path, '--omit=dev', ...quiet, join(home.path, packed.filename));
  }, 240_000);

  test('contains the files that commands read, nothing that builds or tests, and at most 10 MB', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths.filter((path) => !ALLOWED.some((pattern) => pattern.test(path)))).toEqual([]);
    const needed = [
      'LICENSE',
      'build/package.json',
      'build/proto/files.json',
      'build/src/main.js',
      ...['css', 'html', 'js'].map((part) => `build/src/page/page.${part}`),
      'deploy/envoy/envoy.yaml',
      'deploy/grafana/weir.json',
      'deploy/prometheus/rules.yaml',
      'deploy/decision-log.schema.json',
      'deploy/policy.schema.json',
      'deploy/cluster/form.sh',
      'deploy/cluster/start.sh',
      'deploy/sentinel/start.sh',
      ...[...filesIn('src', '.lua'), ...filesIn('proto', '.proto')].map((path) => `build/${path}`),
      ...['deploy/policies', 'deploy/init'].flatMap((folder) =>
        filesIn(folder, '.yaml').map((path) => `build/${path}`),
      ),
    ];
    expect(needed.filter((path) => !paths.includes(path))).toEqual([]);
    expect(packed.size).toBeLessThan(MAX_BYTES);
    expect(packed.unpackedSize).toBeLessThan(MAX_BYTES);
  });

  test('installs without development packages', () => {
    const { devDependencies, version } = JSON.parse(
      readFileSync(join(repositoryRoot, 'package.json'), 'utf8'),
    ) as { devDependencies: Record<string, string>; version: string };
    expect(packed.filename).toBe(`weir-${version}.tgz`);
    const installed = JSON.parse(
      readFileSync(join(home.path, 'node_modules/.package-lock.json'), 'utf8'),
    ) as { packages: Record<string, { version: string }> };
    expect(installed.packages['node_modules/weir']?.version).toBe(version);
    const unwanted = Object.keys(devDependencies)
      .filter((name) => name !== '@types/node') // protobufjs depends on it
      .filter((name) => installed.packages[`node_modules/${name}`] !== undefined);
    expect(unwanted).toEqual([]);
  });

  test('prints its version and its help in any folder', async () => {
    await expect(npm('exec', '--offline', '--', 'weir', '--version')).resolves.toMatch(
      /^weir \d+\.\d+\.\d+(?:-rc\.\d+)?\n$/,
    );
    const help = await weir('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const command of ['serve', 'check-config', 'explain']) expect(help.stdout).toContain(command);
  });

  test('checks and explains a policy in the working directory', async () => {
    other.write(
      'shop.yaml',
      'domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 5 }\n',
    );
    await expect(weir('check-config', 'shop.yaml')).resolves.toMatchObject({ code: 0 });
    const bundled = join(home.path, 'node_modules/weir/deploy/policies');
    await expect(weir('check-config', bundled)).resolves.toMatchObject({ code: 0 });
    const explained = await weir('explain', 'shop.yaml', '--domain', 'shop', 'user=anna');
    expect(explained).toMatchObject({ code: 0, stderr: '' });
    expect(explained.stdout).toContain('user');
  });

  (grpcurl === undefined ? test.skip : test)(
    'serves the bundled policy within a second, and answers grpcurl',
    async () => {
      const server = await startWeir({ main: join(home.path, 'node_modules/.bin/weir') });
      expect(cpuMicros(server.process.pid)).toBeLessThan(MAX_START_MICROS);
      const entries = [
        { key: 'tenant', value: 'acme' },
        { key: 'resource_group', value: 'user-chats' },
      ];
      const request = JSON.stringify({ domain: 'open-api', descriptors: [{ entries }] });
      const address = `127.0.0.1:${server.grpcPort}`;
      const answer = await runToEnd(grpcurl as string, ['-plaintext', '-d', request, address, CALL]);
      expect(answer).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(answer.stdout)).toMatchObject({
        overallCode: 'OK',
        statuses: [{ code: 'OK', currentLimit: { requestsPerUnit: 100 }, limitRemaining: 99 }],
      });
      await expect(server.stop()).resolves.toEqual({ code: 0, signal: null });
    },
  );
});
