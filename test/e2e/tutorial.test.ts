/* docs/start.md: a reader who does what it says sees what it shows, with a real weir, a real Envoy and curl. */
import { describe, expect, test } from '@jest/globals';
import { pageText } from '../support/docs/pages.js';
import { stepsOf, TUTORIAL, Walkthrough } from '../support/docs/walkthrough.js';
import { optionalToolPath } from '../support/process/tools.js';

const steps = stepsOf(TUTORIAL, pageText(TUTORIAL));

(optionalToolPath('curl') === undefined ? describe.skip : describe)(TUTORIAL, () => {
  test('has files, programs and commands', () => {
    expect(steps.length).toBeGreaterThan(15);
    expect(steps.filter((step) => 'file' in step).length).toBeGreaterThan(3);
  });

  test('shows what happens', async () => {
    const walkthrough = await Walkthrough.begin();
    try {
      for (const step of steps) {
        const printed = await walkthrough.take(step);
        if ('file' in step) continue;
        const shown = `${TUTORIAL}:${step.line + 1}: $ ${step.text}\n`;
        expect(shown + printed.join('\n')).toBe(shown + step.answer.join('\n'));
      }
    } finally {
      await walkthrough.end();
    }
  }, 120_000);
});
