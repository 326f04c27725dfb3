import { writeFileSync } from 'node:fs';

/** A test file, and how its run ended. */
export interface FileResult {
  readonly path: string;
  readonly ms: number;
  /** Names the first test that failed; undefined when all passed. */
  readonly failed: string | undefined;
}

interface JestResults {
  readonly testResults: readonly {
    readonly testFilePath: string;
    readonly testExecError?: unknown;
    readonly perfStats: { readonly start: number; readonly end: number };
    readonly testResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** Writes results to the file `out` of its options. Jest's own --outputFile stays empty when --bail ends the run. */
export default class MutationReporter {
  private readonly out: string;

  constructor(_config: unknown, { out }: { readonly out: string }) {
    this.out = out;
  }

  onRunComplete(_contexts: unknown, { testResults }: JestResults): void {
    const files = testResults.map((file): FileResult => {
      const failed = file.testResults.find(({ status }) => status === 'failed')?.fullName;
      return {
        path: file.testFilePath,
        ms: file.perfStats.end - file.perfStats.start,
        failed: failed ?? (file.testExecError == null ? undefined : 'does not load'),
      };
    });
    writeFileSync(this.out, JSON.stringify(files));
  }
}
