import type { PolicySet } from '../../policy/compiled-policy.js';

/**
 * Returns the union of the secret keys that each domain declares. An API key stays secret even if it is sent to the
 * wrong domain.
 */
export function allSecretKeys(own: Iterable<ReadonlySet<string>>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const keys of own) for (const key of keys) all.add(key);
  return all;
}

/** Returns the secret keys that the domains of a set declare. */
export function secretKeysOfSet({ domains }: Pick<PolicySet, 'domains'>): ReadonlySet<string> {
  return allSecretKeys(Array.from(domains.values(), ({ ownSecretKeys }) => ownSecretKeys));
}

/** A key that a new `derive` step makes secret, and the existing domains whose bucket names contain its values. */
export interface NewSecret {
  readonly key: string;
  readonly domains: readonly string[];
}

/**
 * Returns the keys that become secret between two sets. Buckets with such a key start over, because their names now
 * contain digests.
 */
export function newSecrets(before: PolicySet, after: PolicySet): readonly NewSecret[] {
  const known = secretKeysOfSet(before);
  const added = [...secretKeysOfSet(after)].filter((key) => !known.has(key));
  if (added.length === 0) return [];
  const policies = [...after.domains.values()].filter(({ domain }) => before.domains.has(domain));
  return added.flatMap((key) => {
    const named = policies.filter(({ ownSecretKeys, keys }) => keys.has(key) && !ownSecretKeys.has(key));
    return named.length === 0 ? [] : [{ key, domains: named.map(({ domain }) => domain) }];
  });
}
