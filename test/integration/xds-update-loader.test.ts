/* Updates of a management server, loaded in a thread. */
import { expect, test } from '@jest/globals';
import { formatProblem } from '../../src/config/config-problem.js';
import { RATE_LIMIT_CONFIG_TYPE, type Resource } from '../../src/config/xds/discovery.js';
import { UpdateLoader } from '../../src/config/xds/update-loader.js';
import { encodeConfig } from '../support/xds-server.js';

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

test('of an update the domains that did not change stay the very objects', async () => {
  const loader = new UpdateLoader({ mergeDomains: false });
  const first = await loader.load([resource('one', 1), resource('two', 1)], undefined);
  const second = await loader.load([resource('two', 2), resource('one', 1)], first);
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

test('a domain that is gone is gone', async () => {
  const loader = new UpdateLoader({ mergeDomains: false });
  const first = await loader.load([resource('one', 1), resource('two', 1)], undefined);
  const second = await loader.load([resource('one', 1)], first);
  expect([...second.policySet.domains.keys()]).toEqual(['one']);
  expect((await loader.load([], second)).policySet.domains.size).toBe(0);
});

test('errors come back with their places', async () => {
  const loader = new UpdateLoader({ mergeDomains: false });
  const { errors } = await loader.load([resource('', 1), resource('one', 1)], undefined);
  expect(errors.map(formatProblem)).toEqual([expect.stringMatching(/^-config: domain: /)]);
});

test('10,000 rules come over', async () => {
  const loader = new UpdateLoader({ mergeDomains: false });
  const { errors, policySet } = await loader.load([resource('big', 7, 10_000)], undefined);
  expect(errors).toEqual([]);
  expect(policySet.domains.get('big')?.rules).toHaveLength(10_000);
});

test('closed while it loads it rejects', async () => {
  const loader = new UpdateLoader({ mergeDomains: false });
  const loading = loader.load([resource('one', 1)], undefined);
  loader.close();
  await expect(loading).rejects.toThrow(/the thread that loads policies ended|closed/);
});
