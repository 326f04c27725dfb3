import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { inEffectOf, loadPolicies, readPolicies } from '../../../../src/config/files/load-policies.js';
import { dump } from '../../../../src/config/show/dump.js';
import { explain } from '../../../../src/config/show/explain.js';
import { renderExplanation } from '../../../../src/config/show/explain-text.js';
import { ThreadPolicyLoader } from '../../../../src/config/threads/load-thread.js';
import { buildBatches, inBatches, specItems } from '../../../../src/config/threads/policy-transfer.js';
import { newSecrets, type PolicySet } from '../../../../src/policy/compiled-policy.js';
import { entriesKey } from '../../../../src/policy/names/bucket-key.js';
import { entries } from '../../../support/policy/policies.js';
import { TempDir } from '../../../support/process/temp-dir.js';

/** An entry that `derive` of one domain declares an API key is secret in all domains. */

const SECRET = 's3cret-of-a-partner';
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
const LIMIT = 'rate_limit: { token_bucket: { max_tokens: 5, fill_interval: 1h } }';
const DERIVING = `domain: deriving
derive: [{ entry: who, from: [token], sha256: { ${hex(SECRET)}: acme } }]
descriptors: [{ key: who, ${LIMIT} }]
`;
const OTHER = `domain: other
descriptors:
  - { key: token, detailed_metric: true, ${LIMIT}, descriptors: [{ key: path, ${LIMIT} }] }
  - { key: token, value: ${SECRET}, ${LIMIT}, descriptors: [{ key: path, rate_limits: [{ name: a, unit: minute, requests_per_unit: 5 }] }] }
  - { key: plain, ${LIMIT} }
`;
const OWN = 'another-token';

let dir: TempDir;
beforeEach(() => {
  dir = new TempDir();
  dir.write('other.yaml', OTHER);
});

function keysOf(policySet: PolicySet, domain: string, ...texts: string[]): readonly string[] {
  return policySet.domains.get(domain)?.match(entries(...texts)).keys ?? [];
}

const digested = (value: string): string => `5:other5:token#${hex(value)}`;

