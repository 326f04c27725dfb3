/* Compares the index of blocks and exemptions with a linear search. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { IdentityPart, LiveControl } from '../../src/limiter/control.js';
import type { Entry } from '../../src/limiter/entry.js';
import { unboundedWork } from '../../src/policy/match-work.js';
import { sha256Hex } from '../../src/policy/names/sha256.js';
import { ControlIndex } from '../../src/service/controls/control-index.js';

const entry = fc.record({ key: fc.constantFrom('a', 'b', 'c'), value: fc.constantFrom('1', '2', '') });
const part = fc
  .tuple(entry, fc.boolean())
  .map(
    ([{ key, value }, secret]): IdentityPart => ({ key, value: secret ? sha256Hex(value) : value, secret }),
  );
const sorted = (parts: readonly IdentityPart[]): IdentityPart[] =>
  [...parts].sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
const control = fc
  .record({
    id: fc.constantFrom('1', '2', '3', '4', '5', '6'),
    kind: fc.constantFrom('block' as const, 'allow' as const),
    domain: fc.constantFrom('d', 'e'),
    identity: fc
      .uniqueArray(part, { minLength: 1, maxLength: 4, selector: (one) => JSON.stringify(one) })
      .map(sorted),
    expiresAtMicros: fc.integer({ min: 0, max: 20 }),
  })
  .map((some): LiveControl => ({ ...some, reason: '', by: '', durationMicros: 1 }));
const change = fc.record({
  set: fc.uniqueArray(control, { maxLength: 4, selector: ({ id }) => id }),
  ended: fc.array(fc.constantFrom('1', '2', '3', '4'), { maxLength: 2 }),
});

function names({ identity }: LiveControl, entries: readonly Entry[]): boolean {
  return identity.every(({ key, value, secret }) =>
    entries.some((one) => one.key === key && (secret ? sha256Hex(one.value) : one.value) === value),
  );
}

test('finds the same controls as a list, after any additions and removals', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ change, anew: fc.constantFrom(false, false, false, true) }), { maxLength: 8 }),
      fc.array(fc.array(entry, { maxLength: 5 }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 0, max: 20 }),
      (changes, asked, now) => {
        const index = new ControlIndex(() => now);
        const list = new Map<string, LiveControl>();
        for (const { change: one, anew } of changes) {
          index.apply({ ...one, isReset: anew, granted: [] });
          if (anew) list.clear();
          for (const id of one.ended) list.delete(id);
          for (const made of one.set) list.set(made.id, made);
        }
        for (const domain of ['d', 'e']) {
          const ofDomain = [...list.values()].filter((made) => made.domain === domain);
          expect(index.blocks(domain)).toBe(ofDomain.some(({ kind }) => kind === 'block'));
          expect(index.of(domain) === undefined).toBe(ofDomain.length === 0);
          for (const entries of asked) {
            const found = index.of(domain)?.find(entries, unboundedWork());
            const all = ofDomain.filter((made) => made.expiresAtMicros > now && names(made, entries));
            const blocks = all.filter(({ kind }) => kind === 'block');
            const best = blocks.length > 0 ? blocks : all;
            const last = Math.max(...best.map(({ expiresAtMicros }) => expiresAtMicros));
            expect(found === undefined ? [] : [found]).toEqual(
              best.length === 0
                ? []
                : [expect.objectContaining({ kind: best[0]?.kind, expiresAtMicros: last })],
            );
            if (typeof found === 'object') expect(best).toContain(found);
          }
        }
        const count = (kind: string): number =>
          [...list.values()].filter((made) => made.kind === kind).length;
        expect([index.count('block'), index.count('allow')]).toEqual([count('block'), count('allow')]);
      },
    ),
  );
});
