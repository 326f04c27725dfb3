import { seededRandom } from '../limiter/seeded-random.js';

const MINUTE_MICROS = 60e6;
const HOUR_MICROS = 3600e6;
/** Requests of a caller that wait for their turn. Further requests are never sent. */
const MAX_WAITING = 200;
/** Demand of the largest caller at noon, relative to the fair rate. */
const LARGEST = 3;
/** Exponent of the callers' sizes by rank (Zipf). */
const SKEW = 1.2;
const BURSTS_PER_MINUTE = 0.01;
const STORM_MICROS = 2 * MINUTE_MICROS;
/** Requests of a retry storm, relative to the fair rate. The largest callers have none. */
const STORM = 4;
const LEAST_STORM_RANK = 10;

/** A route with its own demand. Well-behaved callers pace themselves: no more than a token bucket allows. */
export interface SimulatedRoute {
  readonly path: string;
  readonly fairPerSecond: number;
  readonly fairBurst: number;
}

export interface SimulatedLogOptions {
  readonly seed: number;
  /** Well-behaved callers. Their sizes follow Zipf's law. */
  readonly callers: number;
  /** In microseconds since 1970. */
  readonly startMicros: number;
  readonly hours: number;
  readonly routes: readonly SimulatedRoute[];
  /** Abusers of each route. Each sends 5 to 20 times the fair rate for one to two hours, or for the whole log. */
  readonly abusers: number;
  /** Well-behaved callers of each route that repeat requests for two minutes without pause. */
  readonly storms: number;
  /** The clock of the log is set forward, or back if `seconds` is below 0. */
  readonly clockSteps?: readonly { readonly afterMinutes: number; readonly seconds: number }[];
}

export interface SimulatedRequest {
  /** By the clock of the log. */
  readonly startMicros: number;
  readonly tenant: string;
  readonly path: string;
}

interface Caller {
  readonly tenant: string;
  readonly route: SimulatedRoute;
  /** Requests per second at noon. */
  readonly peak: number;
  /** Arrivals that wait, in order. */
  readonly waiting: number[];
  /** GCRA: the time at which the caller's own bucket is full again. */
  fullAt: number;
}

/** Requests that a caller sends without pacing, during a part of the log. */
interface Flood {
  readonly tenant: string;
  readonly route: SimulatedRoute;
  readonly from: number;
  readonly to: number;
  readonly perSecond: number;
}

/** A log that its seed determines: load by time of day, callers of very different size, bursts, storms and abusers. */
export class SimulatedLog {
  readonly #options: SimulatedLogOptions;
  readonly #random: () => number;
  readonly #callers: Caller[] = [];
  readonly #floods: Flood[] = [];
  /** Names of the abusers by path. */
  readonly abusers = new Map<string, readonly string[]>();

  constructor(options: SimulatedLogOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    for (const route of options.routes) this.#populate(route);
  }

