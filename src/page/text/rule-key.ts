export function ruleKey(domain: string, path: string): string {
  return `${domain.length} ${domain} ${path}`;
}
