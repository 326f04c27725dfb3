// Patterns of prose that reads as translated. In each rule, `written` is a sentence that the rule flags, and `better`
// is the same sentence in plain English, which each finding shows. `passes` is a similar text without a finding. The
// test test/unit/docs/prose.test.ts checks all three.
import { LENGTH } from './rules/length.mjs';
import { NEGATION } from './rules/negation.mjs';
import { OPENINGS } from './rules/openings.mjs';
import { ORDER } from './rules/order.mjs';
import { VERBS } from './rules/verbs.mjs';
import { WORDS } from './rules/words.mjs';

/** Each rule is {name, find, written, better, passes}; `find` returns the words found in a sentence, or null. */
export const RULES = [...OPENINGS, ...VERBS, ...NEGATION, ...ORDER, ...WORDS, ...LENGTH];
