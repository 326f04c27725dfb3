import { describe, expect, test } from '@jest/globals';
import { MAX_STEPS, TimelineCount } from '../../../../src/replay/tally/timeline-count.js';

const START_MICROS = Date.parse('2026-11-20T09:00:30Z') * 1000;
const MINUTE_MICROS = 60_000_000;

describe('TimelineCount', () => {
  test('counts requests by minute', () => {
    const timeline = new TimelineCount();
    timeline.add(START_MICROS, true, false);
    timeline.add(START_MICROS + MINUTE_MICROS / 2, false, true);
    timeline.add(START_MICROS + 2 * MINUTE_MICROS, false, false);
    expect(timeline.report()).toEqual({
      start: '2026-11-20T09:00:00.000Z',
      stepSeconds: 60,
      requests: [1, 1, 1],
      deniedBefore: [1, 0, 0],
      deniedAfter: [0, 1, 0],
    });
  });

  test('has longer steps for a longer log, and keeps what was counted', () => {
    const timeline = new TimelineCount();
    const steps = timeline.newSet();
    for (let minute = 0; minute < MAX_STEPS; minute++) {
      const step = timeline.add(START_MICROS + minute * MINUTE_MICROS, true, minute % 7 === 0);
      if (minute % 7 === 0) steps.add(step);
    }
    timeline.add(START_MICROS + MAX_STEPS * MINUTE_MICROS, true, false);
    const { stepSeconds, requests, deniedBefore, deniedAfter } = timeline.report();
    const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
    expect(stepSeconds).toBe(300);
    expect(requests).toHaveLength(MAX_STEPS / 5 + 1);
    expect([sum(requests), sum(deniedBefore), sum(deniedAfter)]).toEqual([1441, 1441, 206]);
    expect(steps.steps()).toEqual(deniedAfter.flatMap((count, step) => (count > 0 ? [step] : [])));
  });

  test('counts a request before the first one in the first step', () => {
    const timeline = new TimelineCount();
    timeline.add(START_MICROS, false, false);
    expect(timeline.add(START_MICROS - 10 * MINUTE_MICROS, false, false)).toBe(0);
  });
});
