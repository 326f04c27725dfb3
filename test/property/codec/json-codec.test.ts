import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { requestFromJson, responseToJson } from '../../../src/codec/json-messages.js';
import { DEFAULT_BOUNDS, DecodeError, type RateLimitRequest } from '../../../src/codec/messages.js';
import { expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { anyText } from '../../support/codec/any-text.js';
import { arbitraryResponse } from '../../support/codec/arbitrary-messages.js';
import { damaged } from '../../support/codec/arbitrary-wire.js';
import { protobufJson } from '../../support/codec/protobuf-json.js';
import { createReferenceCodec } from '../../support/codec/reference-codec.js';

const theirs = protobufJson();
const wire = createReferenceCodec();

type Text = fc.Arbitrary<string>;

function hex(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** Generates a JSON string in which some units are escaped. */
function stringOf(text: Text): Text {
  return fc.tuple(text, fc.nat(6)).map(([value, share]) => {
    let at = 0;
    const escaped = Array.from({ length: value.length }, (_, i) => {
      if (share > 0 && at++ % 7 < share - 1) return hex(value.charCodeAt(i));
      return value[i];
    }).join('');
    // Undoes the escaping of backslashes by JSON.stringify, so that the escapes remain.
    return JSON.stringify(escaped).replaceAll(/\\\\(?=u[0-9a-f]{4})/g, '\\');
  });
}

const textOfAnyKind = fc.oneof(
  anyText({ maxLength: 8 }),
  fc.constantFrom('', 'ü', '😀', '\ud83d', '\ude00x', '\ufeff', '__proto__', '\\u00', '\n"\\/'),
);
const string = fc.oneof(
  stringOf(textOfAnyKind),
  fc.constantFrom(
    '"\\b\\f\\n\\r\\t\\/\\\\\\""',
    '"\\ud83d\\ude00"',
    '"\\uD83D"',
    '"\\x"',
    '"\\u12g4"',
    '"\u0001"',
    '"',
  ),
);
const numeral = fc.oneof(
  fc.nat(300).map(String),
  fc.nat(0xffff_ffff).map(String),
  fc.bigInt({ min: -5n, max: 2n ** 64n + 5n }).map(String),
  fc.constantFrom(
    '-1',
    '-0',
    '0.0',
    '1.5',
    '1e2',
    '1E+2',
    '10e-1',
    '1e400',
    '4294967296',
    '2147483648',
    '-2147483648',
  ),
  fc.constantFrom(
    '01',
    '+1',
    '.5',
    '1.',
    '1e',
    '-',
    '0x10',
    ' 7 ',
    '',
    'NaN',
    'Infinity',
    '9007199254740993',
  ),
  fc.constantFrom(
    '18446744073709551615',
    '18446744073709551616',
    '1e19',
    '1e20',
    '12345678901234567.0',
    '1_0',
  ),
);
const number = fc.oneof(
  { weight: 3, arbitrary: numeral },
  { weight: 1, arbitrary: numeral.map((text) => `"${text}"`) },
);
const unit = fc.oneof(
  fc.constantFrom(
    '"UNKNOWN"',
    '"SECOND"',
    '"MINUTE"',
    '"HOUR"',
    '"DAY"',
    '"MONTH"',
    '"YEAR"',
    '"WEEK"',
    '"hour"',
  ),
  number,
);
const odd = fc.oneof(
  fc.constantFrom('null', 'true', 'false', '[]', '{}', '[null]', 'nul', '', '[[1]]'),
  string,
  number,
);
const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r', '\u00a0');

function joined(open: string, parts: fc.Arbitrary<readonly string[]>, close: string): Text {
  return fc
    .tuple(
      parts,
      fc.array(space, { minLength: 3, maxLength: 3 }),
      fc.constantFrom(',', ',', ',', ',', ',,', ''),
    )
    .map(([items, [before, between, after], comma]) => {
      const separator = items.length > 3 ? `${between}${comma}` : `${between},`;
      return `${open}${before}${items.join(separator)}${after}${close}`;
    });
}

/**
 * Generates an object with some of these members, mostly of the right type. A member may be repeated or use its other
 * name.
 */
function objectOf(members: Readonly<Record<string, Text>>): Text {
  const one = fc.oneof(
    ...Object.entries(members).map(([names, value]) => {
      const [name = '', other = name] = names.split(' ');
      const spelled = fc.oneof(
        { weight: 20, arbitrary: fc.constant(`"${name}"`) },
        { weight: 3, arbitrary: fc.constant(`"${other}"`) },
        {
          weight: 1,
          arbitrary: fc.constantFrom(`"${name}x"`, `"${hex(name.charCodeAt(0))}${name.slice(1)}"`, '"[a.b]"'),
        },
      );
      const valued = fc.oneof({ weight: 12, arbitrary: value }, { weight: 1, arbitrary: odd });
      return fc.tuple(spelled, space, valued).map(([key, between, shown]) => `${key}${between}:${shown}`);
    }),
  );
  return joined('{', fc.array(one, { maxLength: 5 }), '}');
}

function listOf(item: Text): Text {
  return joined(
    '[',
    fc.array(fc.oneof({ weight: 15, arbitrary: item }, { weight: 1, arbitrary: odd }), { maxLength: 3 }),
    ']',
  );
}

const descriptor = objectOf({
  entries: listOf(objectOf({ key: string, value: string })),
  limit: objectOf({ 'requestsPerUnit requests_per_unit': number, unit }),
  'hitsAddend hits_addend': number,
  'isNegativeHits is_negative_hits': fc.constantFrom('true', 'false'),
});
const body = fc
  .tuple(
    fc.constantFrom('', '', '', '', ' ', '\ufeff', '\ufeff\ufeff'),
    objectOf({ domain: string, descriptors: listOf(descriptor), 'hitsAddend hits_addend': number }),
    fc.constantFrom('', '', '', ' \n', 'x', '\0'),
  )
  .map((parts) => Buffer.from(parts.join('')));

/**
 * Returns whether JSON.parse would lose digits of a number, so that the results cannot be compared. These are numbers
 * of more than 15 digits under a name with escapes, and numbers with leading zeros, which are not JSON.
 */
function losesDigits(json: Uint8Array): boolean {
  return /\\u[^"]*"\s*:\s*"?\d{16,}|:\s*0\d{15,}/.test(Buffer.from(json).toString());
}

let accepted = 0;
function expectTheSame(json: Uint8Array): void {
  // Only short bodies contain numbers.
  if (json.length < 10_000 && losesDigits(json)) return;
  const message = theirs.requestToWire(json);
  const expected = message && wire.decodeRequest(message);
  let request: RateLimitRequest | undefined;
  try {
    request = requestFromJson(json, DEFAULT_BOUNDS);
  } catch (error) {
    expect(error).toBeInstanceOf(DecodeError);
    expect((error as Error).message).toMatch(/^.{10,400}$/s);
  }
  if (expected !== undefined) accepted++;
  expectSame(request && JSON.stringify(request), expected && JSON.stringify(inOrder(expected)));
}

/** Returns a request with its fields in the order of {@link requestFromJson}. */
function inOrder({ domain, descriptors, hitsAddend }: RateLimitRequest): RateLimitRequest {
  return {
    domain,
    descriptors: descriptors.map(({ entries, limit, hitsAddend: hits, isNegativeHits }) => ({
      entries: entries.map(({ key, value }) => ({ key, value })),
      limit: limit && { requestsPerUnit: limit.requestsPerUnit, unit: limit.unit },
      hitsAddend: hits,
      isNegativeHits,
    })),
    hitsAddend,
  };
}

describe('a request in protobuf JSON against @bufbuild/protobuf', () => {
  test('is decoded in the same way, or refused by both', () => {
    accepted = 0;
    fc.assert(fc.property(body, expectTheSame), runs(3000));
    // Some bodies must be accepted.
    expect(accepted).toBeGreaterThan(30);
  });

  test('is decoded in the same way after damage, or refused by both', () => {
    fc.assert(fc.property(damaged(body), expectTheSame), runs(3000));
  });

  test('is decoded in the same way with long strings', () => {
    accepted = 0;
    const long = fc
      .tuple(string, fc.integer({ min: 1000, max: 8000 }))
      .map(([text, count]) => `"${text.slice(1, -1).repeat(count)}"`);
    const large = objectOf({
      domain: long,
      descriptors: listOf(objectOf({ entries: listOf(objectOf({ key: long, value: long })) })),
    }).map((text) => Buffer.from(text));
    fc.assert(fc.property(large, expectTheSame), runs(200));
    expect(accepted).toBeGreaterThan(3);
  });
});

describe('a response in protobuf JSON against @bufbuild/protobuf', () => {
  // A google.protobuf.Duration is limited to 10,000 years.
  const response = arbitraryResponse().map((message) => ({
    ...message,
    statuses: message.statuses.map((status) => ({
      ...status,
      durationUntilResetSeconds:
        status.durationUntilResetSeconds && Math.min(status.durationUntilResetSeconds, 315_576_000_000),
    })),
  }));

  test('has the same content', () => {
    fc.assert(
      fc.property(response, (message) => {
        const expected = theirs.responseFromWire(wire.encodeResponse(message));
        const text = responseToJson(message);
        expectSame(isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(expected))), true);
      }),
      { numRuns: 200 },
    );
  });
});
