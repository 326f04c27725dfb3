import { expect, test } from '@jest/globals';
import {
  hasReferenceDefault,
  SETTINGS,
  type Setting,
} from '../../../../src/server/settings/settings-table.js';

test.each([
  ['string_map', 'a:1', 'a:2', false],
  ['string_map', 'a:1,b:2', ' a : 1, b=2', true],
  ['duration', '1s', '1000ms', true],
  ['boolean', 'true', 'T', true],
  ['integer', '10', '11', false],
  ['string', '', '', true],
] as const)('the defaults of %s %j and %j have the same meaning: %p', (type, here, theirs, expected) => {
  const setting: Setting = {
    ...(SETTINGS[0] as Setting),
    type,
    default: here,
    reference: { default: theirs },
  };
  expect(hasReferenceDefault(setting)).toBe(expected);
});
