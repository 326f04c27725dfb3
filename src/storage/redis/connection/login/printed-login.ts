import { parseLogin, type RedisLogin } from '../redis-login.js';

/** A login as printed by a command. */
export interface PrintedLogin {
  readonly login: RedisLogin;
  /** Expiry on the wall clock, in milliseconds since the epoch; undefined if none was printed. */
  readonly expiresAtMs: number | undefined;
}

/** Largest value that counts as seconds since the epoch. Larger values are milliseconds. */
const MAX_EPOCH_SECONDS = 1e11;
const FORM = 'a password, user:password, or JSON such as {"username":"weir","password":"…"}';

/**
 * Parses the output of a command: a password, `user:password`, or JSON with `password`, and optionally `username` and
 * `expiresAt` (ISO 8601, or seconds since the epoch). One trailing newline is removed. `nowMs` is the wall clock, in
 * milliseconds. Throws an Error, "printed …", that contains no part of the output.
 */
export function readPrintedLogin(text: string, nowMs: number): PrintedLogin {
  const printed = text.replace(/\r?\n$/, '');
  if (/^\s*\{/.test(printed)) return readJson(printed, nowMs);
  if (printed.trim() === '') throw new Error(`printed nothing; it must print ${FORM}`);
  if (/[\r\n]/.test(printed))
    throw new Error(`printed several lines; it must print a single line with ${FORM}`);
  const login = parseLogin(printed);
  if (login.password === '') throw new Error(`printed a user without a password; it must print ${FORM}`);
  return { login, expiresAtMs: undefined };
}

function readJson(printed: string, nowMs: number): PrintedLogin {
  let value: Readonly<Record<string, unknown>>;
  try {
    value = JSON.parse(printed) as Readonly<Record<string, unknown>>;
  } catch {
    // The message of JSON.parse would quote the output.
    throw new Error(`printed invalid JSON; it must print ${FORM}`);
  }
  const { username, password, expiresAt } = value;
  if (typeof password !== 'string' || password === '') {
    throw new Error(`printed JSON without a "password" string; it must print ${FORM}`);
  }
  if (username !== undefined && username !== null && typeof username !== 'string') {
    throw new Error(
      'printed JSON with a "username" that is not a string; write the user name in quotes, or omit it',
    );
  }
  const login = typeof username === 'string' ? { username, password } : { password };
  return { login, expiresAtMs: readExpiry(expiresAt, nowMs) };
}

function readExpiry(expiresAt: unknown, nowMs: number): number | undefined {
  if (expiresAt === undefined || expiresAt === null) return undefined;
  const expiresAtMs = epochMs(expiresAt);
  if (expiresAtMs === undefined) {
    throw new Error(
      'printed an "expiresAt" that is not a valid time; write seconds since the epoch, or ISO 8601 with ' +
        'a zone, as in 2030-01-31T12:00:00Z',
    );
  }
  if (expiresAtMs > nowMs) return expiresAtMs;
  const ago = Math.round((nowMs - expiresAtMs) / 1000);
  throw new Error(
    `printed an "expiresAt" time that was ${ago} s ago; change the command to print a new login, and ` +
      'check the clock of this machine',
  );
}

/** ISO 8601 without a zone would mean a different time on each machine. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)$/i;

function epochMs(time: unknown): number | undefined {
  if (typeof time === 'number') return time < MAX_EPOCH_SECONDS ? time * 1000 : undefined;
  if (typeof time !== 'string' || !ISO_TIME.test(time)) return undefined;
  // Date.parse requires a point before fractions, and time zones with a colon and minutes.
  const zoned = time
    .replace(',', '.')
    .replace(/([+-]\d\d)(\d\d)?$/, (_, hours, minutes = '00') => `${hours}:${minutes}`);
  const parsed = Date.parse(zoned);
  return Number.isNaN(parsed) ? undefined : parsed;
}
