import { describe, expect, test } from '@jest/globals';
import { openConfigMaps } from '../../../../src/config/manifests/config-maps.js';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { MAX_FILE_BYTES } from '../../../../src/config/yaml/yaml-value.js';
import { parsePolicy } from '../../../support/policy/parse-policy.js';

const TEXT = 'domain: d\n# c\ndescriptors:\n- key: k\n  value: "\u{1F600} b"\n  rate_limit: {}\n';
const FOUND = [
  'policy.yaml:6:15: descriptors[0].rate_limit: "rate_limit" is empty; write token_bucket, or unit and',
];

const littleEndian = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');
const bigEndian = (text: string): Buffer => littleEndian(text).swap16();

/** Returns the messages for a file up to `and`. Positions are those in an editor. */
function said(bytes: Uint8Array): readonly string[] {
  const { problems } = parsePolicy('policy.yaml', bytes, () => Buffer.alloc(0));
  return problems.errors.map((error) => formatProblem(error).replace(/ and .*/, ' and'));
}

describe('a file that the reference reads is read, and its errors have positions', () => {
  test.each([
    ['UTF-8', Buffer.from(TEXT)],
    ['UTF-8 with a byte-order mark', Buffer.from(`\ufeff${TEXT}`)],
    ['UTF-16, little endian', littleEndian(TEXT)],
    ['UTF-16, big endian', bigEndian(TEXT)],
    ['carriage returns', Buffer.from(TEXT.replaceAll('\n', '\r'))],
    ['carriage returns and line feeds', Buffer.from(TEXT.replaceAll('\n', '\r\n'))],
    ['both line breaks', Buffer.from(TEXT.replace('\n', '\r').replace('\n', '\r'))],
    ['U+0085', Buffer.from(TEXT.replaceAll('\n', '\u0085'))],
    ['U+2028', Buffer.from(TEXT.replaceAll('\n', '\u2028'))],
    ['U+2029 and line feeds', Buffer.from(TEXT.replace('\n', '\u2029'))],
    ['UTF-16 with carriage returns', littleEndian(TEXT.replaceAll('\n', '\r'))],
  ])('%s', (_name, bytes) => {
    expect(said(bytes)).toEqual(FOUND);
  });

  test.each([
    ['a\r  b', 'a b'],
    ['a\r\r  b', 'a\nb'],
    ['a\r\n  b', 'a b'],
    ['a\u0085  b', 'a b'],
    ['a\u2028b', 'a\u2028b'],
    ["it's\u2028'\u2028 b", "it's\u2028'\u2028 b"],
    ['\\" #\u2028b', '" #\u2028b'],
  ])('a line break within quotes: %j', (text, value) => {
    const bytes = Buffer.from(
      `domain: d\ndescriptors: [{ key: k, value: "${text}", rate_limit: { unit: day, requests_per_unit: 1 } }]\n`,
    );
    const { policy } = parsePolicy('policy.yaml', bytes, () => Buffer.alloc(0));
    expect(policy?.match([{ key: 'k', value }]).rules).toHaveLength(1);
  });
});

test('quotes in comments and words do not extend over line breaks', () => {
  const text =
    "# don't, \"\u2028domain: it's # '\u2028descriptors:\u2028" +
    "- { key: 'a''s\u2028', rate_limit: { unit: day } } # \"\u2028";
  const { policy } = parsePolicy('policy.yaml', Buffer.from(text), () => Buffer.alloc(0));
  expect(policy?.domain).toBe("it's");
  expect(policy?.match([{ key: "a's\u2028", value: 'x' }]).rules).toHaveLength(1);
});

test.each([
  ['UTF-16', (text: string) => littleEndian(text)],
  ['carriage returns', (text: string) => Buffer.from(text.replaceAll('\n', '\r'))],
])('a ConfigMap in a manifest with %s', (_name, encode) => {
  const indented = TEXT.replaceAll(/^(?=.)/gm, '    ');
  const manifest = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: m }\ndata:\n  p.yaml: |\n${indented}`;
  const parts = openConfigMaps('m.yaml', encode(manifest)) ?? [];
  const problems = parts.flatMap(({ opened }) => opened.source?.root.problems ?? []);
  expect(problems.map(({ file }) => file)).toEqual(['m.yaml']);
  expect(
    parts.flatMap(({ opened }) => opened.source?.root.map.fields.get('descriptors')?.keyAt ?? []),
  ).toEqual([{ line: 8, column: 5 }]);
});

test.each([
  ['without a byte-order mark', Buffer.from(TEXT, 'utf16le'), /: the file is not UTF-8 text/],
  ['of an odd length', Buffer.concat([littleEndian(TEXT), Buffer.from(' ')]), /: the file is not UTF-8 text/],
  [
    'with half a character',
    Buffer.concat([littleEndian(TEXT), Buffer.from([0, 0xd8])]),
    /: the file is not UTF-8 text/,
  ],
  ['in UTF-32', Buffer.concat([Buffer.from([0xff, 0xfe, 0, 0]), Buffer.from(TEXT)]), /: the file is/],
  ['empty', Buffer.from([0xff, 0xfe]), /: the file is empty/],
  [
    'that is too large',
    Buffer.concat([littleEndian(TEXT), Buffer.alloc(MAX_FILE_BYTES, ' ')]),
    /more than the maximum/,
  ],
])('UTF-16 %s is refused', (_name, bytes, message) => {
  expect(said(bytes)).toEqual([expect.stringMatching(message)]);
});
