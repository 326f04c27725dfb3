import { firstSlash, segmentEnd } from './path-segments.js';

/** Extracts the segments of one path on demand, each only once. Reused for one path after the other. */
export class PathCursor {
  /** The path in its normal form. */
  path = '';
  /** The ends of segments that are known so far. */
  private readonly ends: number[] = [];
  /** Extracted segments; '' if not extracted, because no segment is empty. */
  private readonly texts: string[] = [];
  private known = 0;

  open(path: string): void {
    this.path = path;
    this.known = 0;
  }

  /** Releases the path, whose segments may be long. */
  close(): void {
    for (let i = 0; i < this.known; i++) this.texts[i] = '';
    this.path = '';
    this.known = 0;
  }

  /**
   * Returns the index of the slash before the segment at `depth`, from 0: the end of the previous segment, which must
   * be known.
   */
  slash(depth: number): number {
    return depth === 0 ? firstSlash(this.path) : (this.ends[depth - 1] as number);
  }

  /** Returns the end of the segment at `depth`; -1 if the path ends before. */
  end(depth: number): number {
    if (depth < this.known) return this.ends[depth] as number;
    const slash = this.slash(depth);
    if (slash === this.path.length) return -1;
    const end = segmentEnd(this.path, slash);
    this.ends[depth] = end;
    this.texts[depth] = '';
    this.known = depth + 1;
    return end;
  }

  /** Returns the segment at `depth`, whose end must be known. */
  text(depth: number): string {
    const known = this.texts[depth] as string;
    if (known !== '') return known;
    const text = this.path.slice(this.slash(depth) + 1, this.ends[depth]);
    this.texts[depth] = text;
    return text;
  }
}
