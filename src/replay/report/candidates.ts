import { ruleText } from './names.js';
import { counted, countText } from './numbers.js';
import type { ReplayReport } from './report.js';

/** Returns sentences about each candidate. */
export function candidateSentences({ candidates = [] }: ReplayReport): readonly string[] {
  return candidates.map((candidate) => {
    const { requests, denied, newlyDenied, newlyAllowed } = candidate;
    return (
      `The candidate of ${ruleText(candidate, candidates)} would deny ${countText(denied)} of ` +
      `${counted(requests, 'request', 'requests')}. It would newly deny ${countText(newlyDenied)}, and newly allow ` +
      `${countText(newlyAllowed)}.`
    );
  });
}
