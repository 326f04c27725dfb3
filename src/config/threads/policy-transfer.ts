import {
  type CompiledPolicy,
  type PlacedNode,
  type PolicySet,
  TreeBuilder,
} from '../../policy/compiled-policy.js';
import type { DeriveStep } from '../../policy/derive/derive.js';
import { PathPattern } from '../../policy/paths/path-pattern.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import { ruleSpecOf } from '../../policy/rule.js';
import { type DomainHead, type DomainSpec, inFileOrder, type StepSpec } from '../../policy/spec.js';

/**
 * Specifications of policies (policy/spec.ts) as a sequence of items. One thread or process sends them to another in
 * batches, which builds the policies batch by batch while it decides requests. The items contain key tables, so they
 * must not be sent elsewhere.
 */
export type PolicyItem =
  /** A domain that the receiver already has and keeps, with the secret keys of all domains. */
  | { readonly kind: 'kept'; readonly domain: string; readonly secretKeys: ReadonlySet<string> }
  /** The start of a domain. The following nodes belong to it. */
  | {
      readonly kind: 'domain';
      readonly head: DomainHead;
      readonly steps: readonly StepSpec[];
      readonly plans: PlanTable | undefined;
      /** The secret keys of all domains, which determine the names of buckets. */
      readonly secretKeys: ReadonlySet<string>;
    }
  /** The next node of the tree in file order. */
  | ({ readonly kind: 'node' } & PlacedNode);

/**
 * Maximum number of items per batch. Receiving a batch and adding its items takes well below a millisecond, or a few
 * while the code is cold (bench: policy-load). Decisions can wait that long.
 */
const ITEMS_PER_BATCH = 64;

/** Yields domains that were read; `kept` marks a domain that does not change. */
export function* specItems(
  specs: ReadonlyMap<string, DomainSpec | 'kept'>,
  secretKeys: ReadonlySet<string>,
): Generator<PolicyItem> {
  for (const [domain, spec] of specs) {
    if (spec === 'kept') {
      yield { kind: 'kept', domain, secretKeys };
      continue;
    }
    const { steps, root, plans, ...head } = spec;
    yield { kind: 'domain', head, steps, plans, secretKeys };
    for (const { node, parent } of inFileOrder(root, ({ children }) => children)) {
      yield { kind: 'node', parent, fields: node.fields, rules: node.rules };
    }
  }
}

/** Yields the policies in effect. */
export function* policyItems({ domains }: PolicySet): Generator<PolicyItem> {
  for (const policy of domains.values()) yield* itemsOf(policy, policy.secretKeys);
}

function* itemsOf(
  { head, steps, root, plans }: CompiledPolicy,
  secretKeys: ReadonlySet<string>,
): Generator<PolicyItem> {
  yield { kind: 'domain', head, steps: steps.map(stepSpecOf), plans, secretKeys };
  for (const { node, parent } of inFileOrder(root, (one) => one.inFileOrder())) {
    yield { kind: 'node', parent, fields: node.fields, rules: node.rules.map(ruleSpecOf) };
  }
}

function stepSpecOf(step: DeriveStep): StepSpec {
  const { entry } = step;
  if (step.kind === 'table') return { kind: step.kind, entry, source: step.source, table: step.table };
  const rules = step.rules.map(({ conditions, value }) => ({
    conditions: conditions.map((one) => (one instanceof PathPattern ? { pattern: one.source } : one)),
    value,
  }));
  return { kind: step.kind, entry, sources: step.sources, rules };
}

/** Groups items to the batches that are sent and built at once. */
export function* inBatches(items: Iterable<PolicyItem>): Generator<readonly PolicyItem[]> {
  let batch: PolicyItem[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < ITEMS_PER_BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/**
 * Builds policies from the received batches, and yields after each, so that decisions can run in between. `inEffect`
 * has the domains that are kept. `compiles`: whether to prepare the policies for requests; see {@link Level.compile}.
 * Throws an Error if a domain to be kept is missing.
 */
export function* buildBatches(
  batches: Iterable<readonly PolicyItem[]>,
  {
    inEffect,
    compiles = false,
  }: { readonly inEffect?: PolicySet | undefined; readonly compiles?: boolean } = {},
): Generator<void, ReadonlyMap<string, CompiledPolicy>> {
  const domains = new Map<string, CompiledPolicy>();
  let builder: TreeBuilder | undefined;
  function* finish(): Generator<void, void> {
    const policy = builder?.finish();
    builder = undefined;
    if (policy === undefined) return;
    domains.set(policy.domain, policy);
    if (compiles) yield* policy.compile();
  }
  for (const batch of batches) {
    for (const item of batch) {
      if (item.kind === 'node') {
        builder?.addNode(item);
        continue;
      }
      yield* finish();
      if (item.kind === 'domain') {
        builder = new TreeBuilder(item.head, item.plans, item.secretKeys);
        yield* builder.addSteps(item.steps);
        continue;
      }
      const { domain } = item;
      const policy = inEffect?.domains.get(domain);
      if (policy === undefined)
        throw new Error(
          `the previous version of the domain ${domain} cannot be kept, because it does not exist`,
        );
      domains.set(domain, yield* withSecretKeys(policy, item.secretKeys, compiles));
    }
    yield;
  }
  yield* finish();
  return domains;
}

/**
 * Returns a policy with the secret keys of all domains, which determine the names of its buckets. Builds another policy
 * if these keys have changed, which is rare: a load names the buckets of the domains that it reads by all secret keys.
 */
export function* withSecretKeys(
  policy: CompiledPolicy,
  secretKeys: ReadonlySet<string>,
  compiles: boolean,
): Generator<void, CompiledPolicy> {
  const isSame = policy.secretKeys.size === secretKeys.size;
  if (isSame && [...secretKeys].every((key) => policy.secretKeys.has(key))) return policy;
  const built = yield* buildBatches(inBatches(itemsOf(policy, secretKeys)), { compiles });
  return built.get(policy.domain) as CompiledPolicy;
}
