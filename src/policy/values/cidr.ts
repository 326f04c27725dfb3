import { safePrefix } from '../../runtime/shown-address.js';

/** Address family of a string: 0 if it is not an address. */
export type AddressFamily = 0 | 4 | 6;

/** Maximum length of an address: eight groups, the last two as IPv4. */
const MAX_ADDRESS_LENGTH = 45;
const GROUPS = 8;
const COLON = 0x3a;
const DOT = 0x2e;
/** The two words before the last one of an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2), `::ffff:0:0/96`. */
const MAPPED_WORD = 0xffff;

const canonicalWords = new Uint32Array(4);
/** Groups of the current address. */
const groups = new Uint16Array(GROUPS);

/**
 * Parses an IP address like inet_pton: four decimal numbers without leading zeros, or IPv6 (RFC 4291, section 2.2). A
 * port, brackets, a zone or spaces are invalid. An IPv4-mapped IPv6 address counts as IPv4, because dual-stack sockets
 * name IPv4 peers in this form. Reads at most 45 characters. IPv4 is written to `words[0]`, IPv6 to the four `words`,
 * most significant first.
 */
export function readAddress(text: string, words: Uint32Array): AddressFamily {
  const family = readRaw(text, words);
  if (family !== 6 || words[0] !== 0 || words[1] !== 0 || words[2] !== MAPPED_WORD) return family;
  words[0] = words[3] as number;
  return 4;
}

function readRaw(text: string, words: Uint32Array): AddressFamily {
  const { length } = text;
  if (length < 2 || length > MAX_ADDRESS_LENGTH) return 0;
  const ipv4 = readIpv4(text, 0);
  if (ipv4 >= 0) {
    words[0] = ipv4;
    return 4;
  }
  if (!readGroups(text)) return 0;
  for (let i = 0; i < 4; i++) {
    words[i] = (groups[2 * i] as number) * 0x1_0000 + (groups[2 * i + 1] as number);
  }
  return 6;
}

/** Returns the IPv4 address from `from` to the end; -1 if it is invalid. */
function readIpv4(text: string, from: number): number {
  let address = 0;
  let number = -1;
  let dots = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (number < 0 || dots === 3) return -1;
      address = address * 256 + number;
      number = -1;
      dots++;
    } else {
      const digit = code - 0x30;
      // A leading zero means octal to some parsers and decimal to others.
      if (digit < 0 || digit > 9 || number === 0) return -1;
      number = number < 0 ? digit : number * 10 + digit;
      if (number > 255) return -1;
    }
  }
  return dots === 3 && number >= 0 ? address * 256 + number : -1;
}

/** Parses IPv6 into `groups`. */
function readGroups(text: string): boolean {
  const { length } = text;
  let count = 0;
  let gap = -1;
  let at = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return false;
    gap = 0;
    at = 2;
  }
  while (at < length) {
    if (count === GROUPS) return false;
    const start = at;
    let group = 0;
    let digit = 0;
    while (at < length) {
      digit = hexDigit(text.charCodeAt(at));
      if (digit < 0) break;
      group = group * 16 + digit;
      at++;
    }
    if (at < length && text.charCodeAt(at) === DOT) {
      if (count > GROUPS - 2) return false;
      const ipv4 = readIpv4(text, start);
      if (ipv4 < 0) return false;
      groups[count++] = ipv4 >>> 16;
      groups[count++] = ipv4 & 0xffff;
      break;
    }
    if (at === start || at - start > 4) return false;
    groups[count++] = group;
    if (at === length) break;
    if (text.charCodeAt(at) !== COLON || at + 1 === length) return false;
    at++;
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return false;
      gap = count;
      at++;
    }
  }
  if (gap < 0) return count === GROUPS;
  if (count === GROUPS) return false;
  const zeros = GROUPS - count;
  for (let i = count - 1; i >= gap; i--) groups[i + zeros] = groups[i] as number;
  for (let i = gap; i < gap + zeros; i++) groups[i] = 0;
  return true;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Returns the RFC 5952 text of an address from {@link readAddress}, which is the same for all spellings. */
export function addressText(family: 4 | 6, words: Uint32Array): string {
  if (family === 4) return ipv4Text(words[0] as number);
  // The longest run of zero groups, or the first of equal ones; a single zero group is written out.
  let from = 0;
  let longestRun = 1;
  let run = 0;
  for (let i = 0; i < GROUPS; i++) {
    run = groupOf(words, i) === 0 ? run + 1 : 0;
    if (run <= longestRun) continue;
    longestRun = run;
    from = i + 1 - run;
  }
  let text = '';
  for (let i = 0; i < GROUPS; i++) {
    if (longestRun > 1 && i === from) {
      text += '::';
      i += longestRun - 1;
    } else {
      if (text !== '' && !text.endsWith(':')) text += ':';
      text += groupOf(words, i).toString(16);
    }
  }
  return text;
}

