import { test } from '@jest/globals';
import fc from 'fast-check';
import { expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { invalidFile, PolicyDir, statesOf, UNPARSEABLE, validFile } from '../support/policy/policy-dir.js';

const FILES = ['a.yaml', 'b.yaml', 'c.yaml'] as const;
type FileName = (typeof FILES)[number];

/** Content of a file; absent if there is no file. */
type Content =
  | undefined
  | { readonly kind: 'good' | 'bad'; readonly domain: string; readonly requests: number }
  | { readonly kind: 'unparseable' };

const domain = fc.constantFrom('d', 'e');
const content: fc.Arbitrary<Content> = fc.oneof(
  fc.constant(undefined),
  fc.record({
    kind: fc.constantFrom('good', 'good', 'bad'),
    domain,
    requests: fc.integer({ min: 0, max: 9 }),
  }),
  fc.constant({ kind: 'unparseable' as const }),
);
const reloads = fc.array(fc.record({ 'a.yaml': content, 'b.yaml': content, 'c.yaml': content }), {
  minLength: 1,
  maxLength: 6,
});

function textOf(file: Content): string | undefined {
  if (file === undefined) return undefined;
  if (file.kind === 'unparseable') return UNPARSEABLE;
  return file.kind === 'good' ? validFile(file.domain, file.requests) : invalidFile(file.domain);
}

/** A direct implementation of the rules in the README. */
class Model {
  private inEffect = new Map<string, number>();
  private lastGave = new Map<FileName, string>();

  load(files: Readonly<Record<FileName, Content>>): string[] {
    const named = new Map<string, Content[]>();
    const gave = new Map<FileName, string>();
    for (const name of FILES) {
      const file = files[name];
      if (file === undefined) continue;
      const given = file.kind === 'unparseable' ? this.lastGave.get(name) : file.domain;
      if (given === undefined) continue;
      gave.set(name, given);
      named.set(given, [...(named.get(given) ?? []), file]);
    }
    const before = this.inEffect;
    this.inEffect = new Map();
    this.lastGave = gave;
    return [...named.keys()].sort().map((name) => {
      const [file, ...others] = named.get(name) as Content[];
      const kept = before.get(name);
      if (file?.kind === 'good' && others.length === 0) {
        this.inEffect.set(name, file.requests);
        return `${name}: ok ${file.requests}`;
      }
      if (kept === undefined) return `${name}: absent`;
      this.inEffect.set(name, kept);
      return `${name}: kept ${kept}`;
    });
  }
}

test('each domain has the expected state after any changes to the files', () => {
  fc.assert(
    fc.property(reloads, (sequence) => {
      const policies = new PolicyDir();
      const model = new Model();
      const versions = new Map<string, string>();
      let there = new Set<string>();
      try {
        for (const files of sequence) {
          const texts = FILES.map((name): [string, string | undefined] => [name, textOf(files[name])]);
          const loaded = policies.load(
            Object.fromEntries(texts.filter(([name, text]) => text !== undefined || there.has(name))),
          );
          there = new Set(texts.flatMap(([name, text]) => (text === undefined ? [] : [name])));
          expectEqual(statesOf(loaded), model.load(files));
          const bad = FILES.some((name) => files[name] !== undefined && files[name].kind !== 'good');
          const twice = loaded.domains.some((status) => status.files.length > 1);
          expectSame(loaded.errors.length > 0, bad || twice);
          // A version must never identify two different states.
          const inEffect = [...loaded.policySet.domains.values()].map(({ rules }) => JSON.stringify(rules));
          const { version } = loaded.policySet;
          const known = versions.get(version) ?? inEffect.sort().join();
          expectSame(inEffect.sort().join(), known);
          versions.set(version, known);
        }
      } finally {
        policies.dir.remove();
      }
    }),
    runs(150),
  );
});
