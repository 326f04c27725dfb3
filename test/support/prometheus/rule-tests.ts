import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runToEnd } from '../process/processes.js';
import type { TempDir } from '../process/temp-dir.js';
import { repositoryRoot, toolPath } from '../process/tools.js';
import { countsUp, nameOf, type Scrape } from './metrics-text.js';

/** Path of the alerts that weir ships. */
export const RULES = join(repositoryRoot, 'deploy/prometheus/rules.yaml');

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Returns the alerts of {@link RULES}. */
export function shippedAlerts(): readonly AlertRule[] {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: AlertRule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** Metrics at one time, by instance; undefined for an instance that does not answer. */
export type Snapshot = Readonly<Record<string, Scrape | undefined>>;

/** Metrics at the beginning and the end of a state. */
export type SnapshotPair = readonly [before: Snapshot, after: Snapshot];

export interface Observation {
  readonly good: SnapshotPair;
  readonly bad: SnapshotPair;
  /** True: the change between the two bad scrapes happened once, and does not continue. */
  readonly once?: boolean;
}

/** Seconds between two scrapes, and number of scrapes of each state. */
const STEP = 60;
const GOOD_STEPS = 40;
const BAD_STEPS = 45;
const GOOD_END = `${(GOOD_STEPS - 1) * STEP}s`;
const BAD_END = `${(GOOD_STEPS + BAD_STEPS - 1) * STEP}s`;
const BAD_SPAN = `${(BAD_STEPS - 1) * STEP}s`;
/** Seconds into the bad state at which the alerts are evaluated. */
const ASKED_AT = [300, 720, 1200, 2580];

/** Only series that alerts use may be the reason for a failure. */
const isWatched = (series: string): boolean => /^(?:weir_|nodejs_eventloop_lag_p99_seconds)/.test(series);

const withLabels = (series: string, instance: string): string => {
  const labels = `job="weir",namespace="limits",instance="${instance}"`;
  return series.endsWith('}') ? series.replace('{', `{${labels},`) : `${series}{${labels}}`;
};

/**
 * Returns values in the notation of promtool: `_` for no value, or a value and `more` further ones that grow by
 * `delta`.
 */
function spread(value: number | undefined, delta: number, more: number): string {
  return value === undefined ? `_x${more + 1}` : `${value}+${delta}x${more}`;
}

/** Returns the scrapes of one series: the growth between the two scrapes of a pair is repeated, step by step. */
function valuesOf(series: string, instance: string, { good, bad, once = false }: Observation): string {
  const at = ([before, after]: SnapshotPair) => [
    before[instance]?.values.get(series),
    after[instance]?.values.get(series),
  ];
  const [good1, good2] = at(good);
  const [bad1, bad2] = at(bad);
  const sample = [...good, ...bad].map((shot) => shot[instance]).find((one) => one?.values.has(series));
  if (sample === undefined || !countsUp(sample, series)) {
    const first = `${good1 ?? '_'} ${spread(good2, 0, GOOD_STEPS - 2)}`;
    const then = good2 !== undefined && bad1 === undefined ? 'stale' : `${bad1 ?? '_'}`;
    return `${first} ${then} ${spread(bad2, 0, BAD_STEPS - 2)}`;
  }
  const goodDelta = (good2 ?? 0) - (good1 ?? 0);
  const goodEnd = good2 === undefined ? undefined : (good1 ?? 0) + goodDelta * (GOOD_STEPS - 1);
  const first =
    good1 === undefined
      ? `_ ${spread(good2, goodDelta, GOOD_STEPS - 2)}`
      : spread(good1, goodDelta, GOOD_STEPS - 1);
  // Growth continues from the last value, because Prometheus treats a lower value as a restart.
  const base = goodEnd ?? bad1;
  if (bad2 === undefined) return `${first} stale ${spread(undefined, 0, BAD_STEPS - 2)}`;
  const delta = bad2 - (bad1 ?? 0);
  const from = (base ?? 0) + delta;
  return `${first} ${base ?? '_'} ${spread(from, once ? 0 : delta, BAD_STEPS - 2)}`;
}

/**
 * Returns the series of an observation in the format of a promtool test. `up` is the series that Prometheus adds for
 * each scrape.
 */
function inputSeries(observation: Observation): object[] {
  const shots = [...observation.good, ...observation.bad];
  const instances = new Set(shots.flatMap((shot) => Object.keys(shot)));
  return [...instances].flatMap((instance) => {
    const names = new Set(shots.flatMap((shot) => [...(shot[instance]?.values.keys() ?? [])]));
    const [good, , , bad] = shots.map((shot) => (shot[instance] === undefined ? 0 : 1));
    return [
      {
        series: withLabels('up', instance),
        values: `${spread(good, 0, GOOD_STEPS - 1)} ${spread(bad, 0, BAD_STEPS - 1)}`,
      },
      ...[...names].filter(isWatched).map((series) => ({
        series: withLabels(series, instance),
        values: valuesOf(series, instance, observation),
      })),
    ];
  });
}

/** Alerts that depend on the speed of the machine, so that only their own scenarios test them. */
const TIMED = ['WeirSlowAnswers', 'WeirEventLoopBlocked'];

/** Test of one observation; `fires` are the names of all alerts that the bad state must raise. */
export interface RuleTest {
  readonly name: string;
  readonly observation: Observation;
  readonly fires: readonly string[];
}

const testOf = ({ name, observation }: RuleTest, checks: object): object => ({
  name,
  interval: `${STEP}s`,
  input_series: inputSeries(observation),
  ...checks,
});

async function promtool(folder: TempDir, file: string, tests: readonly object[]) {
  // JSON is YAML.
  const text = JSON.stringify({ rule_files: [RULES], evaluation_interval: `${STEP}s`, tests }, undefined, 1);
  return runToEnd(toolPath('promtool'), ['test', 'rules', folder.write(file, text)]);
}

/** Runs `promtool test rules`: in the good state no alert fires, and in the bad state exactly `fires` do. */
export async function checkRules(
  folder: TempDir,
  test: RuleTest,
): Promise<{ code: number | null; output: string }> {
  const { name, fires } = test;
  const left = TIMED.filter((alert) => !fires.includes(alert)).join('|');
  const firing = `ALERTS{alertstate="firing",alertname!~"${left}"}`;
  const promql_expr_test = [
    {
      expr: `group by (alertname) (last_over_time(${firing}[${GOOD_END}]))`,
      eval_time: GOOD_END,
      exp_samples: [],
    },
    {
      expr: `group by (alertname) (last_over_time(${firing}[${BAD_SPAN}]))`,
      eval_time: BAD_END,
      exp_samples: [...fires].sort().map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
    },
  ];
  const { code, stdout, stderr } = await promtool(folder, `${name}.yaml`, [
    testOf(test, { promql_expr_test }),
  ]);
  return { code, output: stdout + stderr };
}

/** An alert as Prometheus sends it. */
export interface FiredAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const pairsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/(\w+)=("(?:[^"\\]|\\.)*")/g)].map(([, name = '', value = '""']) => [
      name,
      JSON.parse(value) as string,
    ]),
  );

