import type { PolicySet } from '../../policy/policy-set.js';
import { runToCompletion, turn } from '../../runtime/turns.js';
import { MinorCollector } from '../threads/minor-collector.js';

/**
 * Returns the union of the secret keys that each domain declares. An API key stays secret even if it is sent to the
 * wrong domain.
 */
export function allSecretKeys(own: Iterable<ReadonlySet<string>>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const keys of own) for (const key of keys) all.add(key);
  return all;
}

function secretKeysOfSet({ domains }: PolicySet): ReadonlySet<string> {
  return allSecretKeys(Array.from(domains.values(), ({ ownSecretKeys }) => ownSecretKeys));
}

/**
 * Gives every domain the secret keys of all domains, in short steps. Call it when a set takes effect, because its
 * policies may come from the previous set. Little work is left at that time: a load already names buckets by the secret
 * keys of all domains and rebuilds affected domains, except for invalid ones.
 */
export function* shareSecretsInSteps(policySet: PolicySet): Generator<void, void> {
  const all = secretKeysOfSet(policySet);
  for (const policy of policySet.domains.values()) yield* policy.setSecretKeys(all);
}

/** Runs {@link shareSecretsInSteps} at once, for a set that decides no requests yet, or whose domains are all valid. */
export function shareSecrets(policySet: PolicySet): void {
  runToCompletion(shareSecretsInSteps(policySet));
}

/** Number of steps per slice of {@link MinorCollector}. */
const STEPS_PER_SLICE = 4;

/**
 * Runs {@link shareSecretsInSteps} with a turn of the event loop after each step, so that requests are decided in
 * between.
 */
export async function shareSecretsInTurns(policySet: PolicySet): Promise<void> {
  const garbage = new MinorCollector();
  const steps = shareSecretsInSteps(policySet);
  for (let count = 1; steps.next().done !== true; count++) {
    if (count % STEPS_PER_SLICE === 0) garbage.slice();
    await turn();
  }
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
