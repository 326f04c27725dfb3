/** Names in the history that are not rules of a policy. A Map, because a rule may be named `constructor`. */
const SPECIAL: ReadonlyMap<string, string> = new Map([
  ['override', 'overrides (limits in requests)'],
  ['other', 'rules without recorded rates (HISTORY_RULES)'],
]);

/** The name of a series of the history, or of the rule of a bucket. */
export interface TrafficLabel {
  /** The path of a rule, which comes from outside. */
  readonly path?: string;
  /** The counted requests in weir's own words. */
  readonly special?: string;
}

/**
 * Returns the words for the requests that are counted under `rule`. They can belong to a rule, to something else, or to
 * both if a rule has the name of something else.
 *
 * @param isRule returns whether a policy in effect has a rule with this path; called only if needed
 */
export function trafficLabel(rule: string, isRule: () => boolean): TrafficLabel {
  const special = SPECIAL.get(rule);
  if (special === undefined) return { path: rule };
  return isRule() ? { path: rule, special: `also counts ${special}` } : { special };
}