/**
 * Returns each alert as it is sent in the first bad state that raises it. promtool shows only alerts that a test did
 * not expect, so these tests expect none, and fail.
 */
export async function sentAlerts(
  folder: TempDir,
  tests: readonly RuleTest[],
): Promise<readonly FiredAlert[]> {
  const seen = new Set<string>();
  const asked = tests.flatMap((test) => {
    const fresh = test.fires.filter((alert) => !seen.has(alert));
    for (const alert of fresh) seen.add(alert);
    if (fresh.length === 0) return [];
    return testOf(test, {
      alert_rule_test: fresh.flatMap((alertname) =>
        ASKED_AT.map((seconds) => ({
          eval_time: `${GOOD_STEPS * STEP + seconds}s`,
          alertname,
          exp_alerts: [],
        })),
      ),
    });
  });
  const { stdout, stderr } = await promtool(folder, 'sent.yaml', asked);
  return [...`${stdout}${stderr}`.matchAll(/Labels:\{(.*)\}\s+Annotations:\{(.*)\}/g)].map(
    ([, labels = '', annotations = '']) => ({ labels: pairsOf(labels), annotations: pairsOf(annotations) }),
  );
}

/** Returns the metric names in a query that begin with `weir_`, `nodejs_` or `process_`. */
export function metricsIn(query: string): readonly string[] {
  const bare = query.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  return [...new Set(bare.match(/\b(?:weir|process|nodejs)_[a-z0-9_]+/g) ?? [])].map(nameOf);
}
