import type { Finding } from '../findings.js';
import type { Environment } from './workload.js';

const MEBIBYTE = 1024 ** 2;

/** Below this a process has little room, as docs/migrate.md says. Bytes. */
const ENOUGH = 256 * MEBIBYTE;
/** Below this Node.js would let its heap alone take nearly all. Bytes. */
const ROOMY = 512 * MEBIBYTE;

const BINARY = { k: 1024, m: MEBIBYTE, g: 1024 ** 3 };

/** What the units of a limit mean, in bytes: docker compose counts every unit in powers of 1024. */
const FACTORS = {
  compose: { '': 1, b: 1, ...BINARY, kb: BINARY.k, mb: BINARY.m, gb: BINARY.g },
  kubernetes: { '': 1, k: 1e3, m: 1e6, g: 1e9, ki: BINARY.k, mi: BINARY.m, gi: BINARY.g },
} as const satisfies Record<string, Readonly<Record<string, number>>>;

/**
 * What is to be decided where a container may have too little memory.
 *
 * @param about the service or container
 * @param limit as written, '' where there is none
 * @param writtenFor whose units the limit has
 * @param environment tells whether NODE_OPTIONS bounds the heap of Node.js
 */
export function memoryFindings(
  about: string,
  limit: string,
  writtenFor: keyof typeof FACTORS,
  environment: Environment,
): readonly Finding[] {
  const [, number = '', unit = ''] = /^([\d.]+)([a-z]*)$/i.exec(limit) ?? [];
  const factors: Readonly<Record<string, number>> = FACTORS[writtenFor];
  const bytes = Number(number) * (factors[unit.toLowerCase()] ?? Number.NaN);
  if (number === '' || Number.isNaN(bytes) || bytes >= ROOMY) return [];
  const { NODE_OPTIONS = '' } = environment.variables;
  const bounded =
    environment.unknown.has('NODE_OPTIONS') || /--max[-_]old[-_]space[-_]size/.test(NODE_OPTIONS);
  const [enough, roomy] = writtenFor === 'compose' ? ['256m', '512m'] : ['256Mi', '512Mi'];
  const bound = 'set NODE_OPTIONS=--max-old-space-size=160';
  if (bytes < ENOUGH) {
    const remedy = `raise it to ${enough}${bounded ? '' : ` and ${bound}`}, or to ${roomy}`;
    const why = 'and weir takes about 100 MB before its first call';
    return [{ about, text: `may have ${limit} of memory, ${why}: ${remedy}.` }];
  }
  if (bounded) return [];
  const why = 'and Node.js would let its heap alone grow to 256 MiB';
  return [{ about, text: `may have ${limit} of memory, ${why}: ${bound}, or raise it to ${roomy}.` }];
}
