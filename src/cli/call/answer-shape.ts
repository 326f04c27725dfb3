/* What an answer must be made of to be shown: another service may listen where a debug port was expected. */

/** A JSON object, of which no field is known. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether it is a list of objects that `isOne` holds of. */
export function isListOf(value: unknown, isOne: (one: JsonObject) => boolean): boolean {
  return Array.isArray(value) && value.every((one) => isObject(one) && isOne(one));
}

/** Whether it is a list of entries. */
export function areEntries(value: unknown): boolean {
  return isListOf(value, ({ key, value: text }) => typeof key === 'string' && typeof text === 'string');
}

/** Whether all of these fields are texts. */
export function haveTexts(object: JsonObject, ...fields: readonly string[]): boolean {
  return fields.every((field) => typeof object[field] === 'string');
}

/** Whether all of these fields are numbers. */
export function haveNumbers(object: JsonObject, ...fields: readonly string[]): boolean {
  return fields.every((field) => typeof object[field] === 'number');
}