function groupOf(words: Uint32Array, group: number): number {
  const word = words[group >> 1] as number;
  return group % 2 === 0 ? word >>> 16 : word & 0xffff;
}

/**
 * Returns the spelling of an address, or of a {@link networkOf | network}, in bucket names; undefined for other
 * strings. A network of one address is that address.
 */
export function canonicalAddress(text: string): string | undefined {
  if (text.includes('/')) {
    const network = networkOf(text);
    return network?.text.replace(network.family === 4 ? /\/32$/ : /\/128$/, '');
  }
  const words = canonicalWords;
  const family = readAddress(text, words);
  return family === 0 ? undefined : addressText(family, words);
}

function ipv4Text(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}

/** A block of addresses. */
export interface CidrBlock {
  readonly family: 4 | 6;
  /** The first address, as a number. */
  readonly first: bigint;
  readonly prefix: number;
  /** Canonical text, such as `10.0.0.0/8`. */
  readonly text: string;
}

/**
 * Parses `10.0.0.0/8`, `2001:db8::/32`, or an address, which is a block of one. Blocks of IPv4-mapped addresses become
 * IPv4 blocks. Returns an error message with a remedy if the text is invalid.
 */
export function parseBlock(text: string): CidrBlock | string {
  const shown = safePrefix(text);
  const slash = text.indexOf('/');
  const words = new Uint32Array(4);
  const raw = readRaw(slash < 0 ? text : text.slice(0, slash), words);
  if (raw === 0) {
    return `"${shown}" is not a valid CIDR block; write a block such as 10.0.0.0/8 or 2001:db8::/32`;
  }
  const bits = raw === 4 ? 32 : 128;
  const prefixText = slash < 0 ? String(bits) : text.slice(slash + 1);
  const prefix = /^(0|[1-9][0-9]{0,2})$/.test(prefixText) ? Number(prefixText) : bits + 1;
  if (prefix > bits) {
    return `"${shown}" has no prefix length after its "/"; write a number from 0 to ${bits}`;
  }
  const address = raw === 4 ? BigInt(words[0] as number) : wordsToNumber(words);
  const hostBits = BigInt(bits - prefix);
  const first = (address >> hostBits) << hostBits;
  if (first !== address) {
    const meant = blockOf(raw, first, prefix).text;
    const one = blockOf(raw, address, bits).text;
    return `"${shown}" has bits set after its prefix; write ${meant}, or ${one} for this one address`;
  }
  return blockOf(raw, first, prefix);
}

/** Maximum length of a block. */
export const MAX_BLOCK_LENGTH = MAX_ADDRESS_LENGTH + '/128'.length;

/**
 * Returns the block of a network as sent by Envoy's action masked_remote_address: `192.0.2.0/24`. Undefined for other
 * strings.
 */
export function networkOf(text: string): CidrBlock | undefined {
  if (text.length > MAX_BLOCK_LENGTH) return undefined;
  // Paths contain slashes, too, and return early.
  const slash = text.indexOf('/');
  if (slash < '::'.length || text.length - slash > '/128'.length) return undefined;
  const block = parseBlock(text);
  return typeof block === 'string' ? undefined : block;
}

/** Converts blocks of IPv4-mapped addresses to IPv4, because weir converts such addresses before it compares them. */
function blockOf(raw: 4 | 6, first: bigint, prefix: number): CidrBlock {
  const isMapped = raw === 6 && prefix >= 96 && first >> 32n === BigInt(MAPPED_WORD);
  const family = isMapped ? 4 : raw;
  const from = isMapped ? first & 0xffff_ffffn : first;
  const length = isMapped ? prefix - 96 : prefix;
  return {
    family,
    first: from,
    prefix: length,
    text: `${addressText(family, wordsOf(family, from))}/${length}`,
  };
}

function wordsToNumber(words: Uint32Array): bigint {
  return words.reduce((number, word) => (number << 32n) | BigInt(word), 0n);
}

/** Returns a number in the words of {@link readAddress}. */
export function wordsOf(family: 4 | 6, number: bigint): Uint32Array {
  if (family === 4) return Uint32Array.of(Number(number), 0, 0, 0);
  return Uint32Array.from([96n, 64n, 32n, 0n], (shift) => Number((number >> shift) & 0xffff_ffffn));
}
