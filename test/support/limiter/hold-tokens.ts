import { systemClock } from '../../../src/limiter/clock.js';
import { newHold } from '../../../src/service/holds/hold-ids.js';
import { encodeToken, type PlacedHold, type TokenHold } from '../../../src/service/holds/hold-token.js';
import { TokenMac } from '../../../src/service/holds/token-mac.js';

/** Returns a hold with these values and a new id, which no store has. */
function inventedHold(hold: Omit<TokenHold, 'id'>): PlacedHold {
  return { ...hold, ...newHold(hold.rule, hold.amount, hold.lifetimeMillis, hold.freesUnknown) };
}

/** Returns a token with invented holds, and a mark that no process has made. */
export function inventedToken(holds: readonly Omit<TokenHold, 'id'>[]): string {
  return encodeToken(holds.map(inventedHold), new TokenMac(systemClock));
}

/** Returns the token of a hold as the first edition of weir encoded it. `rule`: the digest of the rule there. */
export function firstEditionToken(hold: TokenHold): string {
  const flags = (hold.isLocal ? 1 : 0) + (hold.freesUnknown ? 2 : 0);
  return `${flags}${hold.id}${hold.rule}${hold.amount}.${hold.lifetimeMillis}.${hold.fullAtMicros}.${hold.key}`;
}
