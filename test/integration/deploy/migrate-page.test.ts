/* Tests docs/migrate.md: its commands run, and the things that it names exist. */
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { INERT_ROWS, SETTINGS } from '../../../src/server/settings/settings-table.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { copyImagePrograms } from '../../support/image/image-programs.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { httpRequest } from '../../support/process/http-client.js';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { repositoryRoot } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { startRatelimit } from '../../support/reference/ratelimit.js';

const page = readFileSync(join(repositoryRoot, 'docs/migrate.md'), 'utf8');
const metricsPage = readFileSync(join(repositoryRoot, 'docs/operate/metrics.md'), 'utf8');
const deployReadme = readFileSync(join(repositoryRoot, 'deploy/README.md'), 'utf8');

const SHOP = `
domain: shop
descriptors:
  - key: customer
    rate_limit: { unit: year, requests_per_unit: 10 }
`;

/** Returns the lines of a language's fenced blocks, without comments, and with continued lines joined. */
function fenced(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))]
    .flatMap(([, block = '']) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .map((line) => line.replace(/(^|\s+)#.*$/, ''))
    .filter((line) => line !== '');
}

describe('commands', () => {
  const root = new TempDir();
  const bin = copyImagePrograms(root.path);

  // The installation before the switch.
  const after = readFileSync(join(repositoryRoot, 'deploy/from-ratelimit/docker-compose.yaml'), 'utf8');
  root.write('docker-compose.yml', after.replace(/image: weir # was (\S+)/, 'image: $1:4d2efd61'));
  cpSync(join(repositoryRoot, 'deploy/from-ratelimit/config'), root.join('config'), { recursive: true });

  const commands = fenced(page, 'sh');
  const run = (line: string | undefined) =>
    runToEnd('sh', ['-c', line ?? ''], {
      cwd: root.path,
      bareEnvironment: true,
      env: { PATH: [bin, process.env['PATH']].join(delimiter) },
    });

  /** Returns the output that the page shows, where `…` marks omissions. */
  const shown = (n: number) =>
    [...page.matchAll(/^```text\n(.*?)^```/gms)][n]?.[1]?.split(/ ?…\n?/).map((part) => part.trimEnd()) ?? [];
  const ofWeir = commands.filter((line) => /^weir /.test(line));

  test('are complete', () => {
    expect(ofWeir).toEqual([
      'weir migrate docker-compose.yml config',
      'weir ratelimit-config-check -config_dir config',
    ]);
  });

  test('weir migrate names the decisions to make', async () => {
    const { code, stdout, stderr } = await run(ofWeir[0]);
    expect([code, stderr]).toEqual([1, '']);
    expect(shown(0).length).toBeGreaterThan(2);
    for (const part of shown(0)) expect(stdout).toContain(part);
  });

  test('with the variables at the end of the report, no decisions are left', async () => {
    const [, variables = ''] = page.split('Variables to set to keep the defaults of envoyproxy/ratelimit\n');
    const lines = [...variables.matchAll(/^ {2}(\w+=\w\S*)$/gm)].map(([, line]) => `      - ${line}\n`);
    expect(lines).toHaveLength(3);
    const file = root.join('docker-compose.yml');
    const changed = readFileSync(file, 'utf8').replace('environment:\n', `environment:\n${lines.join('')}`);
    root.write('changed.yml', changed);
    const { code, stdout } = await run(ofWeir[0]?.replace('docker-compose.yml', 'changed.yml'));
    expect([code, stdout]).toEqual([0, expect.stringContaining('\nNo decisions are needed.\n')]);
  });

  test('weir ratelimit-config-check accepts the files', async () => {
    expect(await run(ofWeir[1])).toMatchObject({ code: 0, stdout: expect.stringMatching(/configs ok\n$/) });
  });

  test('kubectl set image names an existing deployment and container', () => {
    const [, deployment, container, image] =
      /kubectl set image deployment\/(\S+) (\S+)=(\S+?)`/.exec(page) ?? [];
    const manifests = parseAllDocuments(
      readFileSync(join(repositoryRoot, 'deploy/from-ratelimit/kubernetes.yaml'), 'utf8'),
    ).map((document) => document.toJS());
    const found = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === deployment,
    );
    expect(found.spec.template.spec.containers).toMatchObject([{ name: container, image }]);
  });

  test('files for kubectl and docker exist', () => {
    const files = [...fenced(deployReadme, 'sh'), page].flatMap((text) =>
      [...text.matchAll(/ -f (deploy\/\S+?)(?=[\s`]|$)/g)].map(([, path = '']) => path),
    );
    expect(files).toEqual(
      expect.arrayContaining(['deploy/envoy-gateway/envoy-gateway.yaml', 'deploy/Dockerfile']),
    );
    for (const path of files) expect([path, existsSync(join(repositoryRoot, path))]).toEqual([path, true]);
  });
});

