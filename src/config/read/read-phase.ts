import { fixedPhase, PHASES, type PhaseSchedule } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from '../yaml/field-reader.js';
import { parseRfc3339 } from '../yaml/rfc3339.js';
import { keysOf } from './policy-fields.js';

/** Reads `phase`: the name of a phase, or a schedule of RFC 3339 times. Undefined if absent or invalid. */
export function readPhase(reader: FieldReader): PhaseSchedule | undefined {
  const field = reader.field('phase');
  if (field === undefined) return undefined;
  if (field.value.kind === 'list') {
    reader.error(
      'phase',
      `"phase" must not be a list; write one of ${PHASES.join(', ')}, or a mapping with the times of ` +
        'grace_period and active',
    );
    return undefined;
  }
  if (field.value.kind === 'scalar') {
    const meaning = 'write active to deny requests, or monitoring to only count them';
    const phase = reader.choice('phase', PHASES, meaning);
    return phase === undefined ? undefined : fixedPhase(phase);
  }
  const schedule = reader.mapping('phase') as FieldReader;
  schedule.expectKeys(keysOf('phase_schedule'));
  const gracePeriod = readTime(schedule, 'grace_period');
  const active = readTime(schedule, 'active');
  if (schedule.field('grace_period') === undefined && schedule.field('active') === undefined) {
    reader.error('phase', 'the schedule is empty; write the time of grace_period, of active, or of both');
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

function readTime(schedule: FieldReader, key: string): number | undefined {
  const text = schedule.text(key);
  if (text === undefined) return undefined;
  const micros = parseRfc3339(text);
  if (micros === undefined) {
    // A date without a time most likely means midnight. Other mistakes in a time are not guessed.
    const day = `${text}T00:00:00Z`;
    const remedy =
      parseRfc3339(day) === undefined
        ? 'write a day and a time, such as 2030-01-31T12:00:00Z'
        : `write ${day}`;
    schedule.error(key, `"${shownStart(text)}" is not an RFC 3339 time; ${remedy}`);
  }
  return micros;
}
