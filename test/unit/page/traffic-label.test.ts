import { describe, expect, test } from '@jest/globals';
import { trafficLabel } from '../../../src/page/text/traffic-label.js';

describe('the label of a count', () => {
  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'tenant/override'])(
    '%s is a rule like others',
    (rule) => expect(trafficLabel(rule, () => false)).toEqual({ path: rule }),
  );

  test.each(['override', 'other'])('for %s is a phrase', (rule) => {
    const { path, special } = trafficLabel(rule, () => false);
    expect([path, special]).toEqual([undefined, expect.stringMatching(/ /)]);
  });

  test('for a rule with a reserved name contains the rule and the other meaning', () => {
    expect(trafficLabel('override', () => true)).toEqual({
      path: 'override',
      special: 'also counts overrides (limits in requests)',
    });
  });
});
