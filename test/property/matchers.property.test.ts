import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { MatchWork } from '../../src/policy/match-work.js';
import {
  addressText,
  canonicalAddress,
  parseBlock,
  readAddress,
  wordsOf,
} from '../../src/policy/values/cidr.js';
import { CidrTable } from '../../src/policy/values/cidr-table.js';
import { patternCost, RegexList } from '../../src/policy/values/regex-list.js';
import { runToCompletion } from '../../src/runtime/turns.js';
import { expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';

/** Groups that are often zero, so that `::` can replace some of them. */
/** Tools match without bounds. */
const UNBOUNDED = new MatchWork();

const group = fc.oneof(fc.constant(0), fc.constant(0xffff), fc.integer({ min: 0, max: 0xffff }));
const ipv4 = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((parts) => parts.join('.'));
/** All spellings of IPv6 addresses, and texts that resemble them. */
const ipv6 = fc
  .record({
    groups: fc.array(group, { minLength: 6, maxLength: 8 }),
    gap: fc.tuple(fc.nat(8), fc.nat(8)),
    upper: fc.boolean(),
    wide: fc.boolean(),
    tail: fc.option(ipv4, { nil: undefined }),
  })
  .map(({ groups, gap: [from, length], upper, wide, tail }) => {
    const hex = groups.map((one) => one.toString(16).padStart(wide ? 4 : 1, '0'));
    if (tail !== undefined) hex.push(tail);
    const text =
      length === 0 ? hex.join(':') : `${hex.slice(0, from).join(':')}::${hex.slice(from + length).join(':')}`;
    return upper ? text.toUpperCase() : text;
  });
const nearly = fc
  .tuple(
    fc.oneof(ipv4, ipv6),
    fc.nat(45),
    fc.constantFrom('', ':', '.', '0', 'g', '%', ' ', '/', '::', '[', '１'),
  )
  .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + 1));
const anyText = fc.oneof(ipv4, ipv6, nearly, fc.string({ maxLength: 50 }), fc.ipV4(), fc.ipV6());

function read(text: string): { family: number; words: Uint32Array } {
  const words = new Uint32Array(4);
  return { family: readAddress(text, words), words };
}

describe('addresses', () => {
  test('are those that node:net accepts, except zones', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expectSame(read(text).family !== 0, isIP(text) !== 0 && !text.includes('%'));
      }),
      runs(20_000),
    );
  });

  test('have one text each, which is parsed as the same address', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6, fc.ipV6()), (text) => {
        const { family, words } = read(text);
        fc.pre(family === 4 || family === 6);
        const canonical = addressText(family as 4 | 6, words);
        const again = read(canonical);
        expectSame(again.family, family);
        const used = family === 4 ? 1 : 4;
        expectEqual(again.words.slice(0, used), words.slice(0, used));
        expectSame(canonicalAddress(canonical), canonical);
        expectSame(family === 4 ? isIPv4(canonical) : isIPv6(canonical), true);
        // The URL parser formats IPv6 addresses as RFC 5952 requires.
        if (family === 6) expectSame(new URL(`http://[${text}]/`).hostname, `[${canonical}]`);
      }),
      runs(5000),
    );
  });

  test('can be blocks with one address, and a block is equal in each spelling', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), (text) => {
        fc.pre(isIP(text) !== 0);
        const block = parseBlock(text);
        if (typeof block === 'string') throw new Error(block);
        expectEqual(parseBlock(block.text), block);
        expectSame(block.text.startsWith(`${canonicalAddress(text)}/`), true);
      }),
      runs(2000),
    );
  });
});

/**
 * Blocks in a small range of addresses and at both ends of the address space, so that one block often contains another.
 */
