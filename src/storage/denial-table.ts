import type { KnownDenial } from './denial.js';

/** Bounds of a {@link DenialTable}. */
export interface DenialTableOptions {
  /** At least 1. */
  readonly maxEntries: number;
  /** Maximum estimated bytes of entries and their keys; Infinity for no bound. */
  readonly maxBytes: number;
  /** Maximum age of a generation, in microseconds: afterwards, expired denials are removed when new ones arrive. */
  readonly generationMicros: number;
}

/** Estimated bytes of an entry without its key, measured for a token bucket on Node 20; a window takes a fifth less. */
const ENTRY_BYTES = 175;

/**
 * Returns the estimated bytes of an entry with its key. V8 stores two bytes per character if a character is beyond
 * Latin-1; this estimate counts two bytes even if a character is only beyond ASCII.
 */
function bytesOf(key: string): number {
  const isAscii = Buffer.byteLength(key) === key.length;
  return ENTRY_BYTES + (isAscii ? 1 : 2) * key.length;
}

/**
 * Copies a key into one flat string. Otherwise, V8 would keep the parts of a concatenated key, which doubles the
 * memory.
 */
function flattened(key: string): string {
  return Buffer.from(key).toString();
}

/**
 * A bounded table of denials by bucket, in two generations. The young generation becomes the old one, whose entries are
 * removed, when it reaches half of the bounds, or when all entries of the old one have expired. A lookup moves an entry
 * to the young generation. Entries that are not looked up are therefore removed first, without a timer.
 */
export class DenialTable {
  /**
   * Number of entries that had expired when they were removed. Entries that were removed to free memory count as
   * {@link evacuated}, expired or not.
   */
  expired = 0;
  evacuated = 0;
  /** Number of entries that replaced another entry of the same bucket. */
  overwritten = 0;
  private readonly options: DenialTableOptions;
  private readonly maxYoung: number;
  private young = new Map<string, KnownDenial>();
  private old = new Map<string, KnownDenial>();
  private youngBytes = 0;
  /** Time at which the last entry of the generation expires. */
  private youngUntil = Number.NEGATIVE_INFINITY;
  private oldUntil = Number.NEGATIVE_INFINITY;
  private rotateAtMicros = Number.NEGATIVE_INFINITY;

  constructor(options: DenialTableOptions) {
    this.options = options;
    this.maxYoung = Math.max(1, Math.floor(options.maxEntries / 2));
  }

  /** Number of denials, including expired ones. */
  get size(): number {
    return this.young.size + this.old.size;
  }

  /** Returns the denial of a bucket, unless it has expired. */
  get(key: string, nowMicros: number): KnownDenial | undefined {
    const young = this.young.get(key);
    if (young !== undefined) return this.removeIfExpired(key, young, nowMicros);
    const old = this.old.get(key);
    if (old === undefined || this.removeIfExpired(key, old, nowMicros) === undefined) return undefined;
    this.old.delete(key);
    this.insert(key, old, nowMicros);
    return old;
  }

  set(key: string, denial: KnownDenial, nowMicros: number): void {
    if (denial.untilMicros <= nowMicros) return;
    if (this.old.delete(key) || this.young.has(key)) this.overwritten++;
    this.insert(key, denial, nowMicros);
  }

  delete(key: string): void {
    if (this.size === 0) return;
    if (this.young.delete(key)) this.youngBytes -= bytesOf(key);
    else this.old.delete(key);
  }

  clear(): void {
    this.young = new Map();
    this.old = new Map();
    this.youngBytes = 0;
  }

  private insert(key: string, denial: KnownDenial, nowMicros: number): void {
    const known = this.young.has(key);
    if (!known) {
      const { maxBytes } = this.options;
      const bytes = bytesOf(key);
      if (bytes > maxBytes / 2) return;
      const full = this.young.size >= this.maxYoung || this.youngBytes + bytes > maxBytes / 2;
      if (full || (nowMicros >= this.rotateAtMicros && nowMicros >= this.oldUntil)) this.rotate(nowMicros);
      this.youngBytes += bytes;
    }
    this.young.set(known ? key : flattened(key), denial);
    this.youngUntil = Math.max(this.youngUntil, denial.untilMicros);
  }

  private rotate(nowMicros: number): void {
    if (nowMicros >= this.oldUntil) this.expired += this.old.size;
    else this.evacuated += this.old.size;
    this.old = this.young;
    this.oldUntil = this.youngUntil;
    this.young = new Map();
    this.youngBytes = 0;
    this.youngUntil = Number.NEGATIVE_INFINITY;
    this.rotateAtMicros = nowMicros + this.options.generationMicros;
  }

  private removeIfExpired(key: string, denial: KnownDenial, nowMicros: number): KnownDenial | undefined {
    if (denial.untilMicros > nowMicros) return denial;
    this.delete(key);
    this.expired++;
    return undefined;
  }
}
