import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { validateEnvoy, withChanges } from '../../support/envoy/envoy.js';
import { repositoryRoot } from '../../support/process/tools.js';

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');

describe.each(['deploy/envoy/envoy.yaml', 'deploy/envoy/envoy-api-key.yaml'])('%s', (path) => {
  test('is a valid bootstrap', async () => {
    const { good, output } = await validateEnvoy(read(path));
    expect(output).toContain("' OK");
    expect(good).toBe(true);
  });

  test.each([
    ['an unknown field', 'stat_prefix: open_api', 'stat_prefixes: open_api', 'stat_prefixes'],
    ['a wrong value', 'x_ratelimit_headers: "OFF"', 'x_ratelimit_headers: "SOMETIMES"', 'SOMETIMES'],
    ['an unknown cluster', 'cluster: upstream', 'cluster: elsewhere', 'elsewhere'],
  ])('validation detects %s', async (_what, from, to, named) => {
    const { good, output } = await validateEnvoy(withChanges(read(path), [[from, to]]));
    expect(good).toBe(false);
    expect(output).toContain(named);
  });

  test('leaves the x-ratelimit headers to weir', () => {
    expect(read(path)).toContain('enable_x_ratelimit_headers: "OFF"');
  });
});

test.each(['deploy/envoy/shop.yaml', 'deploy/envoy/classes.yaml'])(
  '%s is a valid bootstrap',
  async (path) => {
    expect(await validateEnvoy(read(path))).toMatchObject({ good: true });
  },
);

interface EnvoyFilter {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: {
    readonly configPatches: readonly {
      readonly applyTo: string;
      readonly patch: { readonly value: unknown };
    }[];
  };
}

/** Returns the only patch of an EnvoyFilter. */
function patchOf(path: string) {
  const filter = parse(read(path)) as EnvoyFilter;
  expect(filter).toMatchObject({ apiVersion: 'networking.istio.io/v1alpha3', kind: 'EnvoyFilter' });
  expect(filter.spec.configPatches).toHaveLength(1);
  const [patch] = filter.spec.configPatches;
  if (patch === undefined) throw new Error(`${path} holds no patch`);
  return patch;
}

describe('the Istio EnvoyFilters', () => {
  const filter = () => patchOf('deploy/istio/filter.yaml');
  const actions = () => patchOf('deploy/istio/actions.yaml');

  /** Returns a minimal bootstrap with the patches that Istio would apply. */
  function bootstrap(httpFilter: unknown, virtualHost: object): string {
    const manager = {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: 'gateway',
      route_config: {
        virtual_hosts: [
          {
            name: 'api',
            domains: ['*'],
            routes: [
              { match: { prefix: '/' }, route: { cluster: 'outbound|8081||weir.weir.svc.cluster.local' } },
            ],
            ...virtualHost,
          },
        ],
      },
      http_filters: [
        httpFilter,
        {
          name: 'envoy.filters.http.router',
          typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
        },
      ],
    };
    const filters = [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }];
    // JSON avoids differences between versions of YAML: Envoy reads an unquoted OFF as false.
    return JSON.stringify({
      static_resources: {
        listeners: [
          {
            name: 'gateway',
            address: { socket_address: { address: '127.0.0.1', port_value: 10000 } },
            filter_chains: [{ filters }],
          },
        ],
        clusters: [
          { name: 'outbound|8081||weir.weir.svc.cluster.local', type: 'STATIC', connect_timeout: '1s' },
        ],
      },
    });
  }

  test('patch what they claim to patch', () => {
    expect(filter().applyTo).toBe('HTTP_FILTER');
    expect(actions().applyTo).toBe('VIRTUAL_HOST');
  });

  test('contain valid Envoy configuration', async () => {
    const text = bootstrap(filter().patch.value, actions().patch.value as object);
    expect((await validateEnvoy(text)).output).toContain("' OK");
  });

  test.each(['concurrency', 'reservations'])(
    'contain valid Envoy configuration with holds: %s',
    async (name) => {
      const { applyTo, patch } = patchOf(`deploy/istio/holds/${name}.yaml`);
      const isRoute = applyTo === 'HTTP_ROUTE';
      const route = {
        match: { prefix: '/' },
        route: { cluster: 'outbound|8081||weir.weir.svc.cluster.local' },
      };
      const host = isRoute ? { routes: [{ ...route, ...(patch.value as object) }] } : (patch.value as object);
      expect((await validateEnvoy(bootstrap(filter().patch.value, host))).output).toContain("' OK");
      // The actions are those of the page for Envoy.
      const settlement = /^ +metadata_key: .*$/m.exec(read(`docs/policy/${name}.md`))?.[0].trim();
      expect(read(`deploy/istio/holds/${name}.yaml`)).toContain(settlement);
    },
  );

  test('validation detects a mistake in either', async () => {
    const good = bootstrap(filter().patch.value, actions().patch.value as object);
    for (const [from, to] of [
      ['"failure_mode_deny"', '"failure_mode_denied"'],
      ['"descriptor_key":"tenant"', '"descriptor_keys":"tenant"'],
    ] as const) {
      const { good: accepted, output } = await validateEnvoy(withChanges(good, [[from, to]]));
      expect(accepted).toBe(false);
      expect(output).toContain(to.split('"')[1]);
    }
  });

  test('agree with the bootstrap', () => {
    const shared = /^ *(domain|timeout|failure_mode_deny|status_on_error|enable_x_ratelimit_headers):.*$/gm;
    const lines = (path: string) =>
      (read(path).match(shared) ?? []).map((line) => line.trim()).filter((line) => line !== 'timeout: 1s');
    expect(lines('deploy/istio/filter.yaml')).toEqual(lines('deploy/envoy/envoy.yaml'));
    expect(lines('deploy/envoy/envoy-api-key.yaml')).toEqual(lines('deploy/envoy/envoy.yaml'));
    const entries = (path: string) =>
      (read(path).match(/- request_headers: .*/g) ?? []).map((line) => line.trim());
    expect(entries('deploy/istio/actions.yaml')).toEqual(entries('deploy/envoy/envoy.yaml'));
    expect(entries('deploy/envoy/envoy.yaml')).toHaveLength(3);
  });
});
