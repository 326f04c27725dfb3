import type { LiveControl } from '../../limiter/control.js';
import { shownIdentity } from '../../policy/identity.js';
import type { ShownControl } from './messages.js';

/** A control for people. Values of secret keys are digests, of which the beginning is shown. */
export function shownControl(
  { id, kind, domain, identity, reason, by, expiresAtMicros }: LiveControl,
  nowMicros: number,
): ShownControl {
  const endsIn = Math.max(0, expiresAtMicros - nowMicros) / 1_000_000;
  return { id, kind, domain, identity: shownIdentity(identity), reason, by, ends_in: endsIn };
}

/** At most so many controls, blocks first, then those that last longest; of too many those that are known longest. */
export function listedControls(found: readonly LiveControl[], most: number): readonly LiveControl[] {
  if (found.length <= most) return [...found].sort(byWeight);
  // To sort ten thousand takes longer than a decision may wait.
  const blocks = found.filter(({ kind }) => kind === 'block');
  const others = found.filter(({ kind }) => kind !== 'block');
  return [...blocks.slice(0, most), ...others.slice(0, Math.max(0, most - blocks.length))].sort(byWeight);
}

function byWeight(one: LiveControl, other: LiveControl): number {
  if (one.kind !== other.kind) return one.kind === 'block' ? -1 : 1;
  return other.expiresAtMicros - one.expiresAtMicros;
}
