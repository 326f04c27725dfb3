import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';

/** A case in the numbering of h2spec: `http2/6.9.1/2`. */
export interface H2specCase {
  readonly id: string;
  readonly title: string;
}

export interface H2specResult {
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Expected and actual result; empty if the case passed. */
  readonly reason: string;
}

const GROUPS = ['generic', 'http2', 'hpack'];
/** Timeout of h2spec for each answer, in seconds. */
const ANSWER_TIMEOUT_SECONDS = 5;

/** Returns all cases of the program in their order, including the strict ones. */
export function h2specCases(program: string): H2specCase[] {
  return GROUPS.flatMap((group) => {
    let section = '';
    return execFileSync(program, ['--strict', '--dryrun', group], { encoding: 'utf8' })
      .split('\n')
      .flatMap((line) => {
        section = /^ +([\d.]+)\. /.exec(line)?.[1] ?? section;
        const [, number, title] = /^ +(\d+): (.+)$/.exec(line) ?? [];
        if (number === undefined || title === undefined) return [];
        return [{ id: `${group}/${section}/${number}`, title }];
      });
  });
}

/** Runs all cases against the server at 127.0.0.1:`port`. Returns the results by case id. */
export async function runH2spec(
  program: string,
  port: number,
  args: readonly string[],
): Promise<Map<string, H2specResult>> {
  const folder = new TempDir();
  try {
    const report = join(folder.path, 'report.xml');
    const ended = await runToEnd(
      program,
      [
        ...['-h', '127.0.0.1', '-p', String(port), '-o', String(ANSWER_TIMEOUT_SECONDS), '-j', report],
        '--strict',
        ...args,
        ...GROUPS,
      ],
      { timeoutMs: 300_000 },
    );
    // The report quotes bytes that servers sent, so it may be neither XML nor UTF-8.
    const results = parseReport(readFileSync(report, 'latin1'));
    if (results.size === 0) throw new Error(`h2spec reported nothing; it printed:\n${ended.stdout}`);
    return results;
  } finally {
    folder.remove();
  }
}

/** Reads the JUnit report. Its suites are sections, which contain their cases in order and without numbers. */
function parseReport(xml: string): Map<string, H2specResult> {
  const results = new Map<string, H2specResult>();
  for (const suite of xml.split('<testsuite ').slice(1)) {
    const section = /package="([^"]+)"/.exec(suite)?.[1];
    for (const [index, body] of suite.split('<testcase ').slice(1).entries()) {
      const [, element, reason = ''] = /<(failure|error|skipped)>([\s\S]*?)<\/\1>/.exec(body) ?? [];
      const outcome = element === undefined ? 'passed' : element === 'skipped' ? 'skipped' : 'failed';
      results.set(`${section}/${index + 1}`, { outcome, reason });
    }
  }
  return results;
}
