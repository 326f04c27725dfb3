import { type Measurement, StallBench } from './measure-case.js';
import { faultsOf, NOT_RECORDED, type Recorded } from './recorded.js';
import type { StallCase, StallGroup } from './stall-case.js';
import { StallServer } from './stall-server.js';
import type { Row } from './table.js';

/**
 * What a machine with too few cores does to a measurement is not weir's: a case that fails is tried again, and its best
 * counts.
 */
const TRIES = 3;
/** A stretch so long is no matter of cores, and is not tried again. */
const HOPELESS_MS = 500;

export interface RunOptions {
  /** How long each attack lasts. */
  readonly ms: number;
  /** Absent: costs are not held against anything, as where they are being recorded. */
  readonly recorded: Recorded | undefined;
  readonly yardstick: number;
}

/**
 * Runs the cases of a group, one after the other, on a server that is started anew where an attack has broken it. Close
 * it.
 */
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
    for (let tries = 1; tries <= TRIES; tries++) {
      const measured = await this.measure(one, connections);
      const faults = faultsOf(measured, this.options.recorded, this.options.yardstick);
      if (best === undefined || isBetter({ measured, faults, tries }, best))
        best = { measured, faults, tries };
      best = { ...best, tries };
      if (faults.every((fault) => fault === NOT_RECORDED) || measured.delayMs > HOPELESS_MS) break;
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
    // What is still busy, or broken, would be measured with the next case.
    const { alive, settled, innocent } = measured;
    if (!alive || !settled || innocent.failure !== undefined || innocent.unanswered > 0) {
      this.server = undefined;
      await server.stop();
    }
    return measured;
  }
}

function isBetter(one: Row, other: Row): boolean {
  if (one.faults.length !== other.faults.length) return one.faults.length < other.faults.length;
  return one.measured.delayMs < other.measured.delayMs;
}
