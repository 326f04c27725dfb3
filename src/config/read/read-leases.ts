import { type LeaseSpec, leasedRate, leaseRefusal, TOO_LITTLE_LEFT } from '../../policy/leases.js';
import type { RuleSpec } from '../../policy/rule.js';
import type { FieldReader } from './field-reader.js';
import { readMapping } from './field-values.js';

/** Reads `lease` of a limit or a file. Returns undefined if there are errors, all of which are reported. */
export function readLease(lease: FieldReader): LeaseSpec | undefined {
  const { for: forMicros, max, exact } = readMapping(lease, 'lease');
  return forMicros === undefined ? undefined : { forMicros, max, exact };
}

/**
 * Returns the limits of a descriptor with the rates that their leases need. If a limit cannot lease, reports its own
 * `lease`, and ignores one of the file or of the environment. `items` read the limits.
 */
export function withLeases(items: readonly FieldReader[], rules: readonly RuleSpec[]): readonly RuleSpec[] {
  // Otherwise, some limits have errors.
  if (rules.length !== items.length) return rules;
  return rules.map((rule, i) => {
    const { rate } = rule;
    // The last limit of a chain pays only for requests that the others do not allow.
    const isTarget = i > 0 && rules[i - 1]?.nextLimit !== '';
    if (rate === undefined || rule.lease === undefined) return { ...rule, lease: undefined };
    const refusal = isTarget ? 'it pays for requests over another limit' : leaseRefusal(rule);
    const item = items[i] as FieldReader;
    if (refusal !== undefined && item.field('lease') !== undefined) {
      const remedy =
        refusal === TOO_LITTLE_LEFT
          ? 'lower "for", raise the capacity of the bucket, or write exact: false'
          : 'remove "lease"';
      item.error('lease', `the limit cannot lease tokens, because ${refusal}; ${remedy}`);
    }
    if (isTarget) return { ...rule, lease: undefined };
    return { ...rule, rate: leasedRate({ ...rule, rate }) };
  });
}
