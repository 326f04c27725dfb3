import type { DumpedPolicies, DumpedPolicyRule } from './dumped-policy.js';
import { levelsOfPath } from './rule-tree.js';
import { INVISIBLE } from './shown-text.js';

/** The entries of the example if no rule provides entries. */
const DEFAULT_ENTRIES = [{ key: 'customer', value: 'example' }];

interface ExampleEntry {
  readonly key: string;
  readonly value: string;
}

/**
 * Returns a command that sends a request to weir. The request matches the first rule in effect that the page can name
 * entries for, or only a domain without such a rule. Returns undefined without a domain.
 */
export function exampleCommand(policies: DumpedPolicies | undefined): string | undefined {
  const inEffect = (policies?.domains ?? []).flatMap(({ domain, policy }) =>
    policy ? [{ domain, policy }] : [],
  );
  let example = inEffect[0] && {
    domain: inEffect[0].domain,
    entries: DEFAULT_ENTRIES as readonly ExampleEntry[],
  };
  for (const { domain, policy } of inEffect) {
    const entries = policy.rules.map(exampleEntries).find((one) => one !== undefined);
    if (entries === undefined) continue;
    example = { domain, entries };
    break;
  }
  if (example === undefined) return undefined;
  const { domain, entries } = example;
  const question = withEscapes(JSON.stringify({ domain, descriptors: [{ entries }] })).replaceAll(
    "'",
    "'\\''",
  );
  return (
    `grpcurl -plaintext -d '${question}' \\\n` +
    "  '<host>:<GRPC_PORT, 8081 by default>' \\\n" +
    '  envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  );
}

/** Returns entries that match a rule, or undefined if the path alone does not determine entries. */
function exampleEntries(rule: DumpedPolicyRule): readonly ExampleEntry[] | undefined {
  const { path, keys, name, limit, matchers } = rule;
  if (limit.unlimited === true || (matchers ?? []).length > 0) return undefined;
  const levels = levelsOfPath(path, keys);
  if (levels.length !== keys.length) return undefined;
  const entries: ExampleEntry[] = [];
  for (const [at, key] of keys.entries()) {
    const level = levels[at] ?? '';
    const place = at === keys.length - 1 ? withoutLimit(level, name) : level;
    if (place !== key && !place.startsWith(`${key}=`)) return undefined;
    const value = place === key ? 'example' : place.slice(key.length + 1);
    if (value.includes('*')) return undefined;
    entries.push({ key, value });
  }
  return entries;
}

/** Removes the name or number of the limit, which selects one of several limits, from the last level of a path. */
function withoutLimit(level: string, name: string): string {
  const end = name === '' ? (/\[\d+\]$/.exec(level)?.[0] ?? '') : `[${name}]`;
  return level.endsWith(end) ? level.slice(0, level.length - end.length) : level;
}

/** Returns JSON with all invisible characters escaped. */
function withEscapes(json: string): string {
  return json.replaceAll(INVISIBLE, (char) =>
    Array.from(
      { length: char.length },
      (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
