import { CompiledPolicy, secretKeysOf } from './compiled-policy.js';
import type { DomainPolicy, PolicySet } from './policy.js';
import type { PolicyNode } from './policy-node.js';

/** What any domain takes for a secret: an API key that is sent to the wrong domain is none the less one. */
export function allSecretKeys(policies: Iterable<DomainPolicy>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const policy of policies) for (const key of ownSecretKeys(policy)) all.add(key);
  return all;
}

/** Makes every domain treat the secrets of all as secrets. To be called when a set is put in force; its policies may be those of the set before. */
export function shareSecrets({ domains }: PolicySet): void {
  const all = allSecretKeys(domains.values());
  for (const policy of domains.values()) if (policy instanceof CompiledPolicy) policy.takeSecrets(all);
}

/** A key that a new `derive` step declares secret, and domains of before whose buckets are named by it. */
export interface NewSecret {
  readonly key: string;
  readonly domains: readonly string[];
}

/** What became a secret between two sets, and where buckets begin anew for it: under digests of their values. */
export function newSecrets(before: PolicySet, after: PolicySet): readonly NewSecret[] {
  const known = allSecretKeys(before.domains.values());
  const added = [...allSecretKeys(after.domains.values())].filter((key) => !known.has(key));
  if (added.length === 0) return [];
  const domains = [...after.domains].flatMap(([domain, policy]) =>
    before.domains.has(domain) && policy instanceof CompiledPolicy
      ? [{ domain, own: ownSecretKeys(policy), keys: keysBelow(policy.root) }]
      : [],
  );
  return added.flatMap((key) => {
    const named = domains.filter(({ own, keys }) => keys.has(key) && !own.has(key));
    return named.length === 0 ? [] : [{ key, domains: named.map(({ domain }) => domain) }];
  });
}

function ownSecretKeys(policy: DomainPolicy): ReadonlySet<string> {
  return policy instanceof CompiledPolicy ? secretKeysOf(policy.steps) : policy.secretKeys;
}

/** The keys that a tree matches. */
function keysBelow(root: PolicyNode): ReadonlySet<string> {
  const keys = new Set<string>();
  const visit = (node: PolicyNode): void => {
    for (const key of node.levels.keys()) keys.add(key);
    for (const child of node.children()) visit(child);
  };
  visit(root);
  return keys;
}
