/**
 * Largest file read, in bytes: four times what a Kubernetes ConfigMap or Secret can hold; about a second of parsing.
 */
export const MAX_FILE_BYTES = 4 * 1024 * 1024;
/**
 * Most brackets, commas, colons, dashes and line ends of a file that plain-yaml.ts leaves to the parser of all YAML,
 * which takes about 500 bytes for each: 4 MiB of them took 2 GB.
 */
export const MAX_MARKS = 500_000;
/** Most values that aliases and merge keys of one file may add: stops documents that expand without end. */
export const MAX_ALIAS_VALUES = 100_000;
/** Deepest nesting of mappings and lists; real policies have less than twenty. */
export const MAX_YAML_DEPTH = 200;
/** Said of what is deeper. */
export const TOO_DEEP = `the file nests more than ${MAX_YAML_DEPTH} levels; flatten it`;
/** Most documents of a file of several, such as manifests for Kubernetes. */
export const MAX_YAML_DOCUMENTS = 1000;