test('each difference occurs once, with its reason', () => {
  const table = /^## Intentional differences\n(.*?)^## /ms.exec(page)?.[1] ?? '';
  const rows = table
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.split('|').map((cell) => cell.trim()));
  expect(rows.length).toBeGreaterThan(15);
  for (const [, there, here, because, ...rest] of rows) {
    expect([there !== '', here !== '', because !== '', rest]).toEqual([true, true, true, ['']]);
  }
  // A row begins with its subject.
  const subjects = rows.flatMap(([, there = '']) => /^`[^`]+`/.exec(there) ?? []);
  expect(new Set(subjects).size).toBe(subjects.length);
});

describe('variables', () => {
  test('each variable of the reference is in the table or in the list below it', () => {
    for (const { name, reference } of SETTINGS) {
      if (reference !== undefined) expect(page).toContain(`\`${name}\``);
    }
    for (const { name } of INERT_ROWS) expect(page).toContain(`\`${name}\``);
  });

  test('weir refuses the variables that the page says it refuses', () => {
    const sentence = /weir does not start\s+with (.*?)\. If you set/s.exec(page)?.[1] ?? '';
    const refused = [...sentence.matchAll(/`(\w+)=(\w+)`/g)];
    expect(refused.length).toBeGreaterThan(2);
    for (const [, name = '', value = ''] of refused) {
      const read = readSettings({ REDIS_URL: 'redis:6379', [name]: value });
      expect(read).toMatchObject({ ok: false, errors: [expect.stringMatching(`^${name}: `)] });
    }
  });
});

describe('dashboards', () => {
  const queries = fenced(metricsPage, 'promql');
  const metrics = [...new Set(queries.join(' ').match(/\b(?:ratelimit|weir)_\w+/g))];

  test('the queries name metrics that weir exports', async () => {
    expect(metrics.length).toBeGreaterThan(8);
    const root = new TempDir();
    const [metricsPort = 0] = await freePorts(1);
    const server = await startRatelimit(join(copyImagePrograms(root.path), 'ratelimit'), {
      CONFIG_PATH: root.write('shop.yaml', SHOP),
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: `127.0.0.1:${metricsPort}`,
    });
    const client = new RlsClient(server.grpcPort);
    try {
      for (let i = 0; i < 11; i++) await client.ask('shop', [descriptor(['customer=bob'])]);
      await client.ask('', []);
      root.write('shop.yaml', 'domain: [');
      const served = await waitFor('the metrics', async () => {
        const { body } = await httpRequest(metricsPort, '/metrics');
        const isServed = (name: string): boolean => body.includes(`# TYPE ${name} `);
        const missing = metrics.filter(
          (name) => !isServed(name) && !isServed(name.replace(/_(bucket|sum|count)$/, '')),
        );
        if (missing.length > 0) throw new Error(`not yet: ${missing.join(', ')}`);
        return body;
      });
      // Both names show the same figure: one of eleven requests was denied.
      expect(served).toMatch(/^ratelimit_service_rate_limit_over_limit\{domain="shop",key1="customer"\} 1$/m);
      expect(served).toMatch(/^weir_decisions_total\{domain="shop",rule="customer",code="OVER_LIMIT"\} 1$/m);
      expect(served).toMatch(/^ratelimit_service_rate_limit_near_limit\{.*\} 2$/m);
    } finally {
      client.close();
      await server.process.stop();
      root.remove();
    }
  });
});
