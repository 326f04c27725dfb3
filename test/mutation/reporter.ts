import { writeFileSync } from 'node:fs';

/** Result of a test file. */
export interface FileResult {
  readonly path: string;
  readonly ms: number;
  /** Name of the first failed test; undefined if all tests passed. */
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

/**
 * Reporter of jest that writes the results to the file `out`. Jest's own --outputFile is not used, because it remains
 * empty if --bail ends the run.
 */
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
