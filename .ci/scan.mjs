// Finds lines and comments of TypeScript and JavaScript much faster than a parser.

/**
 * Returns the lines of a text, whether each line begins inside a template (by line number, from 1), and the comments:
 * [{line, column, text}], with their delimiters.
 */
export function scan(text) {
  const inTemplate = [];
  const comments = [];
  const stack = [];
  let line = 1;
  let at = 0;
  const lines = text.split('\n');
  inTemplate[1] = false;
  const newline = () => {
    line++;
    inTemplate[line] = stack.at(-1) === '`';
  };
  while (at < text.length) {
    const char = text[at];
    const pair = text.slice(at, at + 2);
    if (stack.at(-1) === '`') {
      if (char === '\\') {
        at++;
        if (text[at] === '\n') newline();
      } else if (char === '`') stack.pop();
      else if (pair === '${') {
        stack.push('{');
        at++;
      } else if (char === '\n') newline();
      at++;
    } else if (pair === '//' || pair === '/*') {
      const end = pair === '//' ? text.indexOf('\n', at) : text.indexOf('*/', at) + 2;
      const stop = end < at ? text.length : end;
      const comment = text.slice(at, stop);
      comments.push({ line, column: at - text.lastIndexOf('\n', at) - 1, text: comment });
      for (const one of comment) if (one === '\n') newline();
      at = stop;
    } else if (char === "'" || char === '"') {
      for (at++; at < text.length && text[at] !== char && text[at] !== '\n'; at++)
        if (text[at] === '\\') at++;
      at++;
    } else if (
      char === '/' &&
      /(^|[(,=:[!&|?{};\n]|return|=>)\s*$/.test(text.slice(Math.max(0, at - 20), at))
    ) {
      let inClass = false;
      for (at++; at < text.length && text[at] !== '\n' && (inClass || text[at] !== '/'); at++) {
        if (text[at] === '\\') at++;
        else if (text[at] === '[') inClass = true;
        else if (text[at] === ']') inClass = false;
      }
      at++;
    } else {
      if (char === '`') stack.push('`');
      else if (char === '{') stack.push('{');
      else if (char === '}' && stack.length > 0) stack.pop();
      else if (char === '\n') newline();
      at++;
    }
  }
  return { lines, inTemplate, comments };
}
