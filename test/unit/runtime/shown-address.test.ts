/*
 * Checks that no message shows the login, query or fragment of an address, which may be secrets. The tests write an
 * address into every setting and every key of a policy, so they also find a place that is new.
 */
import { describe, expect, test } from '@jest/globals';
import { loadPolicies } from '../../../src/config/files/load-policies.js';
import type { Field, MappingName } from '../../../src/config/read/field.js';
import { POLICY_FIELDS } from '../../../src/config/read/policy-fields.js';
import { formatProblem } from '../../../src/config/yaml/config-problem.js';
import { shownAddress, withoutAddressSecrets } from '../../../src/runtime/shown-address.js';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import { VARIABLES } from '../../../src/server/settings/settings-table.js';
import { TempDir } from '../../support/process/temp-dir.js';

/** Messages cut long values, so a long login may lose the "@" that ends it. */
const LOGINS = ['user:SECRET', 'SECRET'.repeat(40)];
const ADDRESSES = ['https', 'rediss'].flatMap((scheme) =>
  LOGINS.map((login) => `${scheme}://${login}@store.test:1/plans?X-Amz-Signature=SECRET&db=1#SECRET`),
);

test.each([
  ['https://store.test/a/b?sig=s', 'https://store.test/a/b'],
  ['rediss://user:pass@[::1]:6379/0#s', 'rediss://[::1]:6379/0'],
  ['redis://us%40er@store.test', 'redis://store.test'],
  ['redis://u:p/a?s#s@store.test:1/x', 'redis://store.test:1/x'],
  ['redis://u:12/3@store.test:1/x', 'redis://store.test:1/x'],
  ['https://store.test:1/x?mail=a@b', 'https://store.test:1/x'],
  ['unix:///run/redis.sock?db=1', 'unix:///run/redis.sock'],
  ['user:pass@store.test:1?token=s', 'store.test:1'],
  ['dns:///store.test:1', 'dns:///store.test:1'],
  ['dns:https://u:p@store.test:1/x?sig=s', 'dns:https://store.test:1/x'],
  ['dns:u:p@store.test:1?sig=s', 'dns:store.test:1'],
  ['store.test:1', 'store.test:1'],
  ['[::1]:1', '[::1]:1'],
  ['', ''],
])('%s is shown as %s', (address, shown) => {
  expect(shownAddress(address)).toBe(shown);
  if (/:\/|^dns:/.test(address)) {
    expect(withoutAddressSecrets(`"${address}" and ${address} fail?`)).toBe(`"${shown}" and ${shown} fail?`);
  }
});

test.each(VARIABLES.map(({ name }) => name))(
  'no message about %s shows the secrets of an address',
  (name) => {
    for (const text of [...ADDRESSES, ADDRESSES.join()]) {
      const read = readSettings({
        [name]: text,
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        ...(name === 'CONFIG_TYPE' && { [name]: text }),
      });
      expect((read.ok ? read.notes : read.errors).join('\n')).not.toContain('SECRET');
    }
  },
);

describe('no message about a policy shows the secrets of an address', () => {
  /** Returns documents that have the address at each key of a mapping and of those below it. */
  function* documents(
    mapping: MappingName,
    above: readonly MappingName[],
    within: (value: object) => object,
  ): Generator<readonly [path: string, document: (value: unknown) => object]> {
    for (const [key, field] of Object.entries<Field>(POLICY_FIELDS[mapping])) {
      const child = 'of' in field ? field.of : undefined;
      yield [`${mapping}.${key}`, (value) => within({ [key]: value })];
      if (child === undefined || above.includes(child)) continue;
      yield* documents(child, [...above, child], (value) =>
        within({ [key]: field.kind === 'list' ? [value] : value }),
      );
    }
  }
  const file = (value: object): object => ({ domain: 'd', descriptors: [], ...value });

  test.each([...documents('file', ['file'], file)])('%s', (_path, document) => {
    const folder = new TempDir();
    for (const text of ADDRESSES) {
      for (const value of [text, [text], { [text]: text }, [{ key: text, value: text }]]) {
        const path = folder.write('policy.yaml', JSON.stringify(document(value)));
        const { errors, warnings } = loadPolicies([path]);
        const shown = [...errors, ...warnings].flatMap((one) => [JSON.stringify(one), formatProblem(one)]);
        expect(shown.join('\n')).not.toContain('SECRET');
      }
    }
  });

  test('a file that is an address', () => {
    const { errors } = loadPolicies([...ADDRESSES]);
    expect(errors.map(formatProblem).join('\n')).toContain('https://store.test:1/plans');
    expect(JSON.stringify(errors) + errors.map(formatProblem).join()).not.toContain('SECRET');
  });
});
