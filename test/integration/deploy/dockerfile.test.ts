/*
 * Runs the steps of the Dockerfile without a container engine, in temporary folders: one for each stage, in order, and
 * with nothing else of the repository. Only the base image itself is not tested.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  buildStages,
  pathOf,
  STEP_TIMEOUT_MS,
  inside as stageFolder,
} from '../../support/image/build-stages.js';
import {
  commandOf,
  environmentOf,
  labelsOf,
  parseDockerfile,
  type Stage,
} from '../../support/image/dockerfile.js';
import { imagePrograms, relocatePrograms } from '../../support/image/image-programs.js';
import { freePorts } from '../../support/process/free-port.js';
import { httpRequest } from '../../support/process/http-client.js';
import { runToEnd, startProcess } from '../../support/process/processes.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';

const dockerfile = readFileSync(join(repositoryRoot, 'deploy/Dockerfile'), 'utf8');
const stages = parseDockerfile(dockerfile);
const image = stages.at(-1) as Stage;
const top = mkdtempSync(join(tmpdir(), 'weir-image-'));
afterAll(() => rmSync(top, { recursive: true, force: true }));

const inside = (stage: Stage, path: string): string => stageFolder(top, stage, path);
const PATH = pathOf(top, image);

describe('the image', () => {
  beforeAll(async () => {
    await buildStages(top, stages);
    relocatePrograms(inside(image, '/bin'), inside(image, '/weir'));
  }, 2 * STEP_TIMEOUT_MS);

  test('has two stages on an exact Node.js 24, by digest', () => {
    expect(stages.map(({ base }) => base)).toEqual([image.base, image.base]);
    expect(image.base).toMatch(/^node:24\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
  });

  test('fails with any of its steps, and tries no alternative', () => {
    const steps = stages.flatMap(({ instructions }) => instructions.filter(({ name }) => name === 'RUN'));
    expect(steps.map(({ rest }) => rest)).toContain('npm ci --no-audit --no-fund');
    expect(steps.filter(({ rest }) => /[|;&]|npm (?:i|install|add)\b/.test(rest))).toEqual([]);
  });

  test('is not built if a package differs from package-lock.json', async () => {
    const folder = join(top, 'changed');
    mkdirSync(folder);
    // One small package with the checksum of another one.
    const packages = {
      '': { name: 'changed', version: '1.0.0', dependencies: { long: '5.3.2' } },
      'node_modules/long': { version: '5.3.2', integrity: `sha512-${Buffer.alloc(64).toString('base64')}` },
    };
    const lock = { name: 'changed', version: '1.0.0', lockfileVersion: 3, requires: true, packages };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(packages['']));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
    const { rest } = stages[0]?.instructions.find(({ rest: step }) => step.startsWith('npm ci')) ?? {};
    const ended = await runToEnd('sh', ['-c', rest ?? ''], { cwd: folder, env: { PATH } });
    expect([ended.code === 0, ended.stderr]).toEqual([false, expect.stringContaining('EINTEGRITY')]);
  });

  test('names no architecture, and contains no native code', () => {
    expect(dockerfile).not.toMatch(/--platform|amd64|arm64|x86|aarch64/);
    const native = readdirSync(inside(image, '.'), { recursive: true, encoding: 'utf8' }).filter((path) =>
      /\.(node|so)$/.test(path),
    );
    expect(native).toEqual([]);
  });

  test('describes itself in its labels', () => {
    const text = readFileSync(join(repositoryRoot, 'package.json'), 'utf8');
    const { name, description, version, license } = JSON.parse(text) as Record<string, string>;
    expect(labelsOf(image)).toEqual({
      'org.opencontainers.image.title': name,
      'org.opencontainers.image.description': description,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': license,
      'org.opencontainers.image.base.name': `docker.io/library/${image.base.split('@')[0]}`,
      'org.opencontainers.image.base.digest': image.base.split('@')[1],
    });
    expect(existsSync(inside(image, 'LICENSE'))).toBe(true);
  });

  test('contains a bill of materials that names weir and every package', () => {
    const bill = JSON.parse(readFileSync(inside(image, 'sbom.cdx.json'), 'utf8')) as {
      bomFormat: string;
      metadata: { component: { name: string; version: string } };
      components: { name: string; version: string; licenses?: object[] }[];
    };
    expect([bill.bomFormat, bill.metadata.component.name]).toEqual(['CycloneDX', 'weir']);
    const lock = readFileSync(inside(image, 'node_modules/.package-lock.json'), 'utf8');
    const installed = Object.entries(
      (JSON.parse(lock) as { packages: Record<string, { version: string }> }).packages,
    ).map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`);
    const billed = bill.components.map(({ name, version }) => `${name}@${version}`);
    expect(installed.length).toBeGreaterThan(0);
    expect(billed.sort()).toEqual(installed.sort());
    expect(bill.components.filter(({ licenses = [] }) => licenses.length === 0)).toEqual([]);
  });

  test('runs as a user that is not root, by number', () => {
    expect(image.instructions.filter(({ name }) => name === 'USER')).toEqual([
      { name: 'USER', rest: '1000:1000' },
    ]);
  });

  test('binds all addresses for gRPC and HTTP, and keeps the debug port on loopback', () => {
    expect(environmentOf(image)).toMatchObject({ GRPC_HOST: '0.0.0.0', HOST: '0.0.0.0' });
    expect(environmentOf(image)).not.toHaveProperty('DEBUG_HOST');
    expect(image.instructions.find(({ name }) => name === 'EXPOSE')?.rest).toBe('8081 8080');
  });

  test('contains what runs, and nothing that only builds or tests', () => {
    expect(existsSync(inside(image, 'build/src/main.js'))).toBe(true);
    expect(existsSync(inside(image, 'node_modules/@grpc/grpc-js'))).toBe(true);
    for (const path of ['src', 'build/test', 'node_modules/typescript', 'node_modules/jest']) {
      expect([path, existsSync(inside(image, path))]).toEqual([path, false]);
    }
  });

  test('has the programs of the reference in /bin', async () => {
    const run = (name: string, ...args: string[]) =>
      runToEnd(inside(image, join('/bin', name)), args, { cwd: top, env: { PATH }, bareEnvironment: true });
    for (const name of imagePrograms())
      expect(statSync(inside(image, join('/bin', name))).mode & 0o111).toBe(0o111);
    expect((await run('weir', '--version')).stdout).toMatch(/^weir \d/);
    expect((await run('ratelimit', '--help')).stdout).toContain('Usage: weir ratelimit [');
    expect((await run('ratelimit_client', '-help')).stdout).toContain('Usage: weir ratelimit-client');
    expect((await run('ratelimit_config_check', '-help')).stdout).toContain(
      'Usage: weir ratelimit-config-check',
    );
    // The command of a container is a command of weir, or the path of a program.
    expect((await run('weir-entrypoint', 'check-config', '--help')).stdout).toContain(
      'Usage: weir check-config',
    );
    const client = await run('weir-entrypoint', inside(image, '/bin/ratelimit_client'), '-help');
    expect(client.stdout).toContain('Usage: weir ratelimit-client');
    const named = await run('weir-entrypoint', 'ratelimit_config_check', '-help');
    expect(named.stdout).toContain('Usage: weir ratelimit-config-check');
    const waited = await run('weir-entrypoint', 'sh', '-c', 'true && ratelimit --help');
    expect(waited.stdout).toContain('Usage: weir ratelimit [');
  });

  test('serves, and its health check detects whether a server runs', async () => {
    const [grpcPort = 0, httpPort = 0, debugPort = 0] = await freePorts(3);
    const cwd = inside(image, '.');
    // The variables of the image, with other port numbers, because those of the image can be in use.
    const ports = { GRPC_PORT: String(grpcPort), PORT: String(httpPort), DEBUG_PORT: String(debugPort) };
    const env = { ...environmentOf(image), ...ports, PATH };
    const healthcheck = commandOf(image, 'HEALTHCHECK');
    const isHealthy = () =>
      runToEnd(healthcheck[0] ?? '', healthcheck.slice(1), { cwd, env, bareEnvironment: true });

    await expect(isHealthy()).resolves.toMatchObject({ code: 1 });
    const command = [...commandOf(image, 'ENTRYPOINT'), ...commandOf(image, 'CMD')];
    const weir = startProcess(command[0] ?? '', command.slice(1), { cwd, env, bareEnvironment: true });
    try {
      await waitFor('weir to serve', async () => {
        if (!weir.isRunning()) throw new Error(weir.lines().join('\n'));
        return (await httpRequest(httpPort, '/healthcheck')).status === 200 ? true : undefined;
      });
      await expect(isHealthy()).resolves.toMatchObject({ code: 0 });
    } finally {
      expect(await weir.stop()).toEqual({ code: 0, signal: null });
    }
    await expect(isHealthy()).resolves.toMatchObject({ code: 1 });
  });
});
