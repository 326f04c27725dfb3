/** How long the answer to a command may be, an error aside. What is longer is no answer, and ends the connection. */
export interface ReplyBound {
  /** Most elements of an array, which are integers; 0 where no array is asked for. */
  readonly integers: number;
  /** Most bytes of a text; 0 where none is asked for. With `integers`, of a text that is an integer. */
  readonly textBytes: number;
}

/** Of a command that is answered with OK, or with the name of a script. */
export const SHORT_TEXT: ReplyBound = { integers: 0, textBytes: 64 };
/** Of a section of INFO, which has some dozens of lines. */
export const INFO_TEXT: ReplyBound = { integers: 0, textBytes: 65_536 };
