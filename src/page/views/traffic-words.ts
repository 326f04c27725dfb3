import { el } from '../dom/element.js';
import { nameOf } from '../dom/texts.js';
import type { DumpedPolicies } from '../text/dumped-policy.js';

/** What is counted beside the rules of a policy. */
const SPECIAL: Readonly<Record<string, string>> = {
  override: 'limits that requests bring themselves',
  block: 'callers that an operator has blocked',
  allow: 'callers that an operator has exempted',
  other: 'rules beyond HISTORY_RULES',
};

/** A rule of the history, or what is counted beside rules. */
export function trafficOf(rule: string): HTMLElement {
  const special = SPECIAL[rule];
  return special === undefined ? nameOf(rule) : el('em', {}, special);
}

const EXAMPLE = { domain: 'shop', keys: ['customer'] };

/** A command that asks weir, made for the first rule in force. */
export function triedCommand(policies: DumpedPolicies | undefined): string {
  const first = policies?.domains.find(({ policy }) => (policy?.rules.length ?? 0) > 0);
  const rule = first?.policy?.rules[0];
  const domain = first?.domain ?? EXAMPLE.domain;
  const keys = rule?.keys ?? EXAMPLE.keys;
  const labels = rule?.path.split('/') ?? [];
  const entries = keys.map((key, at) => {
    const [named, value] = (labels[at] ?? '').split('=', 2);
    return { key, value: named === key && value !== undefined && !value.includes('*') ? value : 'example' };
  });
  const question = JSON.stringify({ domain, descriptors: [{ entries }] }).replaceAll("'", "'\\''");
  return (
    `grpcurl -plaintext -d '${question}' \\\n` +
    '  127.0.0.1:8081 envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  );
}
