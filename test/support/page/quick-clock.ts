/*
 * Preloaded into weir with NODE_OPTIONS=--require. For the first hour of its clock, weir's clocks and timers run
 * WEIR_QUICK_CLOCK times as fast. They start so far in the past that they show the true time afterwards, and then
 * continue at normal speed. A screenshot of an hour therefore takes a minute.
 */
const speed = Number(process.env['WEIR_QUICK_CLOCK'] ?? '1');
/** Start time shared by all processes of one server, in milliseconds since the epoch. */
const startMs = Number(process.env['WEIR_QUICK_CLOCK_FROM'] ?? Date.now());
const HOUR_MS = 3_600_000;
const quickMs = HOUR_MS / speed;

const trueWall = Date.now.bind(Date);
const [trueSetTimeout, trueClearTimeout] = [setTimeout, clearTimeout];
/** Returns the time since the server started, by the quick clock. */
const elapsed = (trueMs: number): number => trueMs + Math.min(trueMs, quickMs) * (speed - 1);
const [trueStart, trueHrtime] = [process.hrtime.bigint(), process.hrtime.bigint.bind(process.hrtime)];
const elapsedAtStart = trueWall() - startMs;
/** Returns the current time from a clock that never steps and is the same in all processes. */
const now = (): number => elapsed(Number(trueHrtime() - trueStart) / 1e6 + elapsedAtStart);

Date.now = () => Math.floor(startMs + quickMs - HOUR_MS + now());
process.hrtime.bigint = () => BigInt(Math.round(now() * 1e6));
performance.now = now;

const shortened = (ms: number | undefined): number =>
  trueWall() - startMs < quickMs ? (ms ?? 0) / speed : (ms ?? 0);

globalThis.setTimeout = Object.assign(
  (body: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
    trueSetTimeout(body, shortened(ms), ...args),
  trueSetTimeout,
) as typeof setTimeout;

/** A timer that is set again each time, because its real duration changes once. */
class RepeatedTimer {
  #timer: NodeJS.Timeout;
  #isReferenced = true;

  constructor(body: () => void, ms: number | undefined) {
    const tick = (): void => {
      this.#timer = trueSetTimeout(tick, shortened(ms));
      if (!this.#isReferenced) this.#timer.unref();
      body();
    };
    this.#timer = trueSetTimeout(tick, shortened(ms));
  }

  unref(): this {
    this.#isReferenced = false;
    this.#timer.unref();
    return this;
  }

  stop(): void {
    trueClearTimeout(this.#timer);
  }
}

globalThis.setInterval = ((body: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  new RepeatedTimer(() => body(...args), ms)) as unknown as typeof setInterval;
globalThis.clearInterval = ((timer: unknown) => {
  if (timer instanceof RepeatedTimer) timer.stop();
  else trueClearTimeout(timer as NodeJS.Timeout | undefined);
}) as typeof clearInterval;
