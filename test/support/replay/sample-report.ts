import type {
  Affected,
  GroupReport,
  Interval,
  ReplayReport,
  RuleReport,
  Timeline,
  TotalReport,
} from '../../../src/replay/report/report.js';

/** Steps of a day, in minutes. */
const STEPS = 1440;

/** Returns the interval from `least` to `most`. */
export function interval(least: number, most = least): Interval {
  return { least, most };
}

/** Returns decisions about some requests; by default, none was denied. */
export function affected(requests: number, more: Partial<Affected> = {}): Affected {
  return {
    requests,
    deniedBefore: 0,
    deniedAfter: more.newlyDenied ?? interval(0),
    newlyDenied: interval(0),
    newlyAllowed: interval(0),
    longestDeniedSeconds: 0,
    peakPerSecond: Math.ceil(requests / 1000),
    ...more,
  };
}

/** Returns the decisions about all requests; by default, none was denied. */
export function total(requests: number, more: Partial<TotalReport> = {}): TotalReport {
  return { uncertain: 0, ...affected(requests), ...more };
}

/** Returns a group that loses `newlyDenied` requests in the steps `deniedSteps`. */
export function group(
  value: string,
  requests: number,
  newlyDenied: Interval,
  more: Partial<GroupReport> = {},
): GroupReport {
  return { value, deniedSteps: [], peakUse: 0, ...affected(requests, { newlyDenied }), ...more };
}

/** Returns the rule of a tenant's limit. */
export function rule(more: Partial<RuleReport> = {}): RuleReport {
  return {
    domain: 'shop',
    rule: 'tenant',
    limit: '100 per minute',
    wouldBeThrottled: 0,
    peakUse: 0,
    callers: 240,
    deniedCallers: 12,
    use: [],
    ...affected(90_000, { newlyDenied: interval(1654, 1672) }),
    ...more,
  };
}

/** Returns a report about a change that hits 12 of 240 tenants. */
export function sampleReport(more: Partial<ReplayReport> = {}): ReplayReport {
  const firstDenied = '2026-11-25T09:00:12Z';
  return {
    report: 1,
    log: {
      files: ['access.log'],
      format: "Envoy's default format",
      lines: 100_000,
      requests: 99_990,
      unlimited: 9990,
      first: '2026-11-25T00:00:03.120Z',
      last: '2026-11-25T23:59:58.004Z',
      unreadable: [{ reason: 'is not JSON', lines: 10, example: '{"start_time":"2026-11-25T' }],
      late: 3,
      far: 2,
    },
    before: { kind: 'policy', name: 'old.yaml' },
    after: { name: 'new.yaml' },
    total: total(90_000, {
      uncertain: 18,
      deniedBefore: 310,
      deniedAfter: interval(1750, 1768),
      newlyDenied: interval(1654, 1672),
      newlyAllowed: interval(214),
      firstDenied,
      lastDenied: '2026-11-25T20:03:59Z',
      longestDeniedSeconds: 598,
      peakPerSecond: 88,
    }),
    rules: [
      rule({
        firstDenied,
        lastDenied: '2026-11-25T20:03:59Z',
        longestDeniedSeconds: 598,
        peakUse: 3.1,
        capacity: { none: 420, thousandth: 310, hundredth: 180 },
        use: useSteps([120, 40, 20, 18, 12, 8, 5, 3, 1, 1, 7, 3, 2]),
      }),
      rule({
        rule: 'tenant/path=/export',
        limit: 'token bucket (20 tokens, 10 every 1m)',
        wouldBeThrottled: 41,
        ...affected(1200),
        callers: 31,
        deniedCallers: 0,
        capacity: { none: 12, thousandth: 11, hundredth: 9 },
        use: useSteps([20, 4, 3, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
      }),
    ],
    groups: {
      by: 'tenant',
      count: 240,
      affected: interval(12),
      shown: sampleGroups(firstDenied),
    },
    timeline: sampleTimeline(),
    gates: [],
    warnings: [],
    notes: ['Callers are assumed not to react to denials.'],
    ...more,
  };
}

/** Returns steps of the use of a limit: tenths of it, and then 150%, 200% and more. */
export function useSteps(callers: readonly number[]): RuleReport['use'] {
  const bounds = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.5, 2];
  return callers.map((count, at) => ({
    ...(bounds[at] !== undefined && { upTo: bounds[at] }),
    callers: count,
  }));
}

function sampleGroups(firstDenied: string): readonly GroupReport[] {
  const minutes = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);
  return [
    group('acme', 9000, interval(1204), {
      firstDenied,
      lastDenied: '2026-11-25T20:03:59Z',
      longestDeniedSeconds: 598,
      peakUse: 3.1,
      deniedSteps: [...minutes(540, 37), ...minutes(842, 12), ...minutes(1201, 3)],
    }),
    group('globex', 8100, interval(310, 328), {
      firstDenied: '2026-11-25T14:02:00Z',
      longestDeniedSeconds: 42,
      deniedSteps: minutes(842, 30),
    }),
    ...Array.from({ length: 10 }, (_, at) =>
      group(`tenant-${at}`, 2000 - at, interval(14), {
        firstDenied,
        deniedSteps: [600 + 40 * at, 900 + 30 * at],
      }),
    ),
    group('next', 5000, interval(0), { peakUse: 0.92 }),
    group('calm', 4000, interval(0)),
  ];
}

function sampleTimeline(): Timeline {
  const load = (at: number): number => Math.round(62 - 50 * Math.cos((at / STEPS) * 2 * Math.PI));
  const requests = Array.from({ length: STEPS }, (_, at) => load(at));
  return {
    start: '2026-11-25T00:00:00Z',
    stepSeconds: 60,
    requests,
    deniedBefore: requests.map((count, at) => (count > 105 && at % 7 === 0 ? 3 : 0)),
    deniedAfter: requests.map((count, at) => (at >= 540 && at < 577 ? 25 : count > 95 ? at % 9 : 0)),
  };
}
