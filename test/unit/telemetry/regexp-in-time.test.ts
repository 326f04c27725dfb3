import { describe, expect, test } from '@jest/globals';
import { defaultMapping } from '../../../src/telemetry/mapping/default-mapping.js';
import { Mapper } from '../../../src/telemetry/mapping/mapper.js';
import { execInTime } from '../../../src/telemetry/regexp-in-time.js';
import { mogrify } from '../../../src/telemetry/statsd/mogrifier.js';

const PREFIX = 'ratelimit.service.rate_limit.';

describe('a pattern', () => {
  test.each([
    [/^ratelimit\.service\.rate_limit\.(.*)\.(.*)\.(.*)\.(.*)\.total_hits$/u, '.'.repeat(512)],
    [/^ratelimit\.service\.rate_limit\.(([a-z]+)\.?)*$/u, `${'x'.repeat(60)}!`],
    [/^ratelimit\.service\.rate_limit\.(x|xx)*$/u, `${'x'.repeat(60)}!`],
  ])(
    '%s that would take minutes matches what is not hostile',
    (pattern, hostile) => {
      const startedMs = performance.now();
      for (let call = 0; call < 300; call++) expect(execInTime(pattern, PREFIX + hostile)).toBeNull();
      // A second in all, and as much again for a slow machine and for those that are found out.
      expect(performance.now() - startedMs).toBeLessThan(20_000);
    },
    60_000,
  );

  test('that is hostile with some texts matches others, short and long', () => {
    const pattern = /^(?<first>.*)\.(.*)\.(.*)\.(.*)\.(.*)\.total_hits$/u;
    for (const part of ['a', 'b'.repeat(200)]) {
      const found = execInTime(pattern, `${part}.1.2.3.4.total_hits`);
      expect(found?.groups).toMatchObject({ first: part });
      expect([...(found ?? [])].slice(1)).toEqual([part, '1', '2', '3', '4']);
    }
  });
});

test('mogrifiers and mappings go on to the next rule where one takes too long', () => {
  const pattern = /^(.*)\.(.*)\.(.*)\.(.*)\.(.*)\.(.*)\.none$/u;
  const hostile = PREFIX + '.'.repeat(512);
  const next = { pattern: /^ratelimit/u, name: 'next', tags: [] };
  expect(mogrify([{ pattern, name: 'slow', tags: [] }, next], hostile).name).toBe('next');

  const mapping = defaultMapping(false);
  const [rule] = mapping.rules;
  if (rule === undefined) throw new Error('no rule');
  const rules = [
    { ...rule, match: pattern, name: 'slow' },
    { ...rule, match: /^ratelimit/u, name: 'next' },
  ];
  expect(new Mapper({ ...mapping, rules }).map(hostile, 'counter')?.name).toBe('next');
});
