import { fixedPhase, type PhaseSchedule } from '../../policy/rule.js';
import type { FieldReader } from './field-reader.js';
import { type FieldValue, readMapping } from './field-values.js';
import type { PHASE } from './policy-fields.js';

/** Returns the schedule of a `phase`: the name of a phase, or RFC 3339 times. Undefined if absent or invalid. */
export function phaseOf(value: FieldValue<(typeof PHASE)['phase']>): PhaseSchedule | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' ? fixedPhase(value) : readSchedule(value);
}

function readSchedule(schedule: FieldReader): PhaseSchedule | undefined {
  const { grace_period: gracePeriod, active } = readMapping(schedule, 'phase_schedule');
  if (schedule.field('grace_period') === undefined && schedule.field('active') === undefined) {
    schedule.problems.error(
      schedule.map.at,
      schedule.path,
      'the schedule is empty; write the time of grace_period, of active, or of both',
    );
    return undefined;
  }
  if (gracePeriod !== undefined && active !== undefined && active < gracePeriod) {
    schedule.error(
      'active',
      '"active" is earlier than "grace_period"; the grace period comes first, so write a later time',
    );
    return undefined;
  }
  return { gracePeriodAtMicros: gracePeriod ?? Infinity, activeAtMicros: active ?? Infinity };
}
