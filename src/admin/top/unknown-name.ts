import type { PolicySet } from '../../policy/policy-set.js';
import { OVERRIDE_LABEL } from '../../service/plan.js';
import { unknownDomain } from '../buckets/known-domains.js';
import { quotedText } from '../buckets/read-question.js';
import { BLOCK_LABEL } from './top-counts.js';
import type { CheckedTopQuestion } from './top-question.js';

/** Rules that are looked at between two pauses. */
const STRETCH = 1000;
/** Labels of buckets that no rule of a policy has. */
const OTHER_LABELS: readonly string[] = [BLOCK_LABEL, OVERRIDE_LABEL];
/** What a server knows that started without a policy. */
const NO_DOMAINS: PolicySet['domains'] = new Map();

/**
 * Says which name of a question no policy in force has, a domain or a rule: an answer without rows would read as if
 * nobody had been denied. Undefined where all names are known.
 */
export function* unknownName(
  { domain, rule }: Pick<CheckedTopQuestion, 'domain' | 'rule'>,
  policies: PolicySet | undefined,
): Generator<'', string | undefined> {
  const domains = policies?.domains ?? NO_DOMAINS;
  const policy = domain === undefined ? undefined : domains.get(domain);
  if (domain !== undefined && policy === undefined) return unknownDomain(domains, domain);
  if (rule === undefined || OTHER_LABELS.includes(rule)) return undefined;
  let seen = 0;
  for (const { rules } of policy === undefined ? domains.values() : [policy]) {
    for (const { path } of rules) {
      if (path === rule) return undefined;
      if (++seen % STRETCH === 0) yield '';
    }
  }
  const where = domain === undefined ? '' : ` of the domain ${quotedText(domain)}`;
  return `no policy in force has the rule ${quotedText(rule)}${where}; weir explain shows the place of each rule`;
}
