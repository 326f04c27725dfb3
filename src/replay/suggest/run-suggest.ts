import type { RequestCalls } from '../envoy/route-table.js';
import type { LineValues } from '../log/log-format.js';
import type { LoggedBatch, ReadTotals } from '../log/logged-request.js';
import { unsortedWarning } from '../report/log-sentences.js';
import { policyText } from './policy-text.js';
import { type Demand, type SuggestOptions, suggestLimits } from './suggest.js';

/** Input of {@link runSuggest}. */
export interface SuggestInput {
  readonly batches: AsyncIterable<LoggedBatch>;
  /** Returns the calls that Envoy makes for a request. */
  readonly callsOf: (values: LineValues) => readonly RequestCalls[];
  /** The domain of the policy. Without it, the log must have one domain. */
  readonly domain: string | undefined;
  readonly options: SuggestOptions;
}

/** Why no policy can be suggested, as a sentence. */
export interface NotSuggested {
  readonly refused: string;
}

/** Returns a policy for the demand of a log. */
export async function runSuggest(input: SuggestInput): Promise<string | NotSuggested> {
  const domains = new Set<string>();
  let read: ReadTotals | undefined;
  let { domain } = input;
  async function* demands(): AsyncGenerator<readonly Demand[]> {
    for await (const { requests, totals } of input.batches) {
      read = totals;
      const batch: Demand[] = [];
      for (const { startMicros, values } of requests)
        for (const { domain: of, start } of input.callsOf(values)) {
          domains.add(of);
          domain ??= of;
          if (of !== domain) continue;
          for (const { entries, hitsAddend = 1, isNegativeHits } of start)
            batch.push({ startMicros, entries, hits: isNegativeHits ? 0 : hitsAddend });
        }
      yield batch;
    }
  }
  const suggestion = await suggestLimits(demands(), input.options);
  const incomplete = read?.incomplete.find(({ kind }) => kind !== 'gap')?.reason;
  if (incomplete !== undefined)
    return { refused: `the log does not contain all requests, so limits would be too low: ${incomplete}` };
  if (input.domain === undefined && domains.size > 1)
    return {
      refused: `the log has several domains (${[...domains].join(', ')}); choose one with --domain`,
    };
  if ('refused' in suggestion) return suggestion;
  const warnings = read === undefined ? [] : unsortedWarning(read);
  return policyText(domain ?? '', suggestion, input.options, warnings);
}
