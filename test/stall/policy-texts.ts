/* Generates valid policies that are large or expensive to match. Each policy file is named after its domain. */

export const INNOCENT = 'innocent';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** Returns the innocent caller's policy, whose limit it never reaches. */
export function innocentPolicy(): string {
  return `domain: ${INNOCENT}
descriptors: [{ key: caller, rate_limit: { unit: day, requests_per_unit: 4000000000 } }]
`;
}

/** Returns a policy that derives `group` from a path with `count` rules, and limits each group. */
export function pathPolicy(domain: string, count: number, pattern: (n: number) => string): string {
  const rules = numbers(count).map((n) => `      - { path: ${JSON.stringify(pattern(n))}, value: g${n} }`);
  return `domain: ${domain}
derive:
  - entry: group
    from: [path]
    rules:
${rules.join('\n')}
descriptors:
  - key: group
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
`;
}

/** Returns a policy with a node for each of these values. */
export function valuesPolicy(
  domain: string,
  values: readonly string[],
  matcher: 'value' | 'value_cidr' | 'value_regex' = 'value',
): string {
  const nodes = values.map(
    (value, n) => `  - key: v
    ${matcher}: ${JSON.stringify(value)}
    rate_limit: { name: r${n}, unit: minute, requests_per_unit: 1000000 }`,
  );
  return `domain: ${domain}\ndescriptors:\n${nodes.join('\n')}\n`;
}

/** Returns a policy that derives the tenant from the digest of an API key. */
export function keysPolicy(domain: string, count: number): string {
  const digests = numbers(count).map((n) => `        ${n.toString(16).padStart(64, '0')}: tenant${n}`);
  return `domain: ${domain}
derive:
  - entry: tenant
    from: [api_key]
    sha256:
${digests.join('\n')}
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
`;
}

/** Returns a policy with a separate limit for each value of `v`. */
export function anyValuePolicy(domain: string): string {
  return `domain: ${domain}
descriptors: [{ key: v, rate_limit: { unit: minute, requests_per_unit: 1000000 } }]
`;
}

/**
 * Returns a policy with four token buckets for each value of `v`. One request empties them for longer than an attack
 * lasts.
 */
export function emptyBucketPolicy(domain: string): string {
  const limits = numbers(4).map(
    (n) => `      - { name: limit${n}, token_bucket: { max_tokens: 1, fill_interval: ${24 + n}h } }`,
  );
  return `domain: ${domain}
descriptors:
  - key: v
    rate_limits:
${limits.join('\n')}
`;
}

/**
 * Returns a policy with `count` calendar windows, one for each value of `v`, in all time zones. `more` is added to each
 * limit, so that a reload changes it.
 */
export function calendarPolicy(domain: string, count: number, more = 0): string {
  const zones = Intl.supportedValuesOf('timeZone');
  const units = ['day', 'week', 'month', 'year'];
  const nodes = numbers(count).map((n) => {
    const [unit, zone] = [units[Math.floor(n / zones.length) % units.length], zones[n % zones.length]];
    return (
      `  - { key: v, value: value${n}, rate_limit: { unit: ${unit}, requests_per_unit: ` +
      `${1_000_000 + n + more}, calendar: ${zone} } }`
    );
  });
  return `domain: ${domain}\ndescriptors:\n${nodes.join('\n')}\n`;
}

/** Returns ten regular expressions whose automata have many states. Random strings of a and b visit all states. */
export function expensivePatterns(): string[] {
  return numbers(10).map((n) => `[ab]*a[ab]{${60 + n}}c[ab]*(a|ab|b)*d${n}`);
}

/** Returns a policy with `rules` named limits. `comment` changes the file without changing the policy. */
export function largePolicy(domain: string, rules: number, comment = ''): string {
  const nodes = numbers(rules).map(
    (n) =>
      `  - { key: v, value: v${n}, rate_limit: { name: rule${n}, unit: minute, requests_per_unit: 1000000 } }`,
  );
  return `# ${comment}\ndomain: ${domain}\ndescriptors:\n${nodes.join('\n')}\n`;
}
