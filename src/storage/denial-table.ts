import type { KnownDenial } from './denial.js';

/** Bounds of a {@link DenialTable}. */
export interface DenialTableOptions {
  /** At least 1. */
  readonly maxEntries: number;
  /** Most bytes of entries and their keys, estimated; Infinity for no bound. */
  readonly maxBytes: number;
  /** Denials that are over go when later ones come, about this many microseconds after they were kept. */
  readonly generationMicros: number;
}

/** What an entry takes beside its key: of a token bucket, measured on Node 20; of a window a fifth less. */
const ENTRY_BYTES = 175;

/** A key takes a byte for each character, two if one is beyond Latin-1; here, if one is beyond ASCII. */
function bytesOf(key: string): number {
  const isAscii = Buffer.byteLength(key) === key.length;
  return ENTRY_BYTES + (isAscii ? 1 : 2) * key.length;
}

/** The same text in one piece: keys are put together from parts, and V8 would keep those, which take as much again. */
function flattened(key: string): string {
  return Buffer.from(key).toString();
}

/**
 * Denials by bucket, bounded. Kept in two generations: the younger one becomes the older one, whose entries go, when it
 * is half of what may be kept, or when all of the older one are over. An entry that is asked for is young again. So
 * those that nobody asks for go first, no timer is needed, and nothing grows.
 */
export class DenialTable {
  /**
   * Entries that were over when they were dropped; those of a generation that made room count as {@link evacuated},
   * over or not.
   */
  expired = 0;
  evacuated = 0;
  /** Entries that took the place of another of the same bucket. */
  overwritten = 0;
  private readonly options: DenialTableOptions;
  private readonly maxYoung: number;
  private young = new Map<string, KnownDenial>();
  private old = new Map<string, KnownDenial>();
  private youngBytes = 0;
  /** When all of a generation are over. */
  private youngUntil = Number.NEGATIVE_INFINITY;
  private oldUntil = Number.NEGATIVE_INFINITY;
  private rotateAtMicros = Number.NEGATIVE_INFINITY;

  constructor(options: DenialTableOptions) {
    this.options = options;
    this.maxYoung = Math.max(1, Math.floor(options.maxEntries / 2));
  }

  /** Denials kept, some of which may be over. */
  get size(): number {
    return this.young.size + this.old.size;
  }

  /** The denial of a bucket, unless it is over. */
  get(key: string, nowMicros: number): KnownDenial | undefined {
    const young = this.young.get(key);
    if (young !== undefined) return this.unlessExpired(key, young, nowMicros);
    const old = this.old.get(key);
    if (old === undefined || this.unlessExpired(key, old, nowMicros) === undefined) return undefined;
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

  private unlessExpired(key: string, denial: KnownDenial, nowMicros: number): KnownDenial | undefined {
    if (denial.untilMicros > nowMicros) return denial;
    this.delete(key);
    this.expired++;
    return undefined;
  }
}
