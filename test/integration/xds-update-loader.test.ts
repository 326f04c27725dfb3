/* Tests updates of a management server that a thread loads. */

import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import { expect, test } from '@jest/globals';
import { inEffectOf, type LoadedPolicies } from '../../src/config/files/load-policies.js';
import { LoadThread } from '../../src/config/threads/load-thread.js';
import {
  createDiscoveryCodec,
  type DiscoveryResponse,
  RATE_LIMIT_CONFIG_TYPE,
  type Resource,
} from '../../src/config/xds/discovery.js';
import type { UpdateRequest } from '../../src/config/xds/load-update.js';
import { formatProblem, MAX_PROBLEMS } from '../../src/config/yaml/config-problem.js';
import { assetPath } from '../../src/runtime/assets.js';
import { encodeConfig } from '../support/xds/xds-server.js';

const RESPONSE = loadSync('envoy/service/discovery/v3/discovery.proto', {
  includeDirs: [assetPath('proto')],
})['envoy.service.discovery.v3.DiscoveryResponse'] as MessageTypeDefinition<object, object>;

function resource(domain: string, requests: number, rules = 1): Resource {
  const descriptors = Array.from({ length: rules }, (_, index) => ({
    key: 'k',
    value: `v${index}`,
    rate_limit: { unit: 'DAY', requests_per_unit: requests },
  }));
  return {
    typeUrl: RATE_LIMIT_CONFIG_TYPE,
    value: encodeConfig({ name: `${domain}-config`, domain, descriptors }).bytes,
  };
}

const codec = createDiscoveryCodec();

/** Returns a response as it is received. */
function update(resources: readonly Resource[], versionInfo = ''): DiscoveryResponse {
  const any = resources.map(({ typeUrl, value }) => ({ type_url: typeUrl, value }));
  return codec.decodeResponse(RESPONSE.serialize({ versionInfo, resources: any }));
}

/** Loads updates in threads, as XdsSource does. */
class UpdateLoader {
  readonly #thread = new LoadThread<UpdateRequest>('loads an update');

  load({ resources }: DiscoveryResponse, previous: LoadedPolicies | undefined): Promise<LoadedPolicies> {
    const request = { resources, options: {}, before: inEffectOf(previous) };
    return this.#thread.load(request, previous);
  }

  close(): void {
    this.#thread.close();
  }
}

test('keeps the objects of unchanged domains in an update', async () => {
  const loader = new UpdateLoader();
  const first = await loader.load(update([resource('one', 1), resource('two', 1)]), undefined);
  const second = await loader.load(update([resource('two', 2), resource('one', 1)]), first);
  expect([first.errors, second.errors]).toEqual([[], []]);
  expect(second.policySet.domains.get('one')).toBe(first.policySet.domains.get('one'));
  expect(second.policySet.domains.get('two')).not.toBe(first.policySet.domains.get('two'));
  const entries = [{ key: 'k', value: 'v0' }];
  expect(second.policySet.domains.get('two')?.match(entries).rules[0]?.rate).toMatchObject({
    requestsPerUnit: 2,
  });
  expect(second.domains.map(({ domain, state }) => [domain, state])).toEqual([
    ['one', 'ok'],
    ['two', 'ok'],
  ]);
});

test('removes a domain that is missing in an update', async () => {
  const loader = new UpdateLoader();
  const first = await loader.load(update([resource('one', 1), resource('two', 1)]), undefined);
  const second = await loader.load(update([resource('one', 1)]), first);
  expect([...second.policySet.domains.keys()]).toEqual(['one']);
  expect((await loader.load(update([]), second)).policySet.domains.size).toBe(0);
});

test('transfers 10,000 rules', async () => {
  const loader = new UpdateLoader();
  const { errors, policySet } = await loader.load(update([resource('big', 7, 10_000)]), undefined);
  expect(errors).toEqual([]);
  expect(policySet.domains.get('big')?.rules).toHaveLength(10_000);
});

test('keeps the policies of a rejected update', async () => {
  const loader = new UpdateLoader();
  const good = await loader.load(update([resource('kept', 1)]), undefined);
  const bad = await loader.load(update([resource('', 1), resource('one', 1), resource('kept', 1)]), good);
  expect(bad.errors.map(formatProblem)).toEqual([expect.stringMatching(/^-config: domain: /)]);
  expect(bad.policySet.domains.get('kept')).toBe(good.policySet.domains.get('kept'));
});

/** Returns a resource with `count` empty descriptors. */
const ofEmptyDescriptors = (count: number): Resource => ({
  typeUrl: RATE_LIMIT_CONFIG_TYPE,
  value: Buffer.alloc(2 * count, Buffer.from([0x1a, 0])),
});

test('transfers the first of a hundred thousand errors, and the number of the rest', async () => {
  const loader = new UpdateLoader();
  const { errors } = await loader.load(update([ofEmptyDescriptors(100_000)]), undefined);
  expect(errors).toHaveLength(MAX_PROBLEMS + 1);
  expect(formatProblem(errors[0]!)).toMatch(/^resource 1: /);
  expect(formatProblem(errors.at(-1)!)).toMatch(/^resource 1: and \d{5,} more errors, not listed$/);
});

test('bytes that are not a message are not decoded', () => {
  expect(() => codec.decodeResponse(Uint8Array.of(0x0a, 0x7f))).toThrow();
});

test('rejects a load when it is closed', async () => {
  const loader = new UpdateLoader();
  const loading = loader.load(update([resource('one', 1)]), undefined);
  loader.close();
  await expect(loading).rejects.toThrow(/the thread that loads an update exited|closed/);
});
