/** Maximum size of a reply that is not an error. A longer reply is invalid and ends the connection. */
export interface ReplyBound {
  /** Maximum number of integers in an array; 0 if no array is expected. */
  readonly integers: number;
  /** Maximum bytes of a string; 0 if no string is expected. */
  readonly textBytes: number;
}

/** Bound for commands whose reply is OK or the name of a script. */
export const SHORT_TEXT: ReplyBound = { integers: 0, textBytes: 64 };
/** Bound for a section of INFO, which has some dozens of lines. */
export const INFO_TEXT: ReplyBound = { integers: 0, textBytes: 65_536 };
