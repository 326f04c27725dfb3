import type { DumpedPhase, DumpedPolicies } from './dumped-policy.js';
import { utcText } from './times.js';

export function phaseWord(phase: string): string {
  return phase.replaceAll('_', ' ');
}

/** A future change of phase. */
export interface PhaseSwitch {
  readonly to: string;
  /** Seconds since the epoch. */
  readonly at: number;
}

/** Returns the future changes of a schedule, the earliest first. */
export function futureSwitches(phase: DumpedPhase, nowSeconds: number): readonly PhaseSwitch[] {
  return (['grace_period', 'active'] as const).flatMap((to) => {
    const at = Date.parse(phase[to] ?? '') / 1000;
    return at > nowSeconds ? [{ to, at }] : [];
  });
}

/** Returns the time of the next phase change of any rule or domain, or Infinity without such a change. */
export function nextSwitchAt({ domains }: DumpedPolicies, nowSeconds: number): number {
  const phases = domains.flatMap(({ policy }) =>
    policy === undefined ? [] : [policy.phase, ...policy.rules.map(({ phase }) => phase)],
  );
  return phases
    .flatMap((phase) => futureSwitches(phase, nowSeconds))
    .reduce((next, { at }) => Math.min(next, at), Number.POSITIVE_INFINITY);
}

/** Formats a change of phase with its absolute time: `denies from 2026-12-01 00:00:00 UTC`. */
export function switchWords({ to, at }: PhaseSwitch): string {
  return `${to === 'active' ? 'denies from' : 'grace period from'} ${utcText(at)}`;
}

/** Texts for the `enforcement` of a bucket, as in `weir bucket show`. */
export const ENFORCED: ReadonlyMap<string, string> = new Map([
  ['enforce', 'yes'],
  ['observe', 'no'],
  ['quota', 'with other quotas'],
  ['spill', 'with its chain'],
]);
