const NOT_ASCII = /[\x80-\xff]/;

/** Returns the text of a string that has one character for each byte of UTF-8. */
export function utf8Of(bytes: string): string {
  return NOT_ASCII.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
}

/** Returns a string that has one character for each byte of UTF-8. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
