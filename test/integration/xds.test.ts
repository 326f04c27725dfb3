/* Tests CONFIG_TYPE=GRPC_XDS_SOTW from outside: weir with a management server that is built with go-control-plane. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { STATUS } from '../../src/grpc/grpc-server.js';
import { httpRequest } from '../support/process/http-client.js';
import { optionalToolPath } from '../support/process/tools.js';
import type { WeirServer } from '../support/weir/weir.js';
import {
  acknowledges,
  ask,
  followPolicies,
  limitOf,
  logged,
  startXdsWeir,
  untilLogged,
  untilRequest,
  untilServing,
  windowConfig,
} from '../support/weir/xds-weir.js';
import { resourceOf } from '../support/xds/policy-resource.js';
import { encodeConfig, startXdsServer, type XdsResource, type XdsServer } from '../support/xds/xds-server.js';

const describeXds = optionalToolPath('xds-server') === undefined ? describe.skip : describe;

describeXds('updates', () => {
  let xds: XdsServer;
  let weir: WeirServer;
  beforeAll(async () => {
    xds = await startXdsServer();
    await xds.setSnapshot('v1', [windowConfig('one', 3), windowConfig('two', 4)], 'node-7');
    weir = await startXdsWeir(xds.port, {
      CONFIG_GRPC_XDS_NODE_ID: 'node-7',
      CONFIG_GRPC_XDS_NODE_METADATA: 'zone:a,tier=gold',
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'authorization:Bearer x,x-team:limits',
    });
    await untilServing(weir);
    await untilRequest(xds, 'the ACK', acknowledges('v1'));
  });

  /** Resolves when the resources are in effect. Each version may be used only once. */
  async function put(version: string, ...resources: XdsResource[]): Promise<void> {
    await xds.setSnapshot(version, resources, 'node-7');
    await untilRequest(xds, `the ACK of ${version}`, acknowledges(version));
  }

  test('the first request identifies weir; the first configuration is acknowledged', async () => {
    const [first, second] = await xds.requests();
    expect(first).toMatchObject({
      stream: 1,
      nodeId: 'node-7',
      nodeMetadata: { zone: 'a', tier: 'gold' },
      headers: { authorization: 'Bearer x', 'x-team': 'limits' },
      typeUrl: 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig',
      resourceNames: null,
      version: '',
      nonce: '',
    });
    expect(second).toMatchObject({ stream: 1, nodeId: 'node-7', version: 'v1' });
  });

  test(
    'an update replaces everything; a bad one is rejected with all reasons and changes nothing; a good ' +
      'one mends it',
    async () => {
      await put('v2', windowConfig('one', 3), windowConfig('two', 4));
      expect([await limitOf(weir, 'one'), await limitOf(weir, 'two')]).toEqual([3, 4]);
      await put('v3', windowConfig('one', 5));
      expect(await limitOf(weir, 'one')).toBe(5);
      expect(await limitOf(weir, 'two')).toBeUndefined();

      const bad = {
        json: {
          name: 'bad',
          domain: 'three',
          descriptors: [{ key: 'k', rateLimit: { unit: 9, requestsPerUnit: 7 } }, { value: 'no key' }],
        },
      };
      await xds.setSnapshot('v4', [windowConfig('one', 6), bad], 'node-7');
      const rejection = await untilRequest(xds, 'the NACK', ({ error }) => error !== undefined);
      expect(rejection).toMatchObject({ version: 'v3' });
      expect(rejection.error).toMatch(/^bad: descriptors\[0\]\.rate_limit\.unit: "9" is not a valid unit/m);
      expect(rejection.error).toMatch(/^bad: descriptors\[1\]\.key: /m);
      expect(await limitOf(weir, 'one')).toBe(5);
      expect(await limitOf(weir, 'three')).toBeUndefined();
      const detail = JSON.parse((await httpRequest(weir.httpPort, '/healthcheck?detail')).body);
      expect(JSON.stringify(detail)).toContain('descriptors[0].rate_limit.unit');

      await put('v5', windowConfig('one', 8));
      expect(await limitOf(weir, 'one')).toBe(8);
      // go-control-plane sends a rejected update again immediately: neither side may loop without a pause.
      expect((await xds.requests()).filter(({ error }) => error !== undefined).length).toBeLessThan(50);
      expect(logged(weir, 'configuration rejected; the previous configuration stays in effect')).toHaveLength(
        1,
      );
    },
  );

  test('an update without resources is a configuration without domains', async () => {
    await put('filled', windowConfig('one', 3));
    expect(await limitOf(weir, 'one')).toBe(3);
    await put('empty');
    expect(await ask(weir, 'one', 'k=v')).toMatchObject({
      code: STATUS.OK,
      response: { overallCode: CODE.OK, statuses: [{ code: CODE.OK, currentLimit: undefined }] },
    });
  });

  test("weir's own fields take effect: token_bucket, share_threshold, phase and response_headers", async () => {
    const bucket = (tokens: number) => ({
      token_bucket: { max_tokens: tokens, tokens_per_fill: { value: 1 }, fill_interval: { seconds: 3600 } },
    });
    await put(
      'fields',
      encodeConfig({
        name: 'ours',
        domain: 'ours',
        response_headers: ['x-ratelimit'],
        phase: 'monitoring',
        descriptors: [
          // Servers without support for token buckets need a window, too.
          {
            key: 'strict',
            phase: 'active',
            rate_limit: { ...bucket(2), unit: 'DAY', requests_per_unit: 50 },
          },
          { key: 'watched', rate_limit: bucket(1) },
          { key: 'shared', phase: 'active', value: 'a*', share_threshold: true, rate_limit: bucket(1) },
        ],
      }),
    );
    const codes = async (key: string, ...values: string[]) => {
      const found: (number | undefined)[] = [];
      for (const value of values)
        found.push((await ask(weir, 'ours', `${key}=${value}`)).response?.overallCode);
      return found;
    };
    expect(await codes('strict', 'a', 'a', 'a', 'b')).toEqual([CODE.OK, CODE.OK, CODE.OVER_LIMIT, CODE.OK]);
    expect(await codes('watched', 'a', 'a')).toEqual([CODE.OK, CODE.OK]);
    expect(await codes('shared', 'aa', 'ab')).toEqual([CODE.OK, CODE.OVER_LIMIT]);
    const { response } = await ask(weir, 'ours', 'watched=a');
    expect(response?.responseHeadersToAdd).toContainEqual(
      expect.objectContaining({ key: 'x-ratelimit-will-be-throttled', value: 'true' }),
    );
  });

  test('lists of limits, addresses, derived entries and bodies pass through the server', async () => {
    await put(
      'lists',
      encodeConfig(
        resourceOf({
          domain: 'lists',
          denied_response: { body: 'later', content_type: 'text/plain' },
          derive: [{ entry: 'group', from: ['path'], rules: [{ path: '/v1/**', value: 'old' }] }],
          descriptors: [
            { key: 'group', value: 'old', rate_limit: { unit: 'year', requests_per_unit: 1 } },
            {
              key: 'ip',
              value_cidr: ['10.0.0.0/8'],
              rate_limits: [
                { name: 'wide', unit: 'year', requests_per_unit: 9 },
                { name: 'narrow', unit: 'year', unit_multiplier: 2, requests_per_unit: 2 },
              ],
            },
          ],
        }),
      ),
    );
    const codes = async (entry: string, times: number) => {
      const replies = await Promise.all(Array.from({ length: times }, () => ask(weir, 'lists', entry)));
      return replies.map(({ response }) => response?.overallCode).sort();
    };
    expect(await codes('path=/v1/users', 2)).toEqual([CODE.OK, CODE.OVER_LIMIT]);
    expect(await codes('ip=10.1.2.3', 3)).toEqual([CODE.OK, CODE.OK, CODE.OVER_LIMIT]);
    expect(await codes('ip=11.1.2.3', 3)).toEqual([CODE.OK, CODE.OK, CODE.OK]);
    const { response } = await ask(weir, 'lists', 'ip=10.1.2.3');
    expect(Buffer.from(response?.rawBody ?? []).toString()).toBe('later');
  });
});