  /** Returns the requests of each minute in the order in which they start. Can be read once. */
  *minutes(): Generator<readonly SimulatedRequest[]> {
    const { startMicros, hours, clockSteps = [] } = this.#options;
    for (let minute = 0; minute < hours * 60; minute++) {
      const from = startMicros + minute * MINUTE_MICROS;
      const sent: SimulatedRequest[] = [];
      for (const caller of this.#callers) this.#paced(caller, from, sent);
      for (const flood of this.#floods) this.#flooded(flood, from, sent);
      sent.sort((a, b) => a.startMicros - b.startMicros);
      const steps = clockSteps.filter(({ afterMinutes }) => afterMinutes <= minute);
      const shift = steps.reduce((sum, { seconds }) => sum + seconds * 1e6, 0);
      yield shift === 0 ? sent : sent.map((one) => ({ ...one, startMicros: one.startMicros + shift }));
    }
  }

  #populate(route: SimulatedRoute): void {
    const { callers, abusers, storms, startMicros, hours } = this.#options;
    const endMicros = startMicros + hours * HOUR_MICROS;
    const names = shuffled(callers + abusers, this.#random).map(
      (number) => `t-${String(number).padStart(4, '0')}`,
    );
    for (const [rank, tenant] of names.slice(abusers).entries()) {
      const peak = LARGEST * route.fairPerSecond * (rank + 1) ** -SKEW;
      this.#callers.push({ tenant, route, peak, waiting: [], fullAt: 0 });
    }
    for (let storm = 0; storm < storms; storm++) {
      const rank = LEAST_STORM_RANK + Math.floor(this.#random() * (callers - LEAST_STORM_RANK));
      const from = startMicros + this.#random() * (endMicros - startMicros - STORM_MICROS);
      const tenant = names[abusers + rank] as string;
      this.#floods.push({
        tenant,
        route,
        from,
        to: from + STORM_MICROS,
        perSecond: STORM * route.fairPerSecond,
      });
    }
    const planted = names.slice(0, abusers);
    for (const tenant of planted) {
      const length = Math.min(hours, 1 + this.#random()) * HOUR_MICROS;
      const from = startMicros + this.#random() * (endMicros - startMicros - length);
      const perSecond = (5 + 15 * this.#random()) * route.fairPerSecond;
      this.#floods.push({ tenant, route, from, to: from + length, perSecond });
    }
    this.abusers.set(route.path, planted);
  }

  /** Adds the requests of a minute that a well-behaved caller sends. */
  #paced(caller: Caller, from: number, sent: SimulatedRequest[]): void {
    const { tenant, route, peak, waiting } = caller;
    const { path, fairPerSecond, fairBurst } = route;
    const arrivals = this.#arrivals(peak * 60 * busyness(from), from, MINUTE_MICROS);
    if (this.#random() < BURSTS_PER_MINUTE) {
      const at = from + this.#random() * MINUTE_MICROS;
      for (let i = Math.ceil(this.#random() * fairBurst); i > 0; i--) arrivals.push(at);
      arrivals.sort((a, b) => a - b);
    }
    waiting.push(...arrivals);
    const interval = 1e6 / fairPerSecond;
    let count = 0;
    for (const arrival of waiting) {
      const at = Math.ceil(Math.max(arrival, caller.fullAt - (fairBurst - 1) * interval));
      if (at >= from + MINUTE_MICROS) break;
      caller.fullAt = Math.max(caller.fullAt, at) + interval;
      sent.push({ startMicros: at, tenant, path });
      count++;
    }
    waiting.splice(0, count);
    waiting.splice(MAX_WAITING);
  }

  #flooded({ tenant, route, from, to, perSecond }: Flood, minute: number, sent: SimulatedRequest[]): void {
    const start = Math.max(from, minute);
    const length = Math.min(to, minute + MINUTE_MICROS) - start;
    if (length <= 0) return;
    for (const at of this.#arrivals((perSecond * length) / 1e6, start, length)) {
      sent.push({ startMicros: at, tenant, path: route.path });
    }
  }

  /** Returns the ascending times of a Poisson process. */
  #arrivals(mean: number, from: number, length: number): number[] {
    const times: number[] = [];
    for (let at = 0; ; ) {
      at += (-Math.log(1 - this.#random()) / mean) * length;
      if (at >= length) return times;
      times.push(Math.floor(from + at));
    }
  }
}

/** Returns the load at a time, relative to noon on a weekday: low at night, and a third on weekends. */
function busyness(micros: number): number {
  const hours = micros / HOUR_MICROS;
  const byDay = Math.max(0.1, Math.cos(((hours % 24) - 12) * (Math.PI / 16)));
  // 1970 began on a Thursday.
  const day = (Math.floor(hours / 24) + 4) % 7;
  return day === 0 || day === 6 ? byDay / 3 : byDay;
}

function shuffled(count: number, random: () => number): number[] {
  const numbers = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [numbers[i], numbers[j]] = [numbers[j] as number, numbers[i] as number];
  }
  return numbers;
}
