import type { Clock } from '../../limiter/clock.js';
import type { LostControls } from '../../limiter/control.js';
import type { ControlIndex } from '../../service/controls/control-index.js';
import { byName, type FamilyRegistry } from '../../telemetry/family-registry.js';
import { CONTROL_KIND } from '../../telemetry/label-meanings.js';
import type { Logger } from '../../telemetry/logger.js';

/** Time in microseconds within which other processes report the loss that the first process reported. */
const SAME_LOSS_MICROS = 10_000_000;

/** Exposes the number of blocks and exemptions. All workers have the same ones. */
export function exposeControls(registry: FamilyRegistry, index: Pick<ControlIndex, 'count'>): void {
  registry.gauge(
    {
      name: 'weir_controls',
      help: 'Current blocks and exemptions, by kind.',
      aggregator: 'max',
      labels: { kind: CONTROL_KIND },
    },
    () => byName('kind', { block: index.count('block'), allow: index.count('allow') }),
  );
}

/** Exposes the number of blocks and exemptions that Redis lost. */
export function exposeLostControls(registry: FamilyRegistry, lost: LostControls): void {
  registry.counter(
    {
      name: 'weir_controls_lost_total',
      help: 'Blocks and exemptions that Redis lost before they expired, by kind.',
      labels: { kind: CONTROL_KIND },
    },
    () => byName('kind', { block: lost.block, allow: lost.allow }),
  );
}

/**
 * Returns a function that counts lost blocks and exemptions and logs a warning. Each process reports a loss, but it
 * counts only once.
 */
export function lostControlsReporter(
  log: Logger,
  registry: FamilyRegistry,
  clock: Pick<Clock, 'monotonicMicros'>,
): (process: number, lost: LostControls) => void {
  const all = { block: 0, allow: 0 };
  exposeLostControls(registry, all);
  let first: { readonly process: number; readonly atMicros: number } | undefined;
  return (process, { block, allow }) => {
    const atMicros = clock.monotonicMicros();
    const isSameLoss =
      first !== undefined && first.process !== process && atMicros - first.atMicros < SAME_LOSS_MICROS;
    if (isSameLoss) return;
    first = { process, atMicros };
    all.block += block;
    all.allow += allow;
    log.warn(
      { blocks: block, exemptions: allow },
      'Redis lost blocks and exemptions, which no longer apply. Redis was flushed or restarted without ' +
        'its data, or the key was deleted. Create the blocks and exemptions again, and see ' +
        'docs/runbooks.md#weircontrolslost',
    );
  };
}
