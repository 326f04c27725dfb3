export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Maximum size of the metadata of rules in an answer, in UTF-16 units. Each member adds {@link ENTRY_UNITS} to its
 * strings, because encoding takes as long.
 */
export const MAX_METADATA_UNITS = 98_304;
export const ENTRY_UNITS = 128;
/**
 * Maximum number of metadata members that are read for one answer; the rules of a request mostly have the same members.
 */
const MAX_MERGED_MEMBERS = 5000;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the size of a metadata member without its key, in UTF-16 units; any number above `max` if it is larger. */
function unitsOf(member: unknown, max: number): number {
  if (typeof member === 'string') return ENTRY_UNITS + member.length;
  let units = ENTRY_UNITS;
  if (typeof member !== 'object' || member === null) return units;
  const isList = Array.isArray(member);
  for (const [key, value] of Object.entries(member)) {
    units += (isList ? 0 : key.length) + unitsOf(value, max - units);
    if (units > max) break;
  }
  return units;
}

/** Merges objects: of equal members the first one wins, but objects are merged recursively. */
export class Merged {
  // Has no prototype, so that a key named `__proto__` is an ordinary key.
  readonly members: Record<string, unknown> = Object.create(null);
  /** Objects of the result that this class created, which therefore belong to no rule. */
  private readonly ownedObjects = new Set<unknown>([this.members]);
  private unitsLeft = MAX_METADATA_UNITS;
  private membersLeft = MAX_MERGED_MEMBERS;

  get isEmpty(): boolean {
    return Object.keys(this.members).length === 0;
  }

  /**
   * Adds the members of `members` that are missing, without changing `members`. Returns false if a bound stopped it.
   */
  add(members: JsonObject, to: Record<string, unknown> = this.members): boolean {
    for (const key of Object.keys(members)) {
      if (--this.membersLeft < 0) return false;
      const value = members[key];
      const known = to[key];
      if (known === undefined) {
        const units = key.length + unitsOf(value, this.unitsLeft);
        if (units > this.unitsLeft) return false;
        this.unitsLeft -= units;
        to[key] = value;
      } else if (isObject(known) && isObject(value) && !this.add(value, this.owned(known, key, to))) {
        return false;
      }
    }
    return true;
  }

  private owned(known: JsonObject, key: string, to: Record<string, unknown>): Record<string, unknown> {
    if (this.ownedObjects.has(known)) return known;
    const copy: Record<string, unknown> = Object.assign(Object.create(null), known);
    this.ownedObjects.add(copy);
    to[key] = copy;
    return copy;
  }
}
