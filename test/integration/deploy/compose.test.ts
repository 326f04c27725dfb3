import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { repositoryRoot } from '../../support/process/tools.js';

const FOLDER = join(repositoryRoot, 'deploy');

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: object;
}

const { services } = parse(readFileSync(join(FOLDER, 'docker-compose.yaml'), 'utf8')) as {
  services: Record<string, Service>;
};

test('has the services that the Envoy bootstrap uses as addresses', () => {
  expect(Object.keys(services).sort()).toEqual(['envoy', 'redis', 'upstream', 'weir']);
  const bootstrap = readFileSync(join(FOLDER, 'envoy/envoy.yaml'), 'utf8');
  expect(bootstrap).toContain('address: weir, port_value: 8081');
  expect(bootstrap).toContain('address: upstream, port_value: 9090');
  expect(services['upstream']?.command?.slice(2)).toEqual(['9090', '0.0.0.0']);
});

test('mounts and builds from existing files', () => {
  const mounts = Object.values(services).flatMap(({ volumes = [] }) =>
    volumes.map((volume) => volume.split(':')[0] ?? '').filter((path) => path !== 'redis-data'),
  );
  expect(mounts).toEqual(
    expect.arrayContaining(['./policies', './envoy/envoy.yaml', './demo/echo-upstream.ts']),
  );
  const { context = '', dockerfile = '' } = services['weir']?.build ?? {};
  for (const path of [...mounts, join(context, dockerfile)])
    expect([path, existsSync(join(FOLDER, path))]).toEqual([path, true]);
});

test.each(['', 'init', 'from-ratelimit'])('keeps the data of Redis over a restart: deploy/%s', (folder) => {
  const file = parse(readFileSync(join(FOLDER, folder, 'docker-compose.yaml'), 'utf8'));
  const { command, volumes } = file.services.redis;
  expect(command.join(' ')).toContain('--appendonly yes');
  expect(volumes).toEqual(['redis-data:/data']);
  expect(file.volumes).toHaveProperty('redis-data');
});

test('publishes on loopback only, and never the debug or admin port', () => {
  const ports = Object.values(services).flatMap(({ ports: published = [] }) => published);
  expect(ports).not.toEqual([]);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:(10000|8080|8081):/);
});

test('Redis never evicts, and services that others wait for have a health check', () => {
  expect(services['redis']?.command?.join(' ')).toContain('--maxmemory-policy noeviction');
  const healthy = Object.values(services).flatMap(({ depends_on = {} }) =>
    Object.entries(depends_on)
      .filter(([, { condition }]) => condition === 'service_healthy')
      .map(([name]) => name),
  );
  expect(healthy.sort()).toEqual(['redis', 'weir']);
  expect(services['redis']?.healthcheck).toBeDefined();
  expect(readFileSync(join(FOLDER, 'Dockerfile'), 'utf8')).toMatch(/^HEALTHCHECK /m);
});

test('every file that deploy/README.md links to exists', () => {
  const text = readFileSync(join(FOLDER, 'README.md'), 'utf8');
  const links = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => path ?? '');
  expect(links.length).toBeGreaterThan(10);
  for (const path of links) expect([path, existsSync(join(FOLDER, path))]).toEqual([path, true]);
});
