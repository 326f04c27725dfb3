import { type ChildProcess, spawn } from 'node:child_process';
import { waitFor } from './wait-for.js';

/** A shell script in its own terminal. */
export interface PtyScript {
  /** Returns all output of the terminal, including control codes. */
  output(): string;
  /** Types keys. */
  type(keys: string): void;
  /** Resolves once the output contains this text `times` times. Rejects with the output after a timeout. */
  until(text: string | RegExp, times?: number): Promise<void>;
  /** Closes the terminal, as a lost connection does. */
  hangUp(): void;
  /** Resolves when the script has ended. */
  readonly ended: Promise<void>;
}

const running = new Set<ChildProcess>();
// The terminals and their programs end with the test, even if it fails.
(globalThis as { afterAll?: (body: () => void) => void }).afterAll?.(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs a bash script in a terminal of 80 columns and 24 rows, with script(1). */
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
