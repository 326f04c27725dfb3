import type { Descriptor } from '../../codec/messages.js';
import type { Match } from '../../policy/policy.js';
import { Decision, NO_TAKES, type RequestContext } from '../plan.js';

const NONE: readonly never[] = [];

/**
 * Returns the decision of the next descriptor if it has a token: it meets no limits. Undefined if the descriptor has
 * none. Only domains with holds have tokens.
 */
export function settlementDecision(
  { policy, options, settlements, decisions }: RequestContext,
  descriptor: Descriptor,
): Decision | undefined {
  const ends = settlements?.ends[decisions.length];
  if (ends === undefined) return undefined;
  const { entries } = descriptor;
  const { entry } = options.answers.holdNames;
  const { phase, onStoreFailure } = policy;
  // Logs need not contain the token, which is long.
  const hidden = { key: entry, value: '[hold token]' };
  const match: Match = {
    rules: NONE,
    keys: NONE,
    tagLength: 0,
    phase,
    onStoreFailure,
    entries: entries.length === 1 ? [hidden] : entries.map((one) => (one.key === entry ? hidden : one)),
    onUnmatched: undefined,
    statNames: NONE,
  };
  return new Decision(match, NO_TAKES, false, false, ends);
}
