import { MAX_TIMER_MS } from '../../../../limiter/clock.js';
import { BackOff } from '../../../../runtime/back-off.js';
import { withTimeout } from '../../../../runtime/turns.js';
import type { LoginListeners, LoginSource } from '../login-source.js';
import type { RedisLogin } from '../redis-login.js';
import { readPrintedLogin } from './printed-login.js';
import { type Command, runProgram } from './run-program.js';

/** Settings of {@link LoginCommand}. */
export interface LoginCommandOptions {
  /** The variable that names the command, for messages: REDIS_AUTH_COMMAND. */
  readonly variable: string;
  readonly command: Command;
  /** Longest time that a login is used, milliseconds (REDIS_AUTH_REFRESH). */
  readonly refreshMs: number;
  /** Runs the command; default {@link runProgram}. */
  readonly run?: (command: Command, signal: AbortSignal) => Promise<string>;
}

/** Pauses between runs that one connection after the other asks for, or that failed. */
const PAUSES = { initialMs: 1000, maxMs: 30_000 };
/** A login is renewed no more often than this, however soon it runs out. */
const MIN_REFRESH_MS = 1000;
/** Longest that a login is renewed before it runs out. */
const MAX_RENEWAL_MARGIN_MS = 60_000;
const MARGIN_SHARE = 1 / 5;
/** Longest that a connection waits for a new login while the one before is still good, milliseconds. */
const RENEWAL_WAIT_MS = 300;

/**
 * A login that a command prints. It runs before each connection, and again before what it printed runs out. Those who
 * ask while it runs share its answer; those who ask again and again, because Redis is away or refuses the login, get
 * the last one during a pause that grows, but for the first time that Redis refuses it. A command that is slow holds
 * up no connection while the last login is good: that connection is given the new one when it comes.
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
  /** Until when the login is used, unless Redis refuses it. */
  #usableUntilMs = -Infinity;
  #askedAtMs = -Infinity;
  /** Whether the last run was because Redis had refused the login before it. */
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
      throw this.#failure ?? new Error(`${this.#options.variable}: it was ended`);
    return this.#login;
  }

  close(): void {
    clearTimeout(this.#due);
    this.#ending.abort();
  }

  /** Runs the command unless it runs; resolves with whether there is a new login. */
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
      this.#listeners?.failed(`${this.#failure?.message}; the login before it stays in use`);
    const pauseMs = this.#pauses.next();
    this.#pauseUntilMs = performance.now() + pauseMs;
    this.#due = setTimeout(() => void this.#onDue(), usedForMs ?? pauseMs).unref();
    return isNew;
  }

  async #onDue(): Promise<void> {
    if (await this.#run(false)) this.#pauses.reset();
  }

  /** How long a login is used, milliseconds, that Redis takes until `expiresAtMs`. */
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
