import { createHash } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../policy/names/sha256.js';
import { emptyPlans, type PlanLayout, planLayout } from '../../policy/plans/plan-layout.js';
import { PLAN_PARTS, type PlanTable } from '../../policy/plans/plan-table.js';
import { messageOf, readRegularFile } from '../../regular-file.js';
import { writeFiles } from '../../written-files.js';
import { type ConfigProblem, WHOLE_FILE } from '../yaml/config-problem.js';

/** First line of a copy. Change the number whenever {@link PlanTable} changes, so that other copies are ignored. */
const MAGIC = Buffer.from('weir plans 2\n');
const DIGEST_BYTES = 32;
const LINE_END = 10;
/** Maximum size of a copy, in bytes. The largest tables take about 400 MB. */
const MAX_COPY_BYTES = 512 * 1024 * 1024;
/** Copies contain the customers, so only the user that runs weir can read them. */
const COPY_MODE = 0o600;
/** Matches the temporary files of copies, and of rows from addresses. */
const TEMPORARY = /^(?:plans|source)-[0-9a-f]{16}\..*\.new$/;
/** Age of a temporary file that no process writes any more, in milliseconds: answers take a minute at most. */
const LEFTOVER_MS = 120_000;

/**
 * Keeps the last valid rows of each domain in a directory (PLANS_CACHE_PATH), for the next start. A copy has a line
 * with the layout of the table, then the parts, then a digest of everything before it.
 */
export class PlanCopies {
  /** Copies that could not be read or written. */
  readonly warnings: ConfigProblem[] = [];
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Removes the temporary files of processes that ended while they wrote. */
  removeLeftovers(): void {
    try {
      for (const name of readdirSync(this.#directory)) {
        if (!TEMPORARY.test(name)) continue;
        const file = join(this.#directory, name);
        if (Date.now() - statSync(file).mtimeMs > LEFTOVER_MS) rmSync(file, { force: true });
      }
    } catch {
      // The directory may not exist yet, and another process may remove a file first. Writes report other problems.
    }
  }

  /** Returns the last valid rows of a domain; undefined without a usable copy. */
  read(domain: string): PlanTable | undefined {
    const file = join(this.#directory, nameOf(domain));
    try {
      const table = tableIn(readRegularFile(file, MAX_COPY_BYTES));
      if (table === undefined) {
        this.#warn(
          file,
          'the copy is damaged, or another version of weir wrote it, so weir ignores the copy',
        );
      }
      return table;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#warn(file, messageOf(error, file));
      return undefined;
    }
  }

  /** Replaces the copy of a domain. */
  write(domain: string, table: PlanTable): void {
    const path = nameOf(domain);
    const { head, ...sizes } = planLayout(table);
    const parts = PLAN_PARTS.map((part) => new Uint8Array(table[part].buffer));
    const blocks = [MAGIC, Buffer.from(`${JSON.stringify({ head, ...sizes })}\n`), ...parts];
    const hash = createHash('sha256');
    for (const block of blocks) hash.update(block);
    const content = Buffer.concat([...blocks, hash.digest()]);
    const file = { path, content, mode: COPY_MODE, note: '' };
    const problem = writeFiles(this.#directory, [file], '', { force: true });
    if (problem === undefined) return;
    const message = `${problem}. Correct PLANS_CACHE_PATH, so that customers keep their limits after a restart`;
    this.#warn(join(this.#directory, path), message);
  }

  #warn(file: string, message: string): void {
    this.warnings.push({ file, ...WHOLE_FILE, path: '', message });
  }
}

/** Returns the file name for a domain, which may have any characters. */
function nameOf(domain: string): string {
  return `plans-${sha256Hex(domain).slice(0, 16)}`;
}

/** Returns the table in a copy; undefined if the copy is damaged. */
function tableIn(bytes: Buffer): PlanTable | undefined {
  const end = bytes.length - DIGEST_BYTES;
  const body = bytes.subarray(0, Math.max(0, end));
  const digest = createHash('sha256').update(body).digest();
  if (!body.subarray(0, MAGIC.length).equals(MAGIC) || !digest.equals(bytes.subarray(end))) return undefined;
  const lineEnd = body.indexOf(LINE_END, MAGIC.length);
  const table = emptyPlans(JSON.parse(body.toString('utf8', MAGIC.length, lineEnd)) as PlanLayout);
  let at = lineEnd + 1;
  for (const part of PLAN_PARTS) {
    const { buffer } = table[part];
    new Uint8Array(buffer).set(body.subarray(at, at + buffer.byteLength));
    at += buffer.byteLength;
  }
  return table;
}
