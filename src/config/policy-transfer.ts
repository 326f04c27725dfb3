import type { PhaseSchedule, Rule, StoreFailurePolicy } from '../limiter/rule.js';
import { CompiledPolicy } from './compiled-policy.js';
import { type DeriveCondition, type DeriveStep, RuleStep, TableStep } from './derive.js';
import { PathPattern } from './path-pattern.js';
import type { DomainPolicy, PolicySet, ResponseHeaders } from './policy.js';
import { PolicyNode } from './policy-node.js';

/**
 * Parsed policies as plain data for the structured clone algorithm: how one process hands them to another without their files being
 * read again. Rules are the very objects of `rules`, which a clone keeps so. Holds key tables, so it goes nowhere else.
 */
export interface TransferredPolicies {
  readonly version: string;
  readonly policies: readonly TransferredPolicy[];
}

interface TransferredPolicy {
  readonly domain: string;
  readonly file: string;
  readonly responseHeaders: ResponseHeaders | undefined;
  readonly steps: readonly TransferredStep[];
  readonly root: TransferredNode;
  readonly rules: readonly Rule[];
}

interface TransferredNode {
  readonly key: string;
  readonly value: string;
  readonly shareThreshold: boolean;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly phase: PhaseSchedule;
  readonly onStoreFailure: StoreFailurePolicy;
  readonly rule: Rule | undefined;
  readonly children: readonly TransferredNode[];
}

type TransferredCondition = string | undefined | { readonly pattern: string };

type TransferredStep =
  | {
      readonly kind: 'table';
      readonly entry: string;
      readonly source: string;
      readonly table: ReadonlyMap<string, string>;
    }
  | {
      readonly kind: 'rules';
      readonly entry: string;
      readonly sources: readonly string[];
      readonly rules: readonly {
        readonly conditions: readonly TransferredCondition[];
        readonly value: string;
      }[];
    };

/** Takes compiled policies apart. Throws an Error for a DomainPolicy that no policy file gave. */
export function toTransfer(policySet: PolicySet): TransferredPolicies {
  return {
    version: policySet.version,
    policies: [...policySet.domains.values()].map((policy) => {
      if (!(policy instanceof CompiledPolicy))
        throw new Error(`the policy of ${policy.domain} is not compiled`);
      const { domain, file, responseHeaders, steps, root, rules } = policy;
      return {
        domain,
        file,
        responseHeaders,
        steps: steps.map(stepToTransfer),
        root: nodeToTransfer(root),
        rules,
      };
    }),
  };
}

/** Puts compiled policies together again. */
export function fromTransfer(transferred: TransferredPolicies): PolicySet {
  const domains = new Map<string, DomainPolicy>();
  for (const { domain, file, responseHeaders, steps, root, rules } of transferred.policies) {
    const policy = new CompiledPolicy({
      domain,
      file,
      responseHeaders,
      steps: steps.map(stepFromTransfer),
      root: nodeFromTransfer(root, undefined),
      rules,
    });
    domains.set(domain, policy);
  }
  return { domains, version: transferred.version };
}

function nodeToTransfer(node: PolicyNode): TransferredNode {
  const { key, value, shareThreshold, detailedMetric, valueToMetric, phase, onStoreFailure, rule } = node;
  const children = [...node.children()].map(nodeToTransfer);
  return {
    key,
    value,
    shareThreshold,
    detailedMetric,
    valueToMetric,
    phase,
    onStoreFailure,
    rule,
    children,
  };
}

function nodeFromTransfer(transferred: TransferredNode, parent: PolicyNode | undefined): PolicyNode {
  const { children, ...options } = transferred;
  const node = new PolicyNode({ ...options, parent });
  for (const child of children) node.add(nodeFromTransfer(child, node));
  return node;
}

function stepToTransfer(step: DeriveStep): TransferredStep {
  if (step.kind === 'table') {
    return { kind: 'table', entry: step.entry, source: step.source, table: step.table };
  }
  const rules = step.rules.map(({ conditions, value }) => ({
    conditions: conditions.map((condition) =>
      condition instanceof PathPattern ? { pattern: condition.source } : condition,
    ),
    value,
  }));
  return { kind: 'rules', entry: step.entry, sources: step.sources, rules };
}

function stepFromTransfer(step: TransferredStep): DeriveStep {
  if (step.kind === 'table') return new TableStep(step.entry, step.source, step.table);
  const rules = step.rules.map(({ conditions, value }) => ({
    conditions: conditions.map(conditionFromTransfer),
    value,
  }));
  return new RuleStep(step.entry, step.sources, rules);
}

function conditionFromTransfer(condition: TransferredCondition): DeriveCondition {
  if (typeof condition !== 'object') return condition;
  const pattern = PathPattern.parse(condition.pattern);
  if (typeof pattern === 'string') throw new Error(`"${condition.pattern}" was a path pattern: ${pattern}`);
  return pattern;
}
