import { describe, expect, test } from '@jest/globals';
import { readMogrifiers } from '../../../../src/server/settings/read-settings.js';
import { mogrify } from '../../../../src/telemetry/statsd/dogstatsd-udp.js';
import { cases } from '../../../support/assert/cases.js';

const HITS = {
  DOG_STATSD_MOGRIFIER_HITS_PATTERN: '^ratelimit\\.service\\.rate_limit\\.([^.]+)\\.(.*)\\.([^.]+)$',
  DOG_STATSD_MOGRIFIER_HITS_NAME: 'ratelimit.service.rate_limit.$3',
  DOG_STATSD_MOGRIFIER_HITS_TAGS: 'domain:$1,descriptor:$2',
};

function read(names: readonly string[], environment: Readonly<Record<string, string>>) {
  const result = readMogrifiers(names, environment);
  if (!result.ok) throw new Error(result.errors.join('; '));
  return result.mogrifiers;
}

describe('mogrifiers', () => {
  test('parse a name', () => {
    expect(mogrify(read(['HITS'], HITS), 'ratelimit.service.rate_limit.d.a_b.c.total_hits')).toEqual({
      name: 'ratelimit.service.rate_limit.total_hits',
      tags: [
        ['domain', 'd'],
        ['descriptor', 'a_b.c'],
      ],
    });
  });

  test('do not change a name without a match', () => {
    expect(mogrify(read(['HITS'], HITS), 'other')).toEqual({ name: 'other', tags: [] });
  });

  test('keep the reference to a missing group', () => {
    const more = { ...HITS, DOG_STATSD_MOGRIFIER_HITS_TAGS: 'a:$1,b:$9,c:fixed,d:$0' };
    const { tags } = mogrify(read(['hits'], more), 'ratelimit.service.rate_limit.d.k.x');
    expect(Object.fromEntries(tags)).toEqual({
      a: 'd',
      b: '$9',
      c: 'fixed',
      d: 'ratelimit.service.rate_limit.d.k.x',
    });
  });

  test('use the first match', () => {
    const mogrifiers = read(['ONE', 'HITS'], {
      ...HITS,
      DOG_STATSD_MOGRIFIER_ONE_PATTERN: '\\.one$',
      DOG_STATSD_MOGRIFIER_ONE_NAME: 'one',
    });
    expect(mogrify(mogrifiers, 'ratelimit.service.rate_limit.d.k.one').name).toBe('one');
    expect(mogrify(mogrifiers, 'ratelimit.service.rate_limit.d.k.two').name).toBe(
      'ratelimit.service.rate_limit.two',
    );
  });

  test.each(cases`
    no pattern => HITS_PATTERN => ${''} => this variable is not set
    no name => HITS_NAME => ${''} => this variable is not set
    a bad pattern => HITS_PATTERN => ( => "(" is not a valid
    a tag without name => HITS_TAGS => :5 => must be a list
    a tag without value => HITS_TAGS => a: => must be a list
    a tag without colon => HITS_TAGS => a => must be a list
  `)('%s is an error', (_what, field, value, sentence) => {
    const name = `DOG_STATSD_MOGRIFIER_${field}`;
    const result = readMogrifiers(['HITS'], { ...HITS, [name]: value });
    expect(result.ok ? [] : result.errors).toEqual([expect.stringContaining(`${name}: ${sentence}`)]);
  });

  test('the plural form in other documentation is reported', () => {
    const result = readMogrifiers(['X'], {
      DOG_STATSD_MOGRIFIERS_X_PATTERN: 'a',
      DOG_STATSD_MOGRIFIER_X_NAME: 'b',
    });
    expect(result.ok ? [] : result.errors).toEqual([
      expect.stringContaining('has an extra S after MOGRIFIER'),
    ]);
  });
});
