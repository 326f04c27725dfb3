import { el } from '../dom/element.js';
import { nameOf } from '../dom/texts.js';
import type { DumpedPolicies } from '../text/dumped-policy.js';
import type { TrafficWords } from '../text/traffic-words.js';

/** A rule of the history, or what is counted beside rules. */
export function trafficShown({ path, special }: TrafficWords): HTMLElement {
  if (path === undefined) return el('em', {}, special);
  const name = nameOf(path);
  return special === undefined
    ? name
    : el('span', {}, name, ' ', el('span', { class: 'note' }, `(${special})`));
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
