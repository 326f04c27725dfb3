/*
 * Policies that are legal, and as large or as costly as a policy may well be. Each is a file of its own with the domain
 * in its name.
 */

export const INNOCENT = 'innocent';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** What the innocent caller asks about: a limit that it never reaches. */
export function innocentPolicy(): string {
  return `domain: ${INNOCENT}
descriptors: [{ key: caller, rate_limit: { unit: day, requests_per_unit: 4000000000 } }]
`;
}

/** Rules of `derive` that make `group` of a path, and a limit for each group. */
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

/** A level whose nodes have these values, one each. */
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

/** Keys that are looked up by their digest. */
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

/** Any value of `v` has a limit of its own. */
export function anyValuePolicy(domain: string): string {
  return `domain: ${domain}
descriptors: [{ key: v, rate_limit: { unit: minute, requests_per_unit: 1000000 } }]
`;
}

/** Any value of `v` has four token buckets that a single request uses up, for longer than an attack lasts. */
export function usedUpPolicy(domain: string): string {
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
 * `count` windows of calendars, in all zones that there are, one for each value of `v`. `more` makes the limits differ.
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

/** Ten expressions whose automata have many states, with values that visit them all (a and b at random). */
export function costlyPatterns(): string[] {
  return numbers(10).map((n) => `[ab]*a[ab]{${60 + n}}c[ab]*(a|ab|b)*d${n}`);
}

/** `rules` limits with names of their own. `comment` makes the file differ. */
export function largePolicy(domain: string, rules: number, comment = ''): string {
  const nodes = numbers(rules).map(
    (n) =>
      `  - { key: v, value: v${n}, rate_limit: { name: rule${n}, unit: minute, requests_per_unit: 1000000 } }`,
  );
  return `# ${comment}\ndomain: ${domain}\ndescriptors:\n${nodes.join('\n')}\n`;
}
