import { describe, expect, test } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import fc from 'fast-check';
import { BoundedCounters, SeriesBudget } from '../../../src/telemetry/bounded-counters.js';
import {
  countedFamily,
  EventCounter,
  type Family,
  FamilyRegistry,
  familiesText,
  sampledFamily,
} from '../../../src/telemetry/family-registry.js';
import { runs } from '../../support/assert/runs.js';
import { anyText } from '../../support/codec/any-text.js';

const oddText = fc.oneof(
  anyText(),
  fc.constantFrom('\\', '"', '\n', '\\n', '}', '{', ',', '', '\u2028', 'ü"\\\n'),
);
const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 2 ** 53, 1e21, 1e-7),
);

describe('the text of metrics', () => {
  test('equals the output of the Prometheus client', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(oddText, oddText, number), { maxLength: 5 }),
        oddText,
        async (series, help) => {
          const theirs = new Registry();
          const ours = new FamilyRegistry();
          const registers = [theirs];
          const labelNames = ['one', 'other'];
          const text = `h${help}`;
          const counter = new Counter({ name: 'c', help: text, labelNames, registers });
          const gauge = new Gauge({ name: 'g', help: text, labelNames, registers });
          new Gauge({ name: 'none', help: text, registers });
          const histogram = new Histogram({
            name: 'h',
            help: text,
            labelNames,
            registers,
            buckets: [1, 2.5],
          });
          for (const [one, other, value] of series) {
            gauge.set({ one, other }, value);
            if (!Number.isFinite(value)) continue;
            counter.inc({ one, other }, Math.abs(value));
            histogram.observe({ one, other }, value);
          }
          ours.addClient(theirs);
          expect(String(await ours.text())).toBe(await theirs.metrics());
        },
      ),
      runs(300),
    );
  });

  test('for own gauges and counters equals the output of the Prometheus client for the same numbers', async () => {
    const anyEvents = fc.array(fc.tuple(oddText, fc.nat()), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(anyEvents, number, oddText, async (events, alone, help) => {
        const theirs = new Registry();
        const ours = new FamilyRegistry();
        const text = `h${help}`;
        const counter = new Counter({ name: 'c', help: text, labelNames: ['one'], registers: [theirs] });
        const head = { help: text, type: 'counter', aggregator: 'sum' };
        const counted = new EventCounter<'one'>({ name: 'c', ...head }, true);
        ours.addFamily(counted);
        new Counter({ name: 'none', help: text, registers: [theirs] });
        ours.addFamily(new EventCounter({ name: 'none', ...head }, false));
        const gauge = new Gauge({ name: 'g', help: text, labelNames: ['one'], registers: [theirs] });
        const last = new Map(events);
        const own = { help: text, type: 'gauge', aggregator: 'sum' };
        ours.addFamily(
          sampledFamily({ name: 'g', ...own }, () => [...last].map(([one, value]) => [{ one }, value])),
        );
        new Gauge({ name: 'a', help: text, registers: [theirs] }).set(alone);
        ours.addFamily(sampledFamily({ name: 'a', ...own }, () => alone));
        for (const [one, value] of events) {
          counter.inc({ one }, value);
          counted.inc({ one }, value);
          gauge.set({ one }, value);
        }
        expect(String(await ours.text())).toBe(await theirs.metrics());
      }),
      runs(300),
    );
  });

  test('for counted series equals the output of the Prometheus client for the same numbers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(oddText, oddText, fc.nat()), { maxLength: 8 }), async (events) => {
        const theirs = new Registry();
        const counter = new Counter({
          name: 'c',
          help: 'h',
          labelNames: ['one', 'other', 'code'],
          registers: [theirs],
        });
        const counts = new BoundedCounters(new SeriesBudget(100), 1);
        // The client mistakes label sets for each other if their joined texts are equal.
        const known = new Set<string>();
        for (const [one, other, more] of events) {
          const hash = `${one}|${other}`;
          const exact = JSON.stringify([one, other]);
          if (known.has(hash) && !known.has(exact)) continue;
          known.add(hash).add(exact);
          counter.inc({ one, other, code: 'x' }, more);
          const values = counts.series(one, other);
          values[0] = (values[0] as number) + more;
        }
        const head = { name: 'c', help: 'h', type: 'counter', aggregator: 'sum' };
        const family = countedFamily(head, ['one', 'other', 'code'], counts, (values) => [
          ['code="x"', values[0] ?? 0],
        ]);
        const lines = (text: string): string[] => text.split('\n').sort();
        expect(lines(String(familiesText([family])))).toEqual(lines(await theirs.metrics()));
      }),
      runs(300),
    );
  });
});

describe('values above the maximum number of series', () => {
  const entriesOf = (counts: BoundedCounters): readonly unknown[] => {
    const entries: unknown[] = [];
    counts.forEach((...entry) => {
      entries.push(entry);
    });
    return entries;
  };
  const create = (most: number) => {
    const counts = new BoundedCounters(new SeriesBudget(most), 1);
    const count = (one: string, other: string): void => {
      const values = counts.series(one, other);
      values[0] = (values[0] as number) + 1;
    };
    return { counts, count };
  };

  test('count in a separate series', () => {
    const { counts, count } = create(1);
    for (const name of ['a', 'b', 'c']) count(name, 'x');
    expect(entriesOf(counts)).toEqual([
      ['a', 'x', [1]],
      ['other', 'other', [2]],
    ]);
  });

  test('or in the series with that name, and never twice', () => {
    const { counts, count } = create(1);
    for (const name of ['other', 'b', 'c']) count(name, 'other');
    expect(entriesOf(counts)).toEqual([['other', 'other', [3]]]);
  });
});

test('a long text is complete, whatever the length of its series', () => {
  const series = Array.from({ length: 3000 }, (_, at) => `${'ü€x'.repeat(at % 700)}${at}`);
  const family: Family = {
    name: 'c',
    help: 'h',
    type: 'gauge',
    aggregator: 'sum',
    eachSample(take) {
      for (const [at, each] of series.entries()) take(each, at);
    },
  };
  const lines = series.map((each, at) => `${each} ${at}\n`);
  expect(String(familiesText([family]))).toBe(`# HELP c h\n# TYPE c gauge\n${lines.join('')}`);
});
