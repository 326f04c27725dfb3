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

const EXAMPLE_KEYS = ['customer'];

/** A command that asks weir, made for the first rule in force, or domain without rules; none where there is none. */
export function triedCommand(policies: DumpedPolicies | undefined): string | undefined {
  const inForce = policies?.domains.filter(({ policy }) => policy !== undefined) ?? [];
  const first = inForce.find(({ policy }) => (policy?.rules.length ?? 0) > 0) ?? inForce[0];
  if (first === undefined) return undefined;
  const { domain } = first;
  const rule = first.policy?.rules[0];
  const keys = rule?.keys ?? EXAMPLE_KEYS;
  const labels = rule?.path.split('/') ?? [];
  const entries = keys.map((key, at) => {
    const [named, value] = (labels[at] ?? '').split('=', 2);
    return { key, value: named === key && value !== undefined && !value.includes('*') ? value : 'example' };
  });
  const question = JSON.stringify({ domain, descriptors: [{ entries }] }).replaceAll("'", "'\\''");
  return (
    `grpcurl -plaintext -d '${question}' \\\n` +
    "  '<host>:<GRPC_PORT, 8081 by default>' \\\n" +
    '  envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  );
}
