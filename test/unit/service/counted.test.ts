import { describe, expect, test } from '@jest/globals';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, type DeciderOptions, descriptor } from '../../support/policy/decider.js';

const POLICY = `
domain: d
descriptors:
  - { key: window, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 0 } }
  - { key: watched, phase: monitoring, rate_limit: { unit: minute, requests_per_unit: 0 } }
  - { key: detailed, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: replaced, rate_limit: { name: replaced, unit: minute, requests_per_unit: 1 } }
  - { key: replacing, rate_limit: { replaces: [{ name: replaced }], unit: minute, requests_per_unit: 1 } }
  - { key: deny, rate_limit: { on_store_failure: deny, unit: minute, requests_per_unit: 7 } }
  - { key: allow, rate_limit: { on_store_failure: allow, unit: minute, requests_per_unit: 7 } }
  - { key: local, rate_limit: { on_store_failure: local, unit: minute, requests_per_unit: 7 } }
`;

const decider = (options: DeciderOptions = {}): Decider => new Decider(POLICY, options);

const one = (key: string) => descriptor([`${key}=x`]);
const GOOD = { fromCaller: false, overLimit: false, shadowed: false };

describe("the reference's counters", () => {
  test('contain each descriptor with a limit, with its hits and the used hits', () => {
    const on = decider();
    on.answer([one('window'), descriptor(['window=x'], { hitsAddend: 3 }), one('nothing')]);
    expect(on.observer.descriptors).toEqual([
      { ...GOOD, stat: 'd.window', hits: 1, used: 1 },
      { ...GOOD, stat: 'd.window', hits: 3, used: 4, overLimit: true },
    ]);
  });

  test('contain a rule with detailed_metric under the values of the request', () => {
    const on = decider();
    on.answer([descriptor(['detailed=v1'])]);
    expect(on.observer.descriptors).toEqual([{ ...GOOD, stat: 'd.detailed_v1', hits: 1, used: 1 }]);
  });

  test('contain no unlimited and replaced rules, and no descriptors without a rule', () => {
    const on = decider();
    on.answer([one('free'), one('replaced'), one('nothing'), one('replacing')]);
    expect(on.observer.descriptors.map(({ stat }) => stat)).toEqual(['d.replacing']);
  });

  test('contain requests that shadow_mode or the phase allows', () => {
    const on = decider();
    on.answer([one('shadow'), one('watched')]);
    expect(on.observer.descriptors).toMatchObject([
      { stat: 'd.shadow', overLimit: true, shadowed: true },
      { stat: 'd.watched', overLimit: true, shadowed: true },
    ]);
  });

  test('do not count requests that SHADOW_MODE allows as shadowed', () => {
    const on = decider({ answers: { shadowMode: true } });
    on.answer([one('window')], 3);
    expect(on.observer.descriptors).toMatchObject([{ overLimit: true, shadowed: false }]);
  });

  test('contain overrides under a name of their entries, with redacted credentials', () => {
    const on = decider();
    const limit = { requestsPerUnit: 1, unit: 1 };
    on.answer([
      descriptor(['window=x', 'b', 'c=1.2'], { limit }),
      descriptor(['api_key=sekret', 'b=c'], { limit }),
    ]);
    expect(on.observer.descriptors).toMatchObject([
      { stat: 'd.window_x.b.c_1.2', fromCaller: true, used: 1 },
      { stat: expect.stringMatching(/^d\.api_key_\[redacted sha256:[0-9a-f]{8}\]\.b_c$/), fromCaller: true },
    ]);
  });

  test('contain hits without an outcome and the cause, while the store is unavailable', () => {
    const on = decider({ store: new UnavailableStore() });
    on.ask([one('window'), one('allow')], 2);
    expect(on.observer.descriptors).toEqual([
      { ...GOOD, stat: 'd.window', hits: 2, used: undefined },
      { ...GOOD, stat: 'd.allow', hits: 2, used: undefined },
    ]);
    expect(on.observer.told).toContain('failed for redis');
  });

  test('contain the answers of the rules while the store is unavailable', () => {
    const on = decider({ store: new UnavailableStore() });
    on.answer([one('allow'), one('local')], 2);
    on.answer([one('deny')], 2);
    expect(on.observer.descriptors).toEqual([
      { ...GOOD, stat: 'd.allow', hits: 2, used: undefined },
      { ...GOOD, stat: 'd.local', hits: 2, used: 2 },
      { ...GOOD, stat: 'd.deny', hits: 2, used: 9, overLimit: true },
    ]);
    expect(on.observer.told).not.toContain('failed for redis');
  });
});
