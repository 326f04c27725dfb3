import { MAX_TIMER_MS } from '../../../../limiter/clock.js';
import { BackOff } from '../../../../runtime/back-off.js';
import { withTimeout } from '../../../../runtime/turns.js';
import type { LoginListeners, LoginSource } from '../login-source.js';
import type { RedisLogin } from '../redis-login.js';
import { readPrintedLogin } from './printed-login.js';
import { type Command, runProgram } from './run-program.js';

/** Settings of {@link LoginCommand}. */
export interface LoginCommandOptions {
  /** Name of the variable that contains the command, for messages: REDIS_AUTH_COMMAND. */
  readonly variable: string;
  readonly command: Command;
  /** Maximum time that a login is used, in milliseconds (REDIS_AUTH_REFRESH). */
  readonly refreshMs: number;
  /** Runs the command; default {@link runProgram}. */
  readonly run?: (command: Command, signal: AbortSignal) => Promise<string>;
}

/** Pauses between consecutive runs for new connections, or after failures. */
const PAUSES = { initialMs: 1000, maxMs: 30_000 };
/** Minimum time between renewals, even if a login expires sooner. */
const MIN_REFRESH_MS = 1000;
/** Maximum time between the renewal of a login and its expiry. */
const MAX_RENEWAL_MARGIN_MS = 60_000;
const MARGIN_SHARE = 1 / 5;
/** Maximum time that a connection waits for a new login while the previous login is usable, in milliseconds. */
const RENEWAL_WAIT_MS = 300;

/**
 * A login that a command prints. The command runs before each connection, and again before its login expires.
 * Concurrent callers share one run. If Redis is unavailable or refuses the login, callers ask repeatedly. They then get
 * the last login during a growing pause, except after the first refusal. A slow command does not delay a connection
 * while the last login is usable; the connection gets the new login later.
 */
export class LoginCommand implements LoginSource {
  readonly #options: LoginCommandOptions;
  readonly #pauses = new BackOff(PAUSES);
  readonly #ending = new AbortController();
  #listeners: LoginListeners | undefined;
  #login: RedisLogin | undefined;
  /** Why there is no login. */
  #failure: Error | undefined;
  #underWay: Promise<boolean> | undefined;
  #pauseUntilMs = -Infinity;
  /** Time until which the login is used, unless Redis refuses it. */
  #usableUntilMs = -Infinity;
  #askedAtMs = -Infinity;
  /** Whether the last run followed a refused login. */
  #lastRunWasForRefusal = false;
  #due: NodeJS.Timeout | undefined;

  constructor(options: LoginCommandOptions) {
    this.#options = options;
  }

  follow(listeners: LoginListeners): void {
    this.#listeners = listeners;
  }

  async login(refused: boolean): Promise<RedisLogin> {
    const now = performance.now();
    if (now - this.#askedAtMs > PAUSES.maxMs) this.#pauses.reset();
    this.#askedAtMs = now;
    const isFirstRefusal = refused && !this.#lastRunWasForRefusal;
    if (now >= this.#pauseUntilMs || isFirstRefusal) void this.#run(refused);
    const isGood = !refused && now < this.#usableUntilMs;
    await (isGood ? withTimeout(RENEWAL_WAIT_MS, this.#underWay, () => {}) : this.#underWay);
    if (this.#login === undefined)
      throw this.#failure ?? new Error(`${this.#options.variable}: the command was stopped`);
    return this.#login;
  }

  close(): void {
    clearTimeout(this.#due);
    this.#ending.abort();
  }

  /** Runs the command unless it is running. Resolves with whether there is a new login. */
  #run(forRefusal: boolean): Promise<boolean> {
    if (this.#underWay === undefined) {
      this.#lastRunWasForRefusal = forRefusal;
      this.#underWay = this.#renew().finally(() => {
        this.#underWay = undefined;
      });
    }
    return this.#underWay;
  }

  async #renew(): Promise<boolean> {
    const { variable, command, run = runProgram } = this.#options;
    clearTimeout(this.#due);
    let usedForMs: number | undefined;
    try {
      const { login, expiresAtMs } = readPrinted(command, await run(command, this.#ending.signal));
      this.#login = login;
      usedForMs = this.#usableMs(expiresAtMs);
      this.#usableUntilMs = performance.now() + usedForMs;
    } catch (error) {
      this.#failure = new Error(`${variable}: ${(error as Error).message}`);
    }
    if (this.#ending.signal.aborted) return false;
    const isNew = usedForMs !== undefined;
    if (isNew) this.#listeners?.failed(undefined);
    if (isNew && this.#login !== undefined) this.#listeners?.renewed(this.#login);
    if (!isNew && this.#login !== undefined)
      this.#listeners?.failed(`${this.#failure?.message}; the previous login stays in use`);
    const pauseMs = this.#pauses.next();
    this.#pauseUntilMs = performance.now() + pauseMs;
    this.#due = setTimeout(() => void this.#onDue(), usedForMs ?? pauseMs).unref();
    return isNew;
  }

  async #onDue(): Promise<void> {
    if (await this.#run(false)) this.#pauses.reset();
  }

  /** Returns for how long a login that expires at `expiresAtMs` is used, in milliseconds. */
  #usableMs(expiresAtMs = Infinity): number {
    const lifeMs = expiresAtMs - Date.now();
    const marginMs = Math.min(lifeMs * MARGIN_SHARE, MAX_RENEWAL_MARGIN_MS);
    const usedForMs = Math.min(this.#options.refreshMs, lifeMs - marginMs, MAX_TIMER_MS);
    return Math.max(usedForMs, MIN_REFRESH_MS);
  }
}

function readPrinted([program]: Command, text: string): ReturnType<typeof readPrintedLogin> {
  try {
    return readPrintedLogin(text, Date.now());
  } catch (error) {
    throw new Error(`${program} ${(error as Error).message}`);
  }
}
