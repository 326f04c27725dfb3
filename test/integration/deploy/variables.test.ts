import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings } from '../../../src/server/settings.js';
import { SETTINGS } from '../../../src/server/settings-table.js';
import { environmentOf, parseDockerfile } from '../../support/dockerfile.js';
import { repositoryRoot } from '../../support/tools.js';

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');

/** Variables that Node.js reads, not weir. */
const OF_NODE = ['NODE_ENV'];

function ofDockerfile(): Record<string, string> {
  return Object.assign({}, ...parseDockerfile(read('deploy/Dockerfile')).map(environmentOf));
}

function ofCompose(): Record<string, string> {
  const { services } = parse(read('deploy/docker-compose.yaml')) as {
    services: Record<string, { environment?: Record<string, string> }>;
  };
  return Object.assign({}, ...Object.values(services).map(({ environment }) => environment ?? {}));
}

interface Pod {
  readonly containers: readonly {
    readonly env?: readonly { readonly name: string; readonly value?: string }[];
  }[];
}

function ofManifests(): Record<string, string> {
  const found: Record<string, string> = {};
  for (const file of readdirSync(join(repositoryRoot, 'deploy/kubernetes'))) {
    for (const document of parseAllDocuments(read(`deploy/kubernetes/${file}`))) {
      const manifest = document.toJS() as { spec?: { template?: { spec: Pod } } };
      for (const container of manifest.spec?.template?.spec.containers ?? []) {
        for (const { name, value } of container.env ?? []) found[name] = value ?? '';
      }
    }
  }
  return found;
}

test.each([
  ['the Dockerfile', ofDockerfile, ['GRPC_HOST', 'HOST']],
  ['the compose file', ofCompose, ['REDIS_URL', 'SHUTDOWN_DRAIN_DELAY']],
  ['the Kubernetes manifests', ofManifests, ['REDIS_URL', 'SHUTDOWN_DRAIN_DELAY']],
])('%s sets variables that weir knows, to values that it takes', (_where, variables, among) => {
  const given = variables();
  expect(Object.keys(given)).toEqual(expect.arrayContaining(among));
  const known = SETTINGS.map(({ name }) => name as string);
  expect(Object.keys(given).filter((name) => !known.includes(name) && !OF_NODE.includes(name))).toEqual([]);
  expect(readSettings(given)).toMatchObject({ ok: true });
  for (const value of Object.values(given)) expect(typeof value).toBe('string');
});
