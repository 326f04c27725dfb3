/*
 * Matching the entries of a descriptor to a rule, with the name of its bucket. To run it: `node
 * build/test/bench/micro/match.bench.js [part of a name …]`.
 */
import { entries, policyOf } from '../../support/policy/policies.js';
import { policyText } from '../load/policy.js';
import { type MicroCase, runCases } from './measure.js';

function matching(rules: number): MicroCase {
  return () => {
    const policy = policyOf(policyText(rules, 'fast refill'));
    // Use as many requests as rules, so that V8 does not optimize for a few objects and strings.
    const requests = Array.from({ length: rules }, (_, i) =>
      entries(`tenant=tenant-${1_000_000 + i}`, `resource_group=group-${(i * 7 + 3) % rules}`),
    );
    return (call) => policy.match(requests[call % rules] as (typeof requests)[number]);
  };
}

const patterns: MicroCase = () => {
  const values = Array.from(
    { length: 20 },
    (_, i) => `      - { key: path, value: "/v${i}/*", rate_limit: { unlimited: true } }`,
  );
  const policy = policyOf(
    `domain: d\ndescriptors:\n  - key: tenant\n    descriptors:\n${values.join('\n')}\n`,
  );
  const request = entries('tenant=acme', 'path=/v19/user-chats');
  return () => policy.match(request);
};

runCases(__filename, {
  '10 rules': matching(10),
  '10,000 rules': matching(10_000),
  'the last of 20 patterns': patterns,
});
