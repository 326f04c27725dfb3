import { type ChildProcess, spawn } from 'node:child_process';
import { waitFor } from './wait-for.js';

/** A shell script in a terminal of its own. */
export interface PtyScript {
  /** All that came from the terminal, codes included. */
  output(): string;
  /** Presses keys. */
  type(keys: string): void;
  /** Resolves once the output has this text, `times` over. Rejects with the output when that takes too long. */
  until(text: string | RegExp, times?: number): Promise<void>;
  /** Takes the terminal away, as a connection that is lost does. */
  hangUp(): void;
  /** Resolves when the script has ended. */
  readonly ended: Promise<void>;
}

const running = new Set<ChildProcess>();
// Whatever becomes of a test, the terminals end with it, and what runs in them.
(globalThis as { afterAll?: (body: () => void) => void }).afterAll?.(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a script of bash in a terminal of 80 columns and 24 rows, by script(1). */
export function startInPty(script: string, env: NodeJS.ProcessEnv = {}): PtyScript {
  const child = spawn('script', ['-qec', `stty cols 80 rows 24; ${script}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, SHELL: '/bin/bash', TERM: 'xterm', NO_COLOR: '', ...env },
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child);
      resolve();
    });
  });
  return {
    output: () => output,
    type: (keys) => child.stdin.write(keys),
    until: async (text, times = 1) => {
      const pattern = typeof text === 'string' ? text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') : text.source;
      try {
        await waitFor(`${text} in a terminal`, () =>
          (output.match(new RegExp(pattern, 'g'))?.length ?? 0) >= times ? true : undefined,
        );
      } catch (error) {
        throw new Error(`${(error as Error).message}; it showed ${JSON.stringify(output)}`);
      }
    },
    hangUp: () => child.kill('SIGKILL'),
    ended,
  };
}
