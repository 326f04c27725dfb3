import { describe, expect, test } from '@jest/globals';
import {
  countProblems,
  formatProblem,
  MAX_PROBLEMS,
  ProblemList,
} from '../../../../src/config/yaml/config-problem.js';
import { loadDocuments } from '../../../support/policy/loads.js';

describe('problems', () => {
  test('are kept up to a maximum number, and counted beyond it; long ones are truncated', () => {
    const list = new ProblemList('f');
    for (let line = 1; line <= 2500; line++) {
      list.error({ line, column: 1 }, 'x'.repeat(10_000), 'y'.repeat(10_000));
      list.warn({ line, column: 1 }, '', 'w');
    }
    expect([list.errors.length, list.errorCount]).toEqual([MAX_PROBLEMS, 2500]);
    expect([list.warnings.length, list.warningCount]).toEqual([MAX_PROBLEMS, 2500]);
    expect(formatProblem(list.errors[0]!).length).toBeLessThan(5000);
  });

  test('of several documents have a common bound', () => {
    const bad = { kind: 'list', items: [], at: { line: 0, column: 0 } } as const;
    const documents = Array.from({ length: 1500 }, (_, i) => ({ name: `r${i}`, document: bad }));
    const { errors } = loadDocuments(documents);
    expect(errors).toHaveLength(MAX_PROBLEMS + 1);
    expect(formatProblem(errors.at(-1)!)).toBe('r999: and 500 more errors, not listed');
    expect(countProblems(errors)).toBe(MAX_PROBLEMS + 500);
  });
});
