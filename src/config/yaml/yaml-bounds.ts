/**
 * Maximum size of a file in bytes: four times the maximum of a Kubernetes ConfigMap or Secret. Parsing takes about a
 * second.
 */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/**
 * Maximum number of brackets, commas, colons, dashes and line ends in a file that plain-yaml.ts leaves to the full
 * parser. The parser takes about 500 bytes for each: 4 MiB of them took 2 GB.
 */
export const MAX_MARKS = 500_000;
/**
 * Maximum number of values that aliases and merge keys of one file may add. Stops documents that expand exponentially.
 */
export const MAX_ALIAS_VALUES = 100_000;
/** Maximum nesting of mappings and lists. Real policies have less than twenty levels. */
export const MAX_YAML_DEPTH = 200;
/** Message for a document that nests too deep. */
export const TOO_DEEP = `the file is nested more than ${MAX_YAML_DEPTH} levels deep; flatten the file`;
/** Maximum number of documents in one file, such as Kubernetes manifests. */
export const MAX_YAML_DOCUMENTS = 1000;
