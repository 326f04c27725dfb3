import { seededRandom } from '../limiter/seeded-random.js';
import type { Pair } from './hpack.js';

/** Header blocks of one connection, in order, with the table sizes that are set between them. */
export type Story = readonly StoryStep[];
export interface StoryStep {
  /** Values of SETTINGS_HEADER_TABLE_SIZE that are set before the block, in order. */
  readonly tableBytes: readonly number[];
  readonly fields: readonly StoryField[];
}
export interface StoryField {
  readonly name: string;
  readonly value: string;
  /** Sent as a literal that is never indexed. */
  readonly sensitive: boolean;
}

export const LARGEST_TABLE = 8192;
const TABLE_SIZES = [0, 31, 64, 100, 256, 1000, 4096, LARGEST_TABLE];
const PATHS = [
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  '/grpc.health.v1.Health/Check',
  '/',
  '/index.html',
  '/search?q=%C3%A4&page=2#top',
];
const FIXED: readonly Pair[] = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
  ['grpc-accept-encoding', 'identity,deflate,gzip'],
  ['user-agent', 'grpc-node-js/1.14.7'],
  ['accept-encoding', 'gzip, deflate'],
  ['x-envoy-internal', 'true'],
  ['x-forwarded-for', '10.0.0.1'],
  ['cache-control', 'no-cache'],
  ['x-empty', ''],
];

/**
 * Generates typical requests of proxies and clients, and unusual ones; the same seed gives the same story. Values
 * contain no control characters.
 */
export function makeStory(
  seed: number,
  options: { readonly blocks: number; readonly resize: boolean },
): Story {
  const random = seededRandom(seed);
  const below = (bound: number): number => Math.floor(random() * bound);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const text = (length: number): string =>
    String.fromCharCode(
      ...Array.from({ length }, () => (below(8) === 0 ? 0xa1 + below(0x5f) : 0x21 + below(0x5e))),
    );
  const hex = (length: number): string => Array.from({ length }, () => below(16).toString(16)).join('');

  const variable = (): Pair => {
    switch (below(7)) {
      case 0:
        return ['traceparent', `00-${hex(32)}-${hex(16)}-01`];
      case 1:
        return ['grpc-timeout', `${below(500)}m`];
      case 2:
        return ['content-length', String(below(100_000))];
      case 3:
        return ['cookie', text(below(300))];
      case 4:
        return [`x-${hex(1 + below(12))}`, text(below(40))];
      case 5:
        return ['authorization', `Bearer ${text(40)}`];
      default:
        return ['x-large', text(below(3) === 0 ? 5000 : 200)];
    }
  };

  return Array.from({ length: options.blocks }, () => {
    const tableBytes: number[] = [];
    while (options.resize && below(4) === 0) tableBytes.push(pick(TABLE_SIZES));
    const pairs: Pair[] = [
      [':method', pick(['GET', 'POST', 'PUT'])],
      [':scheme', pick(['http', 'https'])],
      [':authority', pick(['rls', '127.0.0.1:8081', 'www.example.com'])],
      [':path', pick(PATHS)],
    ];
    // Names are unique, because a client takes them as an object.
    const names = new Set<string>();
    for (let i = below(10); i > 0; i--) {
      const [name, value] = below(3) === 0 ? variable() : pick(FIXED);
      if (!names.has(name)) pairs.push([name, value]);
      names.add(name);
    }
    return {
      tableBytes,
      fields: pairs.map(([name, value]) => ({
        name,
        value,
        sensitive: name === 'authorization' || (!name.startsWith(':') && below(20) === 0),
      })),
    };
  });
}
