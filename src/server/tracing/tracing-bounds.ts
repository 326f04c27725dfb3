/** Ended spans that wait to be sent; more are lost, and counted. */
export const MAX_WAITING_SPANS = 2048;
/** Spans that are sent in one message: writing it takes less than a millisecond. */
export const SPANS_AT_ONCE = 64;
/** Messages that the collector has yet to answer. */
export const MESSAGES_AT_ONCE = 40;
/** Most characters of a text in a span. */
export const MAX_SPAN_TEXT = 256;
/** How long the end of the process may wait for the last spans to be taken. Milliseconds. */
export const LAST_SPANS_MS = 2000;
