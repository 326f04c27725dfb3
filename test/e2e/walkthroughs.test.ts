/*
 * Follows the pages that are read from top to bottom: a reader who runs their commands sees the output that they show,
 * with a real weir, Envoy, curl, and programs in other languages.
 */
import { describe, expect, test } from '@jest/globals';
import { pageText } from '../support/docs/pages.js';
import {
  GO_SOURCE,
  hasWalkthrough,
  stepsOf,
  WALKTHROUGHS,
  Walkthrough,
} from '../support/docs/walkthrough.js';

describe.each(WALKTHROUGHS)('%s', (page) => {
  const steps = stepsOf(page, pageText(page));

  test('has files, programs and commands', () => {
    expect(steps.length).toBeGreaterThan(3);
    expect(steps.filter((step) => 'file' in step).length).toBeGreaterThan(0);
  });

  (hasWalkthrough(page) ? test : test.skip)('shows what happens', async () => {
    const walkthrough = await Walkthrough.begin();
    try {
      for (const step of steps) {
        const printed = await walkthrough.take(step);
        if ('file' in step) continue;
        const shown = `${page}:${step.line + 1}: $ ${step.text}\n`;
        expect(shown + printed.join('\n')).toBe(shown + step.answer.join('\n'));
      }
    } finally {
      await walkthrough.end();
    }
  });
});

test('the Go program of docs/without-envoy.md is the one that is built', () => {
  const page = 'docs/without-envoy.md';
  const shown = stepsOf(page, pageText(page)).find((step) => 'file' in step && step.file === 'ask.go');
  expect(shown).toEqual({ file: 'ask.go', text: pageText(GO_SOURCE) });
});
