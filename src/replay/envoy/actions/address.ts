import { BlockList, isIP, isIPv6 } from 'node:net';
import type { FieldReader } from '../../../config/yaml/field-reader.js';
import type { TextPredicate } from './string-matcher.js';

/** Returns the network of an address as Envoy writes it, such as `10.0.0.0/8`; undefined for other text. */
export function maskedAddress(address: string, v4Length: number, v6Length: number): string | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  if (version === 4) {
    const bits = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
    const size = 2 ** (32 - v4Length);
    const network = Math.floor(bits / size) * size;
    const bytes = [24, 16, 8, 0].map((shift) => Math.floor(network / 2 ** shift) % 256);
    return `${bytes.join('.')}/${v4Length}`;
  }
  const groups = groupsOf(address).map((group, i) => {
    const kept = Math.min(Math.max(v6Length - 16 * i, 0), 16);
    return group & (0xffff << (16 - kept)) & 0xffff;
  });
  return `${canonicalV6(groups.map((group) => group.toString(16)).join(':'))}/${v6Length}`;
}

/** Returns the eight numbers of an IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const [head = '', tail] = canonicalV6(address).split('::');
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [numbers(head), numbers(tail ?? '')];
  const zeros = new Array<number>(8 - first.length - last.length).fill(0);
  return [...first, ...zeros, ...last];
}

/** Returns the shortest spelling of an IPv6 address, in lower case (RFC 5952). */
function canonicalV6(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1);
}

/** Compiles envoy.type.matcher.v3.AddressMatcher. */
export function addressMatcher(reader: FieldReader): TextPredicate {
  reader.expectKeys(['ranges', 'invert_match']);
  const list = new BlockList();
  for (const range of reader.mappings('ranges', 'address ranges', 'address_prefix')) {
    const prefix = range.text('address_prefix') ?? '';
    const version = isIP(prefix);
    if (version === 0) {
      range.error(
        'address_prefix',
        `"${prefix.slice(0, 60)}" is not an IP address; write an address such as 10.0.0.0`,
      );
      continue;
    }
    const length = range.integer('prefix_len', 0, version === 4 ? 32 : 128) ?? 0;
    list.addSubnet(prefix, length, version === 4 ? 'ipv4' : 'ipv6');
  }
  const invert = reader.boolean('invert_match') === true;
  return (address) =>
    isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4') !== invert;
}
