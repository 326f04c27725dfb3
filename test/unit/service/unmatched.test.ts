import { describe, expect, test } from '@jest/globals';
import { Decider, descriptor } from '../../support/policy/decider.js';

const RULE = 'rate_limit: { unit: day, requests_per_unit: 5 }';

function reportedFor(top: string, ...words: readonly string[]): readonly string[] {
  const decider = new Decider(`domain: d
${top}
descriptors:
- { key: limited, ${RULE} }
- key: path
  on_unmatched: ignore
  descriptors:
  - { key: method, ${RULE} }
  - key: user
    descriptors: [{ key: method, ${RULE} }]
- { key: path, value: /private, on_unmatched: warn, descriptors: [{ key: method, ${RULE} }] }
`);
  decider.answer([descriptor(words)]);
  return decider.observer.told;
}

describe('on_unmatched', () => {
  test.each([
    [['limited=x'], ['d limited OK']],
    [['limited=x', 'more=y'], ['unmatched d limited,more']],
    [['other=x'], ['unmatched d other']],
    [['path=/x'], ['unmatched d path as meant']],
    [['path=/x', 'other=y'], ['unmatched d path,other as meant']],
    [['path=/x', 'user=u'], ['unmatched d path,user as meant']],
    [['path=/private', 'other=y'], ['unmatched d path,other']],
    [['path=/private'], ['unmatched d path']],
  ])('%j', (words, told) => {
    expect(reportedFor('', ...words)).toEqual(told);
  });

  test.each([
    [['limited=x', 'more=y'], ['unmatched d limited,more as meant']],
    [['other=x'], ['unmatched d other as meant']],
    [['path=/private'], ['unmatched d path']],
  ])('of the file: %j', (words, told) => {
    expect(reportedFor('on_unmatched: ignore', ...words)).toEqual(told);
  });
});
