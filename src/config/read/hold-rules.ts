import { ruleDigest } from '../../policy/names/rule-digest.js';
import type { FieldReader } from './field-reader.js';
import { placeName } from './policy-source.js';

/** Refuses rules with holds that have the same digest, because a hold token could end the holds of the other rule. */
export class HoldRules {
  readonly #digestOf: (place: string) => string;
  readonly #rules = new Map<string, { readonly place: string; readonly reader: FieldReader }>();

  /** `digestOf` is another function only in tests. */
  constructor(digestOf = ruleDigest) {
    this.#digestOf = digestOf;
  }

  /** Adds the rule with holds at a place, see {@link ruleDigest}. `reader` reads its descriptor. */
  add(reader: FieldReader, place: string): void {
    const digest = this.#digestOf(place);
    const other = this.#rules.get(digest);
    // A place that is defined twice is an error of its own.
    if (other === undefined) this.#rules.set(digest, { place, reader });
    else if (other.place !== place) {
      const at = placeName(other.reader.problems.file, other.reader.map.at);
      reader.problems.error(
        reader.map.at,
        reader.path,
        `hold tokens cannot tell a limit here from a limit in ${at}, because both have the same digest; rename the ` +
          'key, the value or the limit of one of the two descriptors',
      );
    }
  }
}
