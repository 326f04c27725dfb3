import { quantity } from '../../quantity.js';
import { shownName, shownPath } from './names.js';
import { countText } from './numbers.js';
import type { ReplayReport } from './report.js';

/** Returns a sentence about each candidate. */
export function candidateSentences({ candidates = [] }: ReplayReport): readonly string[] {
  const several = candidates.some(({ domain }) => domain !== candidates[0]?.domain);
  return candidates.map(({ domain, rule, requests, denied, newlyDenied, newlyAllowed }) => {
    const place = several ? `${shownName(domain)}: ${shownPath(rule)}` : shownPath(rule);
    return (
      `The candidate of ${place} would deny ${countText(denied)} of ${counted(requests)}. It would newly deny ` +
      `${countText(newlyDenied)}, and newly allow ${countText(newlyAllowed)}.`
    );
  });
}

function counted(requests: number): string {
  return requests === 1 ? quantity(1, 'request') : `${countText(requests)} requests`;
}