describeXds('settings', () => {
  test('one domain in two resources is rejected, or merged with MERGE_DOMAIN_CONFIG', async () => {
    const xds = await startXdsServer();
    const other = {
      json: {
        name: 'other',
        domain: 'one',
        descriptors: [{ key: 'j', rateLimit: { unit: 'DAY', requestsPerUnit: 9 } }],
      },
    };
    await xds.setSnapshot('v1', [windowConfig('one', 3), other]);
    const apart = await followPolicies(xds.port);
    const rejection = await untilRequest(xds, 'the NACK', ({ error }) => error !== undefined);
    expect(rejection.error).toMatch(/"one"/);
    expect(apart.provider.current()).toBeUndefined();
    const merged = await followPolicies(xds.port, { MERGE_DOMAIN_CONFIG: 'true' });
    await untilRequest(xds, 'the ACK', acknowledges('v1'));
    expect(merged.limitOf('one')).toBe(3);
    expect(merged.limitOf('one', 'j')).toBe(9);
  });

  test('a message can be as large as XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES allows', async () => {
    const xds = await startXdsServer();
    const nodes = Array.from({ length: 1500 }, (_, i) => ({
      key: 'k',
      value: `${i}-${'x'.repeat(4000)}`,
      rateLimit: { unit: 'HOUR', requestsPerUnit: 3 },
    }));
    await xds.setSnapshot('v1', [
      {
        json: {
          name: 'big',
          domain: 'big',
          descriptors: [{ key: 'k', rateLimit: { unit: 'DAY', requestsPerUnit: 11 } }, ...nodes],
        },
      },
    ]);
    const small = await followPolicies(xds.port);
    expect(await untilLogged(small, 'lost the connection to the management server')).toMatchObject({
      reason: expect.stringMatching(/RESOURCE_EXHAUSTED.*4194304/),
    });
    const large = await followPolicies(xds.port, { XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '16777216' });
    await untilRequest(xds, 'the ACK', acknowledges('v1'));
    expect(large.limitOf('big')).toBe(11);
  });
});
