import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { preloading } from '../../support/process/preload.js';

/** A call as weir's own process saw it. Milliseconds, on the monotonic clock of all processes. */
export interface SeenCall {
  /** Port of the caller's end of the connection. */
  readonly port: number;
  readonly stream: number;
  readonly readMs: number;
  /** From bytes read to bytes written. */
  readonly tookMs: number;
  /** For how much of that the process had no core. */
  readonly waitedMs: number;
  /** For how much of that it ran. */
  readonly ranMs: number;
}

/** Settings that make weir, and each of its workers, write down its answers in `folder` (answer-times.ts). */
export function watchSettings(folder: string, offsetFile?: string): NodeJS.ProcessEnv {
  return {
    NODE_OPTIONS: preloading('test/chaos/latency/answer-times.js'),
    WEIR_ANSWER_TIMES_DIR: folder,
    ...(offsetFile !== undefined && { WEIR_CLOCK_OFFSET_FILE: offsetFile }),
  };
}

interface Followed {
  readonly file: number;
  rest: string;
  at: number;
}

/** Reads what the processes of one weir write down. Close it. */
export class WeirWatch {
  private readonly folder: string;
  private readonly files = new Map<string, Followed>();
  private readonly bytes = Buffer.alloc(1 << 16);
  /** By process: times at which it said how long it had waited for a core, and how long. */
  private readonly waits = new Map<string, [nowMs: number, waitedMs: number][]>();
  /** How often a process stepped its wall clock. */
  clockSteps = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Processes of this weir that wrote something. */
  pids(): number[] {
    return readdirSync(this.folder).map(Number);
  }

  /** Gives every call that was written down since the last time. */
  read(seen: (call: SeenCall) => void): void {
    for (const name of readdirSync(this.folder)) {
      let followed = this.files.get(name);
      if (followed === undefined) {
        followed = { file: openSync(join(this.folder, name), 'r'), rest: '', at: 0 };
        this.files.set(name, followed);
      }
      for (;;) {
        const length = readSync(followed.file, this.bytes, 0, this.bytes.length, followed.at);
        if (length === 0) break;
        followed.at += length;
        const lines = (followed.rest + this.bytes.toString('latin1', 0, length)).split('\n');
        followed.rest = lines.pop() as string;
        for (const line of lines) this.line(name, line, seen);
      }
    }
  }

  /** The longest that a process of this weir waited for a core since then, milliseconds. */
  waitedSince(sinceMs: number): number {
    let longest = 0;
    for (const waits of this.waits.values()) {
      const last = waits.at(-1);
      const first = waits.findLast(([nowMs]) => nowMs <= sinceMs) ?? waits[0];
      if (last !== undefined && first !== undefined) longest = Math.max(longest, last[1] - first[1]);
    }
    return longest;
  }

  close(): void {
    for (const { file } of this.files.values()) closeSync(file);
  }

  private line(name: string, line: string, seen: (call: SeenCall) => void): void {
    const words = line.split(' ');
    const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = words.map(Number);
    if (words[0] === 'w') {
      const waits = this.waits.get(name) ?? [];
      waits.push([second, third]);
      if (waits.length > 1000) waits.splice(0, 500);
      this.waits.set(name, waits);
    } else if (words[0] === 'c') this.clockSteps++;
    else seen({ port: first, stream: second, readMs: third, tookMs: fourth, waitedMs: fifth, ranMs: sixth });
  }
}
