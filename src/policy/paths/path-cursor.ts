import { firstSlash, segmentEnd } from './path-segments.js';

/** The segments of one path, cut out as they are asked for, and only once. Used for one path after the other. */
export class PathCursor {
  /** In its normal form. */
  path = '';
  /** Where the segments end that are known. */
  private readonly ends: number[] = [];
  /** Texts of segments, where somebody asked for them; '' else, as no segment is empty. */
  private readonly texts: string[] = [];
  private known = 0;

  open(path: string): void {
    this.path = path;
    this.known = 0;
  }

  /** Lets go of the path: its texts may be long. */
  close(): void {
    for (let i = 0; i < this.known; i++) this.texts[i] = '';
    this.path = '';
    this.known = 0;
  }

  /** The slash before the segment at a depth, from 0, which is where the one before ends. That one must be known. */
  slash(depth: number): number {
    return depth === 0 ? firstSlash(this.path) : (this.ends[depth - 1] as number);
  }

  /** Where the segment at a depth ends; -1 if the path ends before. */
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

  /** The segment at a depth whose end is known. */
  text(depth: number): string {
    const known = this.texts[depth] as string;
    if (known !== '') return known;
    const text = this.path.slice(this.slash(depth) + 1, this.ends[depth]);
    this.texts[depth] = text;
    return text;
  }
}
