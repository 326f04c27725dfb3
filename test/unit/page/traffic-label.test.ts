import { describe, expect, test } from '@jest/globals';
import { trafficLabel } from '../../../src/page/text/traffic-label.js';

describe('what is counted under a name', () => {
  test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty', 'tenant/block'])(
    '%s is a rule like others',
    (rule) => expect(trafficLabel(rule, () => false)).toEqual({ path: rule }),
  );

  test.each(['override', 'block', 'allow', 'other'])('%s is said in words', (rule) => {
    const { path, special } = trafficLabel(rule, () => false);
    expect([path, special]).toEqual([undefined, expect.stringMatching(/ /)]);
  });

  test('a rule that has such a name is named, with what else counts there', () => {
    expect(trafficLabel('block', () => true)).toEqual({
      path: 'block',
      special: 'also counts blocked callers',
    });
  });
});
