// Finders, which look for the words of a rule. A finder takes a sentence and returns the words that it finds, or null.

const isQuestion = (text) => text.includes('?');

/** Returns a pattern that ignores case. It may be written on several lines. */
export const phrase = (strings) => new RegExp(strings.raw[0].replace(/\n\s*/g, ''), 'i');

/** Finds a pattern in any sentence. */
export const match = (pattern) => (sentence) =>
  pattern
    .exec(sentence.text)?.[0]
    .replace(/^[^\w`]+|[,.;:]+$/g, '')
    .replace(/`x+`/g, '`…`') ?? null;

/** Finds a pattern in any sentence that is not a question. */
export const outsideQuestions = (pattern) => (sentence) =>
  isQuestion(sentence.text) ? null : match(pattern)(sentence);

/** Finds a pattern in sentences, but not in questions, headings and table cells. */
export const inStatement = (pattern) => (sentence) =>
  isQuestion(sentence.text) || sentence.part !== 'text' ? null : match(pattern)(sentence);

/** Finds a pattern in the first sentence of a comment. */
export const atStart = (pattern) => (sentence) =>
  sentence.kind === 'comment' && sentence.first && !isQuestion(sentence.text)
    ? match(pattern)(sentence)
    : null;