const smallBlock = fc
  .record({
    family: fc.constantFrom<4 | 6>(4, 6),
    address: fc.nat(0xfff),
    high: fc.boolean(),
    short: fc.nat(12),
    whole: fc.nat(40).map((nat) => nat === 0),
  })
  .map(({ family, address, high, short, whole }) => {
    const bits = family === 4 ? 32 : 128;
    const all = (1n << BigInt(bits)) - 1n;
    const at = high ? all - BigInt(address) : BigInt(address);
    // Blocks at the low end of IPv6 rarely contain IPv4-mapped addresses.
    const prefix = whole ? 0 : bits - short;
    const first = (at >> BigInt(bits - prefix)) << BigInt(bits - prefix);
    return { family, first, prefix, text: `${addressText(family, wordsOf(family, first))}/${prefix}` };
  });

describe('the longest prefix', () => {
  test('is the one that a linear search finds', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(smallBlock, { maxLength: 40, selector: ({ text }) => text }),
        fc.array(
          fc.record({ family: fc.constantFrom<4 | 6>(4, 6), address: fc.nat(0x1fff), high: fc.boolean() }),
        ),
        (blocks, asked) => {
          const table = new CidrTable<string>();
          for (const { text } of blocks) table.add([text], text);
          const other = new CidrTable<string>();
          for (const { text } of blocks) other.add([text], text);
          runToCompletion(other.compile());
          for (const { family, address, high } of asked) {
            const bits = family === 4 ? 32n : 128n;
            const at = high ? (1n << bits) - 1n - BigInt(address) : BigInt(address);
            const text = addressText(family, wordsOf(family, at));
            const naive = blocks
              .filter((block) => block.family === family && inBlock(block, at, bits))
              .reduce((best, block) => (block.prefix > best.prefix ? block : best), { prefix: -1, text: '' });
            expectSame(table.find(text, UNBOUNDED) ?? '', naive.text);
            expectSame(other.find(text, UNBOUNDED) ?? '', naive.text);
          }
        },
      ),
      runs(1000),
    );
  });

  test('matches the addresses that BlockList of node:net matches', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(ipv4, fc.integer({ min: 1, max: 32 })), { maxLength: 10 }),
        fc.array(ipv4, { maxLength: 20 }),
        (nets, asked) => {
          const list = new BlockList();
          const table = new CidrTable<true>();
          const added = new Set<string>();
          for (const [address, prefix] of nets) {
            const first =
              (BigInt(read(address).words[0] as number) >> BigInt(32 - prefix)) << BigInt(32 - prefix);
            const net = addressText(4, wordsOf(4, first));
            list.addSubnet(net, prefix);
            if (!added.has(`${net}/${prefix}`)) table.add([`${net}/${prefix}`], true);
            added.add(`${net}/${prefix}`);
          }
          for (const address of [...asked, ...nets.map(([net]) => net)]) {
            expectSame(table.find(address, UNBOUNDED) === true, list.check(address));
            expectSame(table.find(`::ffff:${address}`, UNBOUNDED) === true, list.check(address));
          }
        },
      ),
      runs(500),
    );
  });
});

function inBlock(
  block: { readonly first: bigint; readonly prefix: number },
  at: bigint,
  bits: bigint,
): boolean {
  const shift = bits - BigInt(block.prefix);
  return at >> shift === block.first >> shift;
}

const piece = fc.constantFrom(
  'a',
  'b',
  '.',
  '[ab]',
  '(a|b)',
  'a*',
  '(ab)+',
  '.*',
  'b?',
  '^',
  '$',
  '\\b',
  'a{2,3}',
  '|',
);
const pattern = fc.array(piece, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));

test('regular expressions find the first one in file order that matches the whole value in JavaScript', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(pattern, { minLength: 1, maxLength: 80 }),
      fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'A', 'c', '\n', 'é', '😀'), maxLength: 12 }), {
        maxLength: 20,
      }),
      (patterns, values) => {
        const list = new RegexList<string>();
        for (const one of patterns) list.add([one], [patternCost(one) as number], one);
        const models = patterns.map((one) => ({ one, model: new RegExp(`^(?:${one})$`, 'u') }));
        for (const value of values) {
          expectSame(
            list.find(value, Buffer.byteLength(value), UNBOUNDED),
            models.find(({ model }) => model.test(value))?.one,
          );
        }
      },
    ),
    runs(300),
  );
});
