/** Returns a unique map key for a rule of a domain. */
export function ruleKey(domain: string, path: string): string {
  return `${domain.length} ${domain} ${path}`;
}
