/** What is counted beside the rules of a policy. A Map: rules are named by others, as `constructor` for instance. */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ['override', 'limits that requests bring themselves'],
  ['block', 'callers that an operator has blocked'],
  ['allow', 'callers that an operator has exempted'],
  ['other', 'rules beyond HISTORY_RULES'],
]);

/** How a series of the history, or the rule of a bucket, is named. */
export interface TrafficWords {
  /** The path of a rule, which others chose. */
  readonly path?: string;
  /** What is counted, in weir's own words. */
  readonly special?: string;
}

/**
 * What is counted under the name `rule`: a rule, something beside rules, or both, where a rule has such a name.
 *
 * @param isRule whether the policy in force has a rule of this very path; asked only where it matters
 */
export function trafficWords(rule: string, isRule: () => boolean): TrafficWords {
  const special = SPECIAL.get(rule);
  if (special === undefined) return { path: rule };
  return isRule() ? { path: rule, special: `also counts ${special}` } : { special };
}
