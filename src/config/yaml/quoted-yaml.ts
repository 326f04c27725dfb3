/** Quotes a string as JSON, which is also valid YAML if YAML's line ends and control characters are escaped, too. */
export function quotedYaml(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
