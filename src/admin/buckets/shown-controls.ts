import type { LiveControl } from '../../limiter/control.js';
import { shownIdentity } from '../../policy/identity.js';
import type { ShownControl } from './messages.js';

/** Returns a control for an answer. Values of secret keys are digests, which are shortened. */
export function shownControl(
  { id, kind, domain, identity, reason, by, expiresAtMicros }: LiveControl,
  nowMicros: number,
): ShownControl {
  const endsIn = Math.max(0, expiresAtMicros - nowMicros) / 1_000_000;
  return { id, kind, domain, identity: shownIdentity(identity), reason, by, ends_in: endsIn };
}

/**
 * Returns up to `most` controls: blocks first, then those that expire last. With too many controls, the oldest are
 * considered.
 */
export function listedControls(found: readonly LiveControl[], most: number): readonly LiveControl[] {
  if (found.length <= most) return [...found].sort(byWeight);
  // Sorting ten thousand controls would block decisions for too long.
  const blocks = found.filter(({ kind }) => kind === 'block');
  const others = found.filter(({ kind }) => kind !== 'block');
  return [...blocks.slice(0, most), ...others.slice(0, Math.max(0, most - blocks.length))].sort(byWeight);
}

function byWeight(one: LiveControl, other: LiveControl): number {
  if (one.kind !== other.kind) return one.kind === 'block' ? -1 : 1;
  return other.expiresAtMicros - one.expiresAtMicros;
}
