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

/** Returns a policy with two limits for each value of `two`, and three for each value of `three`. */
export function severalLimitsPolicy(domain: string): string {
  const node = (key: string, count: number): string => {
    const limits = numbers(count).map(
      (n) => `      - { name: ${key}${n}, unit: minute, requests_per_unit: ${1_000_000 + n} }`,
    );
    return `  - key: ${key}\n    rate_limits:\n${limits.join('\n')}`;
  };
  return `domain: ${domain}\ndescriptors:\n${node('two', 2)}\n${node('three', 3)}\n`;
}

/** Returns a policy that limits the concurrent requests for each value of `v`. */
export function holdPolicy(domain: string): string {
  return `domain: ${domain}
descriptors: [{ key: v, rate_limit: { concurrency: { max: 1000000 } } }]
`;
}

/** Returns a policy with a bucket of `tokens` tokens, which refills too slowly for a test, and with other limits. */
export function burstPolicy(domain: string, tokens: number): string {
  return `domain: ${domain}
on_store_failure: deny
descriptors:
  - { key: shared, rate_limit: { token_bucket: { max_tokens: ${tokens}, fill_interval: 1h } } }
  - { key: v, rate_limit: { unit: minute, requests_per_unit: 1000000 } }
`;
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
