import { jest, test } from '@jest/globals';
import fc from 'fast-check';
import { TimeReader } from '../../../src/replay/log/lines/time-reader.js';
import { jsonFormat } from '../../../src/replay/log/log-format.js';
import { expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { lineValues } from '../../support/replay/read-line.js';

// These tests do not wait for anything, but may be slow on a busy machine.
jest.setTimeout(60_000);

const ISO = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/;
const EPOCH = /^(\d{9,16})(?:\.(\d{1,9}))?$/;

/** Reads a time with regular expressions and BigInt. Returns microseconds and precision. */
function expectedTime(text: string): readonly [micros: number, precision: number] | undefined {
  const iso = ISO.exec(text);
  if (iso !== null) {
    const [year = 0, month = 0, day = 0, hours = 0, minutes = 0, seconds = 0] = iso.slice(1, 7).map(Number);
    const [, , , , , , , fraction = '', offset = 'Z'] = iso;
    const date = new Date(Date.UTC(year, month - 1, day));
    const exists =
      date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
    if (!exists || hours > 23 || minutes > 59 || seconds > 60) return undefined;
    const shift =
      offset === 'Z'
        ? 0
        : Number(`${offset[0]}1`) * (Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2)));
    const total = date.getTime() / 1000 + (hours * 60 + minutes - shift) * 60 + seconds;
    return [
      total * 1e6 + Number(fraction.padEnd(6, '0').slice(0, 6)),
      10 ** Math.max(0, 6 - fraction.length),
    ];
  }
  const epoch = EPOCH.exec(text);
  if (epoch === null) return undefined;
  const [, whole = '', fraction = ''] = epoch;
  const digits = whole.length < 12 ? 6 : whole.length < 15 ? 3 : 0;
  const kept = fraction.slice(0, digits);
  return [Number(BigInt(whole + kept.padEnd(digits, '0'))), 10 ** (digits - kept.length)];
}

const digitsOf = (min: number, max: number) =>
  fc.array(fc.constantFrom(...'0123456789'), { minLength: min, maxLength: max }).map((all) => all.join(''));
const two = fc.nat(61).map((number) => String(number).padStart(2, '0'));
const fraction = fc.oneof(
  fc.constant(''),
  fc.tuple(fc.constantFrom('.', ','), digitsOf(0, 10)).map((all) => all.join('')),
);
const offset = fc.oneof(
  fc.constantFrom('', 'Z', 'z', '+'),
  fc.tuple(fc.constantFrom('+', '-'), two, fc.constantFrom('', ':'), two).map((all) => all.join('')),
);
const isoText = fc
  .tuple(
    fc.integer({ min: 1000, max: 2100 }),
    two,
    two,
    fc.constantFrom('T', ' ', 't'),
    two,
    two,
    two,
    fraction,
    offset,
  )
  .map(([year, month, day, t, h, m, s, f, o]) => `${year}-${month}-${day}${t}${h}:${m}:${s}${f}${o}`);
const likelyText = fc
  .tuple(fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }), fraction, offset)
  .map(([date, f, o]) => date.toISOString().slice(0, 19) + f + o);
const epochText = fc.tuple(digitsOf(7, 18), fraction).map((all) => all.join(''));
/** Replaces a character by another one. */
const spoiled = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.nat(30), fc.constantFrom('-', ':', '.', '0', 'Z', ' ', 'x'))
    .map(([whole, at, character]) =>
      at < whole.length ? whole.slice(0, at) + character + whole.slice(at + 1) : whole + character,
    );
const timeText = fc.oneof(
  likelyText,
  isoText,
  epochText,
  spoiled(likelyText),
  spoiled(epochText),
  fc.string(),
);

test('reads the same times as a regular expression', () => {
  // The reader remembers the latest date, so it reads several times.
  const property = fc.property(fc.array(timeText, { minLength: 1, maxLength: 4 }), (texts) => {
    const reader = new TimeReader();
    for (const text of texts) {
      const isTime = reader.read(`"${text}"`, 1, text.length + 1);
      const expected = expectedTime(text);
      expectEqual(
        { text, time: isTime ? [reader.micros, reader.precisionMicros] : undefined },
        { text, time: Number.isSafeInteger(expected?.[0]) ? expected : undefined },
      );
    }
  });
  fc.assert(property, runs(3000));
});

const NAMES = ['at', 'tenant', 'x-a', 'a.b', 'a', 'é', '"', 'b\\', 'tenant"'];
const scalar = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('-', '', 'tenant', '"tenant":', '{', '}', '\\', 'null', '日本', ...NAMES),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(null, true, false, 0, -0, 0.5, 1e21, 1e-7, 10.5, 100),
);
const value = fc.oneof(
  { weight: 5, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.dictionary(fc.constantFrom(...NAMES), scalar, { maxKeys: 3 }) },
);
const object = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...NAMES, 'other'), value), { selector: ([name]) => name })
  .map((members) => Object.fromEntries(members));
/** JSON of one line, written in different ways. */
const jsonText = fc.tuple(object, fc.nat(3)).map(([members, style]) => {
  if (style === 0) return JSON.stringify(members, null, 1).replaceAll('\n', '');
  if (style === 1) return JSON.stringify(members).replaceAll('/', '\\/');
  return JSON.stringify(members);
});

const MEMBERS = [['at'], ['tenant'], ['x-a'], ['a', 'b'], ['a'], ['é'], ['"'], ['b\\'], ['missing']];
const OPERATORS = MEMBERS.map((path) => path.join('>'));
const FORMAT = jsonFormat(
  'a test',
  MEMBERS.map((path, i) => ({ path, operators: [OPERATORS[i] as string] })),
);

function expectedValues(text: string): readonly (string | undefined)[] {
  const parsed = JSON.parse(text) as Record<string, unknown>;
  const own = (of: unknown, name: string): unknown =>
    typeof of === 'object' && of !== null && Object.hasOwn(of, name)
      ? (of as Record<string, unknown>)[name]
      : undefined;
  return MEMBERS.map((path) => {
    const nested = path.reduce<unknown>((of, name) => own(of, name), parsed);
    const found = nested ?? (path.length > 1 ? own(parsed, path.join('.')) : undefined);
    if (found === '-' || found === null || found === undefined || typeof found === 'object') return undefined;
    return String(found);
  });
}

test('finds the same members as a parser', () => {
  const property = fc.property(fc.array(jsonText, { minLength: 1, maxLength: 5 }), (lines) => {
    // The reader remembers the order of the members in the previous lines.
    const read = lineValues(FORMAT, OPERATORS);
    for (const line of lines)
      expectEqual({ line, values: read(line) }, { line, values: expectedValues(line) });
  });
  fc.assert(property, runs(3000));
});

test('rejects the same damaged lines as a parser, unless all members are whole', () => {
  const property = fc.property(jsonText, fc.nat(200), (line, length) => {
    const cut = line.slice(0, Math.min(length, line.length - 1));
    expectEqual({ cut, values: lineValues(FORMAT, OPERATORS)(cut) }, { cut, values: 'not_json' });
  });
  fc.assert(property, runs(1000));
});
