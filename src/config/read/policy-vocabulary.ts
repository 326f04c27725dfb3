import { REMOVED_POLICY_KEYS } from '../../runtime/removed-names.js';
import type { ProblemList } from '../yaml/config-problem.js';
import { FieldReader, isAmbiguousNumber, kindName, type Vocabulary } from '../yaml/field-reader.js';
import type { YamlValue } from '../yaml/yaml-document.js';
import { ALL_KEYS, MISPLACED_KEYS, NEVER_EMPTY, WEIR_KEYS } from './policy-keys.js';

/** Properties of policy keys that hold in every mapping. */
export const POLICY_VOCABULARY: Vocabulary = {
  correctMappings: WEIR_KEYS,
  neverEmpty: NEVER_EMPTY,
  checkIgnored: ({ key, value }, path, problems) => {
    if (key !== 'metadata') checkIgnored(value, path, problems);
  },
  removed: REMOVED_POLICY_KEYS,
};

/**
 * Checks the value of a misplaced key as envoyproxy/ratelimit does, which checks keys and kinds of values everywhere. A
 * value that it rejects is most likely a mistake.
 */
function checkIgnored(value: YamlValue, path: string, problems: ProblemList): void {
  if (value.kind === 'scalar') {
    if (value.plain && isAmbiguousNumber(value.text)) {
      problems.error(value.at, path, 'without quotes, YAML reads this as a number; put it in quotes');
    }
    return;
  }
  const maps = value.kind === 'map' ? [value] : value.items;
  maps.forEach((map, i) => {
    const mapPath = value.kind === 'map' ? path : `${path}[${i}]`;
    if (map.kind !== 'map') {
      problems.error(
        map.at,
        mapPath,
        `each item of a list must be a mapping, not a ${kindName(map)}; begin it with a key and a colon`,
      );
      return;
    }
    const reader = new FieldReader(map, mapPath, problems, POLICY_VOCABULARY);
    reader.expectKeys(ALL_KEYS);
    for (const field of map.fields.values()) {
      if (!MISPLACED_KEYS.has(field.key) || field.key === 'metadata') continue;
      checkIgnored(field.value, reader.pathOf(field.key), problems);
    }
  });
}
