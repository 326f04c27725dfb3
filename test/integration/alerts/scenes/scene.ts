import { RlsClient, type RlsReply } from '../../../support/grpc/rls-client.js';
import { descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { Observation, Snapshot, SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import type { WeirServer } from '../../../support/weir/weir.js';

/** A state of a real weir, with exactly the alerts that it raises. */
export interface Scenario {
  readonly name: string;
  readonly fires: readonly string[];
  observe(): Promise<Observation>;
}

/** Scenarios that share real processes; they are observed in order. */
export interface Scene {
  readonly name: string;
  open(): Promise<void>;
  readonly scenarios: readonly Scenario[];
}

/** The nodes of a policy with one limit that is never reached: {@link Watched.usual} uses it. */
export const CALM = `descriptors:
  - { key: calm, rate_limit: { token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
`;

/** Number of calls in about a usual minute. */
const USUAL_CALLS = 60;

/** A weir under observation, with a connection to it. */
export class Watched {
  readonly server: WeirServer;
  readonly client: RlsClient;

  constructor(server: WeirServer) {
    this.server = server;
    this.client = new RlsClient(server.grpcPort);
  }

  /** Returns what Prometheus scrapes now, for the instance `name`. */
  async shot(name = 'weir-0'): Promise<Snapshot> {
    return { [name]: await scrape(this.server) };
  }

  /** Returns what Prometheus scrapes before and after `between`. */
  async around(between: () => Promise<unknown>): Promise<SnapshotPair> {
    const before = await this.shot();
    await between();
    return [before, await this.shot()];
  }

  /**
   * Does the same as {@link around}, and waits until two more connections to Redis were refused, as in each minute
   * without Redis.
   */
  async aroundRefusals(between: () => Promise<unknown>): Promise<SnapshotPair> {
    const refusals = (shot: Snapshot) =>
      sumOf(shot['weir-0'] as Scrape, 'weir_redis_faults_total', 'reason="refused"');
    const before = await this.shot();
    await between();
    const after = await waitFor('two more attempts', async () => {
      const shot = await this.shot();
      return refusals(shot) > refusals(before) + 1 ? shot : undefined;
    });
    return [before, after];
  }

  /** Sends the same descriptor several times, one call after the other. */
  async ask(times: number, entry: string, domain = 'd'): Promise<readonly RlsReply[]> {
    const replies: RlsReply[] = [];
    for (let call = 0; call < times; call++) {
      replies.push(await this.client.ask(domain, [descriptor([entry])]));
    }
    return replies;
  }

  /** Makes calls that their limit allows. */
  usual(): Promise<unknown> {
    return this.ask(USUAL_CALLS, 'calm=x');
  }
}

/** Returns the same moments for another instance: a second replica. */
export const renamed = (pair: SnapshotPair, name: string): SnapshotPair => {
  const rename = (shot: Snapshot): Snapshot =>
    Object.fromEntries(
      Object.entries(shot).map(([instance, seen]) => [instance.replace(/^.*$/, name), seen]),
    );
  return [rename(pair[0]), rename(pair[1])];
};

/** Combines the moments of two instances. */
export const beside = (one: SnapshotPair, other: SnapshotPair): SnapshotPair => [
  { ...one[0], ...other[0] },
  { ...one[1], ...other[1] },
];

/** Returns what Prometheus scrapes from an instance that has ended. */
export const gone = (name = 'weir-0'): SnapshotPair => [{ [name]: undefined }, { [name]: undefined }];

/** Changes one series in a moment, for states that a healthy weir cannot reach. */
export function changed([before, after]: SnapshotPair, series: string, value: number): SnapshotPair {
  const { 'weir-0': seen } = after;
  if (seen?.values.has(series) !== true) throw new Error(`a real weir does not show ${series}`);
  return [before, { 'weir-0': { ...seen, values: new Map([...seen.values, [series, value]]) } }];
}
