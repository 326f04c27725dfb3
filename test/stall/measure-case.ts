import type { Attack, AttackResult } from './attack/attack.js';
import { Attacker } from './attack/attacker.js';
import { InnocentCaller, type InnocentResult } from './innocent.js';
import { monotonicMs } from './loop-delay-log.js';
import { INNOCENT } from './policy-texts.js';
import type { StallCase } from './stall-case.js';
import type { StallServer } from './stall-server.js';

const INNOCENT_RATE = 200;
/** So that with several workers each has some of them. */
const INNOCENT_CONNECTIONS = 4;
const WARM_UP_MS = 300;
const BASELINE_LOOKS = 4;
const BASELINE_MS = 150;
/** What the innocent caller can cost, in microseconds per second: more is a start that still goes on. */
const MOST_BASELINE = 60_000;
/** weir counts as done with an attack when it uses less than this share of a core. */
const IDLE_SHARE = 0.3;
const LOOK_MS = 50;
/** Longest wait for that; on a sound weir it is short. */
const SETTLE_MS = 3000;

/** Effects of one attack on weir and on the innocent caller. */
export interface Measurement {
  readonly name: string;
  readonly connections: number;
  /** Of attack, as far as the kernel took it. */
  readonly kilobytes: number;
  /** CPU time of weir that the innocent caller does not cause. */
  readonly cpuMicros: number;
  readonly microsPerKilobyte: number;
  /** Longest delay of the event loop. */
  readonly delayMs: number;
  /** The same by the clock, with the time that the thread waited for a core. */
  readonly delayWallMs: number;
  readonly innocent: InnocentResult;
  readonly answers: AttackResult['answers'];
  /** Whether weir was done with the attack before its connections were closed. */
  readonly settled: boolean;
  readonly alive: boolean;
}

/** An attacker and the innocent caller. Close it after use. */
export class StallBench {
  readonly #attacker = new Attacker();
  readonly #innocent = new InnocentCaller();

  /**
   * CPU microseconds per second of a server that only the innocent caller asks: the least of some looks, as one that
   * has just started does other things as well.
   */
  async baseline(server: StallServer): Promise<number> {
    await this.#begin(server);
    await pause(WARM_UP_MS);
    let least = Number.POSITIVE_INFINITY;
    for (let look = 0; look < BASELINE_LOOKS; look++) {
      const before = server.cpuMicros();
      const start = monotonicMs();
      await pause(BASELINE_MS);
      least = Math.min(least, (server.cpuMicros() - before) / ((monotonicMs() - start) / 1000));
    }
    await this.#innocent.end();
    return Math.min(least, MOST_BASELINE);
  }

  /** Attacks for `ms`; resolves when all is answered and the attacker has gone. */
  async measure(
    server: StallServer,
    { name, attack, beside }: StallCase,
    connections: number,
    ms: number,
    baseline: number,
  ): Promise<Measurement> {
    await this.#begin(server);
    const start = monotonicMs();
    const cpuBefore = server.cpuMicros();
    let ended = false;
    const besides = beside?.(server, () => ended);
    const order = attack?.();
    if (order !== undefined) {
      await this.#attacker.attack({ attack: order, connections, ms, port: portOf(server, order) });
    } else await pause(ms);
    ended = true;
    const besideBytes = (await besides) ?? 0;
    const settled = await settle(server);
    const result = order === undefined ? { bytes: 0, opened: 0, answers: {} } : await this.#attacker.letGo();
    const innocent = await this.#innocent.end();
    // The look that ends the last delay comes behind the last answer.
    await pause(10);
    const seconds = (monotonicMs() - start) / 1000;
    const cpuMicros = Math.max(0, server.cpuMicros() - cpuBefore - baseline * seconds);
    const kilobytes = (result.bytes + besideBytes) / 1024;
    const { ownMs, wallMs } = server.longestDelay(start);
    // A blocked event loop has not written its delay yet.
    const isStuck = innocent.unanswered > 0 && innocent.failure === undefined;
    const stuckMs = isStuck ? monotonicMs() - start : 0;
    return {
      ...{ name, connections, kilobytes, cpuMicros, innocent, settled },
      microsPerKilobyte: kilobytes === 0 ? 0 : cpuMicros / kilobytes,
      delayMs: Math.max(ownMs, stuckMs),
      delayWallMs: wallMs,
      answers: result.answers,
      alive: server.weir.process.isRunning(),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.#attacker.close(), this.#innocent.close()]);
  }

  #begin(server: StallServer): Promise<void> {
    return this.#innocent.begin({
      port: server.weir.grpcPort,
      domain: INNOCENT,
      rate: INNOCENT_RATE,
      connections: INNOCENT_CONNECTIONS,
    });
  }
}

function portOf({ weir }: StallServer, attack: Attack): number {
  if (attack.kind !== 'http') return weir.grpcPort;
  return attack.port === 'debug' ? weir.debugPort : weir.httpPort;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until weir has done what it was sent; false when that takes too long. */
async function settle(server: StallServer): Promise<boolean> {
  const last = monotonicMs() + SETTLE_MS;
  while (monotonicMs() < last) {
    const before = server.cpuMicros();
    await pause(LOOK_MS);
    if ((server.cpuMicros() - before) / 1000 < LOOK_MS * IDLE_SHARE) return true;
  }
  return false;
}
