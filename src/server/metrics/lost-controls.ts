import { Counter } from '@prometheus-io/client';
import type { Clock } from '../../limiter/clock.js';
import type { LostControls } from '../../limiter/control.js';
import type { FamilyRegistry } from '../../telemetry/family-registry.js';
import { CONTROL_KIND } from '../../telemetry/label-meanings.js';
import type { Logger } from '../../telemetry/logger.js';

/** How long after the first process others may notice the same loss. */
const SAME_MICROS = 10_000_000;

/** Makes a counter of blocks and exemptions that Redis has lost. */
export function exposeLostControls(registry: FamilyRegistry): Counter<'kind'> {
  const name = 'weir_controls_lost_total';
  const counter = new Counter({
    name,
    help: 'Blocks and exemptions in force that Redis has lost, by kind.',
    labelNames: registry.labels(name, { kind: CONTROL_KIND }),
    registers: [registry.client],
  });
  for (const kind of ['block', 'allow'] as const) counter.inc({ kind }, 0);
  return counter;
}

/** Counts what Redis has lost, and warns of it, once for all processes: each of them notices the same loss. */
export function lostControlsTeller(
  log: Logger,
  registry: FamilyRegistry,
  clock: Pick<Clock, 'monotonicMicros'>,
): (process: number, lost: LostControls) => void {
  const counter = exposeLostControls(registry);
  let first: { readonly process: number; readonly atMicros: number } | undefined;
  return (process, { block, allow }) => {
    const atMicros = clock.monotonicMicros();
    const isSame =
      first !== undefined && first.process !== process && atMicros - first.atMicros < SAME_MICROS;
    if (isSame) return;
    first = { process, atMicros };
    counter.inc({ kind: 'block' }, block);
    counter.inc({ kind: 'allow' }, allow);
    log.warn(
      { blocks: block, exemptions: allow },
      'Redis has lost blocks and exemptions that were in force, and they have ended: it was flushed, restarted ' +
        'without its data, or the key was deleted; make them again, and see docs/runbooks/weir-controls-lost.md',
    );
  };
}
