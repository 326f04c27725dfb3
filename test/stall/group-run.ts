import { type Measurement, StallBench } from './measure-case.js';
import { failuresOf, NOT_RECORDED, type Recorded } from './recorded.js';
import type { StallCase, StallGroup } from './stall-case.js';
import { StallServer } from './stall-server.js';
import type { Row } from './table.js';

/** Maximum number of attempts for a case. The best result counts, because a busy machine also causes delays. */
const MAX_ATTEMPTS = 3;
/** A busy machine does not cause delays above this limit, so such a case is not repeated. */
const MAX_REPEATED_DELAY_MS = 500;

export interface RunOptions {
  /** Duration of each attack. */
  readonly ms: number;
  /** Recorded costs. Without them, for example while costs are recorded, the CPU time is not checked. */
  readonly recorded: Recorded | undefined;
  /** Duration of the calibration loop on this machine, in milliseconds. */
  readonly calibration: number;
}

/** Runs the cases of a group one after the other. Restarts the server if an attack broke it. Close it after use. */
export class GroupRun {
  private readonly group: StallGroup;
  private readonly options: RunOptions;
  private bench = new StallBench();
  private server: StallServer | undefined;
  private baseline = 0;

  constructor(group: StallGroup, options: RunOptions) {
    this.group = group;
    this.options = options;
  }

  async run(one: StallCase, connections: number): Promise<Row> {
    let best: Row | undefined;
    for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
      const measured = await this.measure(one, connections);
      const failures = failuresOf(measured, this.options.recorded, this.options.calibration);
      if (best === undefined || isBetter({ measured, failures, attempts }, best))
        best = { measured, failures, attempts };
      best = { ...best, attempts };
      const isFinal = failures.every((failure) => failure === NOT_RECORDED);
      if (isFinal || measured.delayMs > MAX_REPEATED_DELAY_MS) break;
    }
    return best as Row;
  }

  async close(): Promise<void> {
    await this.server?.stop();
    await this.bench.close();
  }

  private async measure(one: StallCase, connections: number): Promise<Measurement> {
    if (this.server === undefined) {
      this.server = await StallServer.start(this.group.setup);
      this.baseline = await this.bench.baseline(this.server);
    }
    const { server, bench } = this;
    const measured = await bench.measure(server, one, connections, this.options.ms, this.baseline);
    // A busy or broken server would falsify the next measurement.
    const { alive, settled, innocent } = measured;
    if (!alive || !settled || innocent.failure !== undefined || innocent.unanswered > 0) {
      this.server = undefined;
      await server.stop();
    }
    return measured;
  }
}

function isBetter(one: Row, other: Row): boolean {
  if (one.failures.length !== other.failures.length) return one.failures.length < other.failures.length;
  return one.measured.delayMs < other.measured.delayMs;
}
