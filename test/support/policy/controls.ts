import type { ControlKind, LiveControl } from '../../../src/limiter/control.js';
import { identityOf } from '../../../src/policy/identity.js';
import { entries, policyOf } from './policies.js';

const PLAIN = policyOf('domain: d\ndescriptors: [{ key: any }]\n');
let made = 0;

/** Returns a control of the domain `d` for a descriptor of `key=value` strings, which the given policy normalises. */
export function control(
  kind: ControlKind,
  texts: readonly string[],
  {
    expiresAtMicros = Infinity,
    policy = PLAIN,
    ...more
  }: Partial<LiveControl> & { policy?: typeof PLAIN } = {},
): LiveControl {
  const identity = identityOf(policy, entries(...texts));
  if (typeof identity === 'string') throw new Error(identity);
  const id = `c${++made}`;
  return {
    id,
    kind,
    domain: 'd',
    identity,
    reason: '',
    by: 'loopback',
    durationMicros: 1,
    expiresAtMicros,
    ...more,
  };
}
