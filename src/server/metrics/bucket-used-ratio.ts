import { redactSecrets, type SecretKeyLookup } from '../../admin/top/top-answer.js';
import { seriesText } from '../../telemetry/family.js';
import { type FamilyRegistry, headOf } from '../../telemetry/family-registry.js';
import type { TopBuckets, TopRow } from '../../telemetry/top/top-buckets.js';

const NAME = 'weir_bucket_used_ratio';

/** Returns the rows with the most requested hits, allowed or denied, in descending order. */
function mostRequested(used: readonly TopRow[], denied: readonly TopRow[], most: number): readonly TopRow[] {
  const rows = new Map([...used, ...denied].map((row) => [row.key, row]));
  const requested = (row: TopRow): number => row.used + row.denied;
  return [...rows.values()].sort((one, other) => requested(other) - requested(one)).slice(0, most);
}

function usedRatios(top: TopBuckets, secretKeys: SecretKeyLookup, most: number): ReadonlyMap<string, number> {
  const used = top.rank('used', { of: 'minute' }, most);
  const denied = top.rank('denied', { of: 'minute' }, most);
  // Shortened strings may be equal.
  const ratios = new Map<string, number>();
  for (const { about } of mostRequested(used, denied, most)) {
    if (about?.usedRatio === undefined) continue;
    const { domain, rule, entries, usedRatio } = about;
    const shown = redactSecrets(entries, secretKeys(domain));
    const bucket = shown.map(({ key, value }) => `${key}=${value}`).join(' ');
    const series = seriesText(NAME, { domain, rule, bucket });
    ratios.set(series, Math.max(usedRatio, ratios.get(series) ?? 0));
  }
  return ratios;
}

/**
 * Exposes the used ratio of the `most` buckets (BUCKET_USED_RATIO_TOP) with the most requested hits, or of none if 0.
 */
export function exposeUsedRatio(
  registry: FamilyRegistry,
  top: TopBuckets | undefined,
  secretKeys: SecretKeyLookup,
  most: number,
): void {
  registry.addFamily({
    ...headOf(NAME),
    eachSample(take) {
      if (top === undefined || most === 0) return;
      for (const [series, ratio] of usedRatios(top, secretKeys, most)) take(series, ratio);
    },
  });
}
