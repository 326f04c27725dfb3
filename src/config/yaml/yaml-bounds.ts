/** Maximum size of a file in bytes: four times the maximum of a Kubernetes ConfigMap or Secret. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Maximum number of values that aliases and merge keys of one file may add, because each may double the file. */
export const MAX_ALIAS_VALUES = 100_000;
/** Maximum nesting of mappings and lists. Real policies have less than twenty levels. */
export const MAX_YAML_DEPTH = 200;
