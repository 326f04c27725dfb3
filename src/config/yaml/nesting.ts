/**
 * Returns an upper bound for the nesting of a YAML text without parsing it, at most `limit` + 1. The parser recurses,
 * and a stack overflow in it can end the process, so text that nests too deep must not reach it.
 *
 * Counts nested indented lines, block indicators (`- - - x`) and open brackets. Quotes, comments and block texts count,
 * too: hundreds of open brackets there are not a policy either.
 */
export function nestingBound(text: string, limit: number): number {
  const indents: number[] = [];
  let brackets = 0;
  let deepest = 0;
  let start = 0;
  while (start < text.length && deepest <= limit) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    let i = start;
    while (i < end && text[i] === ' ') i++;
    const indent = i - start;
    let indicators = 0;
    while (i + 1 < end && isIndicator(text[i] as string) && (text[i + 1] === ' ' || text[i + 1] === '\t')) {
      indicators++;
      i += 2;
      while (text[i] === ' ' || text[i] === '\t') i++;
    }
    if (i < end || indicators > 0) {
      while (indents.length > 0 && (indents.at(-1) as number) >= indent) indents.pop();
      indents.push(indent);
      // Each indicator counts as a level of indentation, because the following lines may be indented below it.
      for (let n = 0; n < indicators && indents.length <= limit; n++) indents.push(indent + 1 + n);
    }
    deepest = Math.max(deepest, indents.length + brackets);
    for (; i < end; i++) {
      const char = text[i];
      if (char === '[' || char === '{') brackets++;
      else if ((char === ']' || char === '}') && brackets > 0) brackets--;
      if (indents.length + brackets > deepest) deepest = indents.length + brackets;
      if (deepest > limit) break;
    }
    start = end + 1;
  }
  return Math.min(deepest, limit + 1);
}

function isIndicator(char: string): boolean {
  return char === '-' || char === '?' || char === ':';
}