describe('an entry key that another domain uses for API keys', () => {
  test('is a digest in names of buckets, and redacted in statistics', () => {
    dir.write('deriving.yaml', DERIVING);
    const { policySet } = loadPolicies([dir.path]);
    expect(keysOf(policySet, 'other', `token=${OWN}`)).toEqual([digested(OWN)]);
    expect(keysOf(policySet, 'other', `token=${OWN}`, 'path=/')).toEqual([`${digested(OWN)}4:path1:/`]);
    expect(keysOf(policySet, 'other', `token=${SECRET}`, 'path=/')).toEqual([
      `${digested(SECRET)}4:path1:/~1:a%60`,
    ]);
    expect(keysOf(policySet, 'other', 'plain=x')).toEqual(['5:other5:plain1:x']);
    const policy = policySet.domains.get('other')!;
    expect(policy.match(entries(`token=${OWN}`)).statNames.join()).toMatch(
      /^other\.token_\[redacted sha256:[0-9a-f]{8}\]$/,
    );
    expect(entriesKey('other', entries(`token=${OWN}`), policy.secretKeys).key).toBe(digested(OWN));
  });

  test.each([
    [
      'of the same domain',
      DERIVING.replace(
        'descriptors: [',
        'descriptors: [{ key: token, value: TWICE }, { key: token, value: TWICE }, ',
      ),
      undefined,
    ],
    [
      'of a valid domain',
      DERIVING,
      'domain: bad\ndescriptors: [{ key: token, value: TWICE }, { key: token, value: TWICE }]\n',
    ],
    [
      'of an invalid domain',
      `${DERIVING}bogus: 1\n`,
      'domain: bad\ndescriptors: [{ key: token, value: TWICE }, { key: token, value: TWICE }]\n',
    ],
  ])('is redacted in messages about an invalid policy: %s', (_name, deriving, bad) => {
    dir.write('deriving.yaml', deriving.replaceAll('TWICE', SECRET));
    // This file is read before the one that declares the secret.
    if (bad !== undefined) dir.write('bad.yaml', bad.replaceAll('TWICE', SECRET));
    const messages = loadPolicies([dir.path]).errors.map(({ message }) => message);
    expect(messages).toContainEqual(
      expect.stringMatching(/^"token=\[redacted sha256:[0-9a-f]{8}\]" is defined twice/),
    );
    expect(messages.join('\n')).not.toContain(SECRET);
  });

  test('is redacted in messages about an invalid policy while the file that declares the secret cannot be read', () => {
    dir.write('deriving.yaml', DERIVING);
    const before = loadPolicies([dir.path]);
    dir.write('deriving.yaml', 'domain: [');
    dir.write('other.yaml', `${OTHER}  - { key: token, value: ${SECRET}, ${LIMIT} }\n`);
    const messages = loadPolicies([dir.path], {}, before).errors.map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringMatching(/is defined twice/));
    expect(messages.join('\n')).not.toContain(SECRET);
  });

  test('is redacted in views of the policy', () => {
    dir.write('deriving.yaml', DERIVING);
    const { policySet } = loadPolicies([dir.path]);
    const policy = policySet.domains.get('other')!;
    const shown = [
      dump(policySet),
      ...policy.rules.flatMap(({ path, statName }) => [path, statName]),
      renderExplanation(explain(policySet, 'other', entries(`token=${SECRET}`, 'path=/')), 0),
    ].join('\n');
    expect(shown).not.toContain(SECRET);
    expect(shown).toContain('[redacted sha256:');
    expect(policy.rules.map(({ path }) => path)).toContain('plain');
    for (const text of ['plain=x', `token=${SECRET}`]) {
      expect(policy.rules).toContain(policy.match(entries(text)).rules[0]);
    }
  });

  test('is no longer secret when no domain uses it for API keys', () => {
    dir.write('deriving.yaml', DERIVING);
    const before = loadPolicies([dir.path]);
    rmSync(dir.join('deriving.yaml'));
    dir.write('other.yaml', 'domain: other\ndescriptors: [{ key: [bad }]');
    const { policySet: alone } = loadPolicies([dir.path], {}, before);
    expect(keysOf(alone, 'other', `token=${OWN}`)).toEqual([`5:other5:token${OWN.length}:${OWN}`]);
    const { rules } = alone.domains.get('other')!;
    expect(rules.map(({ path }) => path)).toContain(`token=${SECRET}/path[a]`);
  });
});

