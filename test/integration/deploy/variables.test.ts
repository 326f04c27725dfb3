import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { VARIABLES } from '../../../src/server/settings/settings-table.js';
import { environmentOf, parseDockerfile } from '../../support/image/dockerfile.js';
import { repositoryRoot } from '../../support/process/tools.js';

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');

/** Variables that Node.js or its C library reads, and weir does not. */
const OF_NODE = ['NODE_ENV', 'MALLOC_ARENA_MAX'];

function ofDockerfile(): Record<string, string> {
  return Object.assign({}, ...parseDockerfile(read('deploy/Dockerfile')).map(environmentOf));
}

function ofCompose(path: string): Record<string, string> {
  const { services } = parse(read(path), { merge: true }) as {
    services: Record<string, { environment?: Record<string, string> | string[] }>;
  };
  return Object.assign(
    {},
    ...Object.values(services).map(({ environment = {} }) => variablesOf(environment)),
  );
}

/** Converts a list of `NAME=value`, which compose accepts in place of a mapping. */
function variablesOf(environment: Record<string, string> | string[]): Record<string, string> {
  if (!Array.isArray(environment)) return environment;
  return Object.fromEntries(
    environment.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** Returns the variables of a compose file, with the contents of the password file that its first lines describe. */
function ofComposeWithPasswords(path: string): Record<string, string> {
  const [command = '', format = ''] = /printf '(.*?)' .*/.exec(read(path)) ?? [];
  expect(read('deploy/README.md')).toContain(`\n${command}\n`);
  const lines = format.replaceAll('%s', 'x').split('\\n').slice(0, -1);
  return { ...ofCompose(path), ...variablesOf(lines) };
}

interface Container {
  readonly image?: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

function ofContainers(containers: readonly Container[]): Record<string, string> {
  return Object.fromEntries(
    containers.flatMap(({ env = [] }) => env.map(({ name, value = '' }) => [name, value] as const)),
  );
}

function ofManifests(...paths: readonly string[]): Record<string, string> {
  const containers = paths.flatMap((path) =>
    parseAllDocuments(read(path)).flatMap((document) => {
      const manifest = document.toJS() as { spec?: { template?: { spec: { containers: Container[] } } } };
      const all = manifest.spec?.template?.spec.containers ?? [];
      return all.filter(({ image = '' }) => image.startsWith('weir:'));
    }),
  );
  return ofContainers(containers);
}

function ofEnvoyGateway(): Record<string, string> {
  const { data } = parse(read('deploy/envoy-gateway/envoy-gateway.yaml')) as { data: Record<string, string> };
  const gateway = parse(data['envoy-gateway.yaml'] ?? '') as {
    provider: { kubernetes: { rateLimitDeployment: { container: Container } } };
  };
  return ofContainers([gateway.provider.kubernetes.rateLimitDeployment.container]);
}

const kubernetes = readdirSync(join(repositoryRoot, 'deploy/kubernetes'), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => `deploy/kubernetes/${name}`);

test.each([
  ['the Dockerfile', ofDockerfile, ['GRPC_HOST', 'HOST']],
  ['the compose file', () => ofCompose('deploy/docker-compose.yaml'), ['REDIS_URL', 'SHUTDOWN_DRAIN_DELAY']],
  [
    'the compose file with Sentinels',
    () => ofComposeWithPasswords('deploy/sentinel/docker-compose.yaml'),
    ['REDIS_TYPE', 'REDIS_URL', 'REDIS_AUTH', 'REDIS_SENTINEL_AUTH'],
  ],
  [
    'the compose file with a cluster',
    () => ofComposeWithPasswords('deploy/cluster/docker-compose.yaml'),
    ['REDIS_TYPE', 'REDIS_URL', 'REDIS_AUTH'],
  ],
  ['the Kubernetes manifests', () => ofManifests(...kubernetes), ['REDIS_URL', 'SHUTDOWN_DRAIN_DELAY']],
  [
    'the compose file of the switch',
    () => ofCompose('deploy/from-ratelimit/docker-compose.yaml'),
    ['RUNTIME_ROOT', 'USE_PROMETHEUS'],
  ],
  [
    'the manifests of the switch',
    () => ofManifests('deploy/from-ratelimit/kubernetes.yaml'),
    ['RUNTIME_ROOT', 'RUNTIME_IGNOREDOTFILES'],
  ],
  ["Envoy Gateway's configuration", ofEnvoyGateway, ['SHUTDOWN_DRAIN_DELAY']],
])('%s sets variables that weir knows, to values that it accepts', (_where, variables, among) => {
  const given = variables();
  expect(Object.keys(given)).toEqual(expect.arrayContaining(among));
  const known = VARIABLES.map(({ name }) => name as string);
  expect(Object.keys(given).filter((name) => !known.includes(name) && !OF_NODE.includes(name))).toEqual([]);
  expect(readSettings(given)).toMatchObject({ ok: true });
  for (const value of Object.values(given)) expect(typeof value).toBe('string');
});
