import { UNKNOWN_KEY_PREFIX } from '../../policy/derive/derive.js';
import type { FieldReader } from '../yaml/field-reader.js';

/**
 * Adds the API keys of one mapping, `<SHA-256 of the key, hex>: <tenant>`, to `table`. Messages and paths name items by
 * position and never by content, because a user may have written a key instead of its digest.
 */
export function readKeyTable(reader: FieldReader, table: Map<string, string>): void {
  for (const field of reader.map.fields.values()) {
    const path = `${reader.path}[${field.index}]`;
    if (!/^[0-9a-f]{64}$/i.test(field.key)) {
      reader.problems.error(
        field.keyAt,
        path,
        'this is not a SHA-256 digest (64 hex digits); write the digest of the API key, never the key itself',
      );
      continue;
    }
    if (field.value.kind !== 'scalar' || field.value.text === '' || field.value.text === '~') {
      reader.problems.error(
        field.value.at,
        path,
        'the tenant of this digest is missing; write the name of the tenant as a string',
      );
      continue;
    }
    const tenant = field.value.text;
    if (tenant.startsWith(UNKNOWN_KEY_PREFIX)) {
      reader.problems.error(
        field.value.at,
        path,
        `a tenant must not begin with "${UNKNOWN_KEY_PREFIX}", which is reserved for keys that are not ` +
          'listed; rename the tenant',
      );
      continue;
    }
    const digest = field.key.toLowerCase();
    const other = table.get(digest);
    if (other !== undefined && other !== tenant) {
      reader.problems.error(
        field.keyAt,
        path,
        `the key with the digest ${digest.slice(0, 8)}… has two tenants, "${other}" and "${tenant}"; ` +
          'keep only one tenant',
      );
      continue;
    }
    table.set(digest, tenant);
  }
}
