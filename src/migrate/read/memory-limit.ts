import type { Finding } from '../findings.js';
import type { Environment } from './workload.js';

const MEBIBYTE = 1024 ** 2;

/** Memory limit in bytes below which weir may run out of memory, as docs/migrate.md describes. */
const MIN_BYTES = 256 * MEBIBYTE;
/** Memory limit in bytes below which the default heap of Node.js may use nearly all memory. */
const COMFORTABLE_BYTES = 512 * MEBIBYTE;

const BINARY = { k: 1024, m: MEBIBYTE, g: 1024 ** 3 };

/** Units of a memory limit in bytes. Docker compose uses powers of 1024 for every unit. */
const FACTORS = {
  compose: { '': 1, b: 1, ...BINARY, kb: BINARY.k, mb: BINARY.m, gb: BINARY.g },
  kubernetes: { '': 1, k: 1e3, m: 1e6, g: 1e9, ki: BINARY.k, mi: BINARY.m, gi: BINARY.g },
} as const satisfies Record<string, Readonly<Record<string, number>>>;

/**
 * Reports a container that may have too little memory.
 *
 * @param about the service or container
 * @param limit the memory limit as written in the file, '' if unset
 * @param writtenFor the format that defines the units of the limit
 * @param environment shows whether NODE_OPTIONS bounds the heap of Node.js
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
  if (number === '' || Number.isNaN(bytes) || bytes >= COMFORTABLE_BYTES) return [];
  const { NODE_OPTIONS = '' } = environment.variables;
  const bounded =
    environment.unknown.has('NODE_OPTIONS') || /--max[-_]old[-_]space[-_]size/.test(NODE_OPTIONS);
  const [enough, roomy] = writtenFor === 'compose' ? ['256m', '512m'] : ['256Mi', '512Mi'];
  const bound = 'set NODE_OPTIONS=--max-old-space-size=160';
  if (bytes < MIN_BYTES) {
    const remedy = bounded
      ? `raise the limit to at least ${enough}`
      : `raise the limit to ${roomy}, or raise it to ${enough} and ${bound}`;
    const why = 'but weir uses about 100 MB before its first call';
    return [{ about, text: `the memory limit is ${limit}, ${why}; ${remedy}.` }];
  }
  if (bounded) return [];
  const why = 'but the heap of Node.js alone can grow to 256 MiB';
  return [{ about, text: `the memory limit is ${limit}, ${why}; ${bound}, or raise the limit to ${roomy}.` }];
}
