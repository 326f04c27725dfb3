import type { Finding } from '../findings.js';

/** Below this a process has little room, as docs/migrate.md says. Bytes. */
const ENOUGH = 256 * 1024 * 1024;

const FACTORS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1e3,
  kb: 1024,
  ki: 1024,
  m: 1e6,
  mb: 1024 ** 2,
  mi: 1024 ** 2,
  g: 1e9,
  gb: 1024 ** 3,
  gi: 1024 ** 3,
};

/** What is to be decided where a container may have too little memory. `limit`: as written, '' where there is none. */
export function memoryFindings(about: string, limit: string): readonly Finding[] {
  const [, number = '', unit = ''] = /^([\d.]+)([a-z]*)$/i.exec(limit) ?? [];
  const bytes = Number(number) * (FACTORS[unit.toLowerCase()] ?? Number.NaN);
  if (number === '' || Number.isNaN(bytes) || bytes >= ENOUGH) return [];
  const remedy = 'raise it to 256Mi and set NODE_OPTIONS=--max-old-space-size=160, or to 512Mi';
  return [
    { about, text: `may have ${limit} of memory; weir takes about 100 MB before its first call: ${remedy}.` },
  ];
}
