import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { preloading } from '../../support/process/preload.js';

/** A call, as recorded in weir's process. Times are in milliseconds of the monotonic clock of the machine. */
export interface RecordedCall {
  /** Port of the caller. */
  readonly port: number;
  readonly stream: number;
  readonly readMs: number;
  /** Time from reading the request to writing the answer. */
  readonly tookMs: number;
  /** Part of {@link tookMs} in which the kernel blocked the thread. */
  readonly waitedMs: number;
  /** Part of {@link tookMs} in which the thread ran. */
  readonly ranMs: number;
}

/** Returns variables with which weir and its workers record their answers in `folder` (see answer-times.ts). */
export function answerLogSettings(folder: string, offsetFile?: string): NodeJS.ProcessEnv {
  return {
    NODE_OPTIONS: preloading('test/chaos/latency/answer-times.js'),
    WEIR_ANSWER_TIMES_DIR: folder,
    ...(offsetFile !== undefined && { WEIR_CLOCK_OFFSET_FILE: offsetFile }),
  };
}

/** A file that is read while a process appends to it. */
interface OpenFile {
  readonly file: number;
  /** Incomplete last line. */
  rest: string;
  /** Number of bytes read. */
  at: number;
}

/** Reads the answers that the processes of a weir server record. Close it after use. */
export class AnswerLog {
  private readonly folder: string;
  private readonly files = new Map<string, OpenFile>();
  private readonly bytes = Buffer.alloc(1 << 16);
  /** Samples of the total time for which each process waited for a core. */
  private readonly waits = new Map<string, [nowMs: number, waitedMs: number][]>();
  /** Number of steps of wall clocks, of all processes together. */
  clockSteps = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Returns the processes that have recorded data. */
  pids(): number[] {
    return readdirSync(this.folder).map(Number);
  }

  /** Calls `onCall` with each call that was recorded since the last read. */
  read(onCall: (call: RecordedCall) => void): void {
    for (const name of readdirSync(this.folder)) {
      let open = this.files.get(name);
      if (open === undefined) {
        open = { file: openSync(join(this.folder, name), 'r'), rest: '', at: 0 };
        this.files.set(name, open);
      }
      for (;;) {
        const length = readSync(open.file, this.bytes, 0, this.bytes.length, open.at);
        if (length === 0) break;
        open.at += length;
        const lines = (open.rest + this.bytes.toString('latin1', 0, length)).split('\n');
        open.rest = lines.pop() as string;
        for (const line of lines) this.readLine(name, line, onCall);
      }
    }
  }

  /** Returns the maximum time for which a process waited for a core since `sinceMs`. */
  maxCpuWaitSince(sinceMs: number): number {
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

  private readLine(name: string, line: string, onCall: (call: RecordedCall) => void): void {
    const words = line.split(' ');
    const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0, sixth = 0] = words.map(Number);
    if (words[0] === 'w') {
      const waits = this.waits.get(name) ?? [];
      waits.push([second, third]);
      if (waits.length > 1000) waits.splice(0, 500);
      this.waits.set(name, waits);
    } else if (words[0] === 'c') this.clockSteps++;
    else
      onCall({ port: first, stream: second, readMs: third, tookMs: fourth, waitedMs: fifth, ranMs: sixth });
  }
}
