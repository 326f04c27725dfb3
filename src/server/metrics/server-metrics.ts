import { redactSecrets, type SecretKeyLookup } from '../../admin/top/top-answer.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { isPlanAddress } from '../../config/read/plans/read-plans.js';
import type { GrpcServer } from '../../grpc/grpc-server.js';
import type { PlanTable } from '../../policy/plans/plan-table.js';
import type { ShouldRateLimit } from '../../service/should-rate-limit.js';
import type { WaitingRequests } from '../../service/waiting-requests.js';
import { GRPC_WAITING } from '../../telemetry/families.js';
import { byName, type FamilyRegistry, headOf, seriesText } from '../../telemetry/family-registry.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { TopBuckets, TopRow } from '../../telemetry/top/top-buckets.js';
import type { SpanLosses } from '../calls/call-trace.js';
import type { Store } from '../store/store.js';

/*
 * The metrics that the parts of a server show at each scrape. src/telemetry/families.ts describes them.
 */

const WAITERS = Object.keys(GRPC_WAITING) as (keyof typeof GRPC_WAITING)[];

/** Exposes memory and work that callers cause at this moment. All values are 0 without requests. */
export function exposeLoad(
  registry: FamilyRegistry,
  grpc: Pick<GrpcServer, 'load'>,
  waiting: Pick<WaitingRequests, 'bytes'>,
  service: Pick<ShouldRateLimit, 'largeRequests'>,
): void {
  registry.show('weir_large_requests_waiting', () => service.largeRequests.size);
  registry.show('weir_large_requests_waiting_bytes', () => service.largeRequests.bytes);
  registry.show('weir_store_waiting_bytes', () => waiting.bytes);
  // Not every transport reports its load.
  if (grpc.load() === undefined) return;
  registry.show('weir_grpc_connections', () => grpc.load()?.connections ?? 0);
  registry.show('weir_grpc_buffered_bytes', () => grpc.load()?.bufferedBytes ?? 0);
  registry.show('weir_grpc_waiting', () => {
    const load = grpc.load();
    return WAITERS.map((what) => [{ for: what }, load?.[what] ?? 0]);
  });
}

/** Exposes the number of lost lines of the decision log and of lost spans. */
export function exposeLosses(registry: FamilyRegistry, lines: () => number, spans: () => SpanLosses): void {
  registry.show('weir_decision_log_lines_dropped_total', lines);
  registry.show('weir_trace_spans_dropped_total', () => byName('reason', spans()));
}

/** Exposes the state of the store, and the results of tokens given back. */
export function exposeStore(registry: FamilyRegistry, store: Pick<Store, 'rollbackStats' | 'nodes'>): void {
  registry.show('weir_redis_give_backs_total', () => byName('result', store.rollbackStats()));
  registry.show('weir_redis_node_up', () =>
    store.nodes().map(({ redis, name, up }) => [{ redis, node: name }, Number(up)]),
  );
}

/** Counts policy loads, including the first one, in the metrics of the process that loads them. */
export function measurePolicies(metrics: Metrics, policies: LoadingPolicyProvider): void {
  metrics.registry.show('weir_domain_state', () =>
    policies.domains().map(({ domain, state }) => [{ domain, state }, 1]),
  );
  exposePlans(metrics.registry, policies);
  const failed = policies.errors().length > 0;
  // Without a policy and an error, the management server has not sent a configuration yet.
  if (failed || policies.current() !== undefined) metrics.loaded(!failed);
  policies.onReload((success) => metrics.reloaded(success));
}

/** Exposes the rows of `plans`, and the age of their sources. */
export function exposePlans(
  registry: FamilyRegistry,
  policies: Pick<LoadingPolicyProvider, 'current' | 'sources'>,
): void {
  const { sources } = policies;
  function* tables(): Generator<{ readonly domain: string; readonly plans: PlanTable }> {
    for (const [domain, { plans }] of policies.current()?.domains ?? []) {
      if (plans !== undefined) yield { domain, plans };
    }
  }
  registry.show('weir_plan_rows', function* () {
    for (const { domain, plans } of tables()) yield [{ domain }, plans.rowCount];
  });
  registry.show('weir_plan_refused_rows', function* () {
    for (const { domain, plans } of tables()) yield [{ domain }, plans.refused];
  });
  registry.show('weir_plan_source_age_seconds', function* () {
    for (const [source, seconds] of sources?.ages() ?? []) yield [{ source }, seconds];
    for (const { plans } of tables()) {
      const isMissing = plans.file !== '' && plans.rowCount === 0 && !isPlanAddress(plans.file);
      if (isMissing) yield [{ source: plans.file }, (Date.now() - plans.readAtMillis) / 1000];
    }
  });
  registry.show('weir_plan_source_failures_total', function* () {
    for (const [source, reason, count] of sources?.failures() ?? []) yield [{ source, reason }, count];
  });
}

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
