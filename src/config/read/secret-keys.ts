import type { PolicySet } from '../../policy/policy-set.js';
import { runToCompletion, turn } from '../../runtime/turns.js';
import { YoungGarbage } from '../threads/young-garbage.js';

/**
 * What any domain takes for a secret, of what each does: an API key that is sent to the wrong domain is none the less
 * one.
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
 * Makes every domain treat the secrets of all as secrets, in short steps. To be done when a set is put in force; its
 * policies may be those of the set before. Nearly nothing is left to do: a load names trees by the secrets of all
 * domains, and builds anew whichever a change concerns, but for those whose files are bad now.
 */
export function* sharedSecrets(policySet: PolicySet): Generator<void, void> {
  const all = secretKeysOfSet(policySet);
  for (const policy of policySet.domains.values()) yield* policy.setSecretKeys(all);
}

/** {@link sharedSecrets} at once, for a set that no decision is made by yet, or whose domains are all good. */
export function shareSecrets(policySet: PolicySet): void {
  runToCompletion(sharedSecrets(policySet));
}

/** Steps between which young objects are collected, four times over; see {@link YoungGarbage}. */
const STEPS_OF_A_SLICE = 4;

/** {@link sharedSecrets} with a turn of the event loop after each step, so that decisions go on beside it. */
export async function shareSecretsInTurns(policySet: PolicySet): Promise<void> {
  const garbage = new YoungGarbage();
  const steps = sharedSecrets(policySet);
  for (let count = 1; steps.next().done !== true; count++) {
    if (count % STEPS_OF_A_SLICE === 0) garbage.slice();
    await turn();
  }
}

/** A key that a new `derive` step declares secret, and domains of before whose buckets are named by it. */
export interface NewSecret {
  readonly key: string;
  readonly domains: readonly string[];
}

/** What became a secret between two sets, and where buckets begin anew for it: under digests of their values. */
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