describe('a reload that makes a key a secret', () => {
  test('gives other names to a domain with an unchanged file, and keeps the domain in effect', () => {
    const before = loadPolicies([dir.path]);
    const raw = `5:other5:token${OWN.length}:${OWN}`;
    expect(keysOf(before.policySet, 'other', `token=${OWN}`)).toEqual([raw]);
    dir.write('deriving.yaml', DERIVING);
    const after = loadPolicies([dir.path], {}, before);
    expect(keysOf(after.policySet, 'other', `token=${OWN}`)).toEqual([digested(OWN)]);
    expect(after.policySet.version).not.toBe(before.policySet.version);
    expect(newSecrets(before.policySet, after.policySet)).toEqual([{ key: 'token', domains: ['other'] }]);
    expect(newSecrets(after.policySet, after.policySet)).toEqual([]);
    // The set may be rejected, and running calls keep their bucket names.
    expect(keysOf(before.policySet, 'other', `token=${OWN}`)).toEqual([raw]);
    // The domain does not change any more.
    dir.write('deriving.yaml', `${DERIVING}# another comment`);
    const last = loadPolicies([dir.path], {}, after);
    expect(last.policySet.domains.get('other')).toBe(after.policySet.domains.get('other'));
    rmSync(dir.join('deriving.yaml'));
    const gone = loadPolicies([dir.path], {}, last);
    expect(keysOf(gone.policySet, 'other', `token=${OWN}`)).toEqual([raw]);
  });

  test('reaches a large domain with a file that is now invalid, in short steps', () => {
    const COUNT = 1000;
    const values = Array.from({ length: COUNT }, (_, n) => `v${n}`);
    const large = values.map((value) => `  - { key: token, value: ${value}, ${LIMIT} }`);
    const rest = `  - { key: token, ${LIMIT} }\n`;
    dir.write('other.yaml', `domain: other\ndescriptors:\n${large.join('\n')}\n${rest}`);
    const before = loadPolicies([dir.path]);
    dir.write('deriving.yaml', DERIVING);
    dir.write('other.yaml', 'domain: other\ndescriptors: [{ key: [bad }]');
    const { specs, secretKeys } = readPolicies([dir.path], {}, inEffectOf(before));
    const items = inBatches(specItems(specs, secretKeys));
    const steps = buildBatches(items, { inEffect: before.policySet });
    let count = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) count++;
    // A batch has 64 nodes.
    expect(count).toBeGreaterThan(COUNT / 64);
    const renamed = { domains: step.value, version: '' };
    expect(keysOf(renamed, 'other', `token=${OWN}`)).toEqual([digested(OWN)]);
    const redacted = ({ domains }: PolicySet): number =>
      domains.get('other')!.rules.filter(({ path }) => path.includes('[redacted')).length;
    expect([before.policySet, renamed].map(redacted)).toEqual([0, COUNT]);
  });

  test('reaches a domain with a file that is now invalid, and the set before stays as it was', () => {
    const before = loadPolicies([dir.path]);
    dir.write('deriving.yaml', DERIVING);
    dir.write('other.yaml', OTHER.replace('key: plain', 'key: [plain'));
    const after = loadPolicies([dir.path], {}, before);
    expect(keysOf(before.policySet, 'other', `token=${OWN}`)).toEqual([`5:other5:token${OWN.length}:${OWN}`]);
    expect(keysOf(after.policySet, 'other', `token=${OWN}`)).toEqual([digested(OWN)]);
  });

  test('is reported by the thread that loads, with the secrets of unchanged domains', async () => {
    dir.write('deriving.yaml', DERIVING);
    const loader = new ThreadPolicyLoader([dir.path]);
    const before = await loader.load();
    expect(keysOf(before.policySet, 'other', `token=${SECRET}`, 'path=/')).toEqual([
      `${digested(SECRET)}4:path1:/~1:a%60`,
    ]);
    const other = before.policySet.domains.get('other')!;
    expect([...other.secretKeys]).toEqual(['token']);
    expect(other.rules.map(({ path }) => path).join()).not.toContain(SECRET);
    // The file that declares the secret is invalid now. Its domain keeps the previous version, and the secret stays.
    dir.write('deriving.yaml', DERIVING.replace('derive: [', 'derive: ['.repeat(2)));
    dir.write('other.yaml', `${OTHER}  - { key: more, ${LIMIT} }\n`);
    const after = await loader.load(before);
    expect(after.errors).not.toEqual([]);
    expect(keysOf(after.policySet, 'other', `token=${OWN}`)).toEqual([digested(OWN)]);
    expect(keysOf(after.policySet, 'other', 'more=x')).toHaveLength(1);
    expect(after.policySet.domains.get('deriving')).toBe(before.policySet.domains.get('deriving'));
  });

  test('is not reported for domains that are new, or have no such buckets', () => {
    dir.write('other.yaml', `domain: other\ndescriptors: [{ key: plain, ${LIMIT} }]\n`);
    const before = loadPolicies([dir.path]);
    dir.write('deriving.yaml', DERIVING);
    dir.write('third.yaml', OTHER.replace('other', 'third'));
    expect(newSecrets(before.policySet, loadPolicies([dir.path]).policySet)).toEqual([]);
  });
});

test('a value under a key that the domain itself uses for API keys is redacted in the names of its rules', () => {
  const descriptors = `descriptors: [{ key: token, value: ${SECRET}, ${LIMIT} }, `;
  dir.write('deriving.yaml', DERIVING.replace('descriptors: [', descriptors));
  const { rules } = loadPolicies([dir.path]).policySet.domains.get('deriving')!;
  expect(rules[0]?.path).toMatch(/^token=\[redacted sha256:.{8}\]$/);
  expect(JSON.stringify(rules)).not.toContain(SECRET);
});
