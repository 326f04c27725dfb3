type Variables = Readonly<Record<string, string>>;

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `${NAME:+text}`, `$NAME` and `$$`. The result has no text
 * if a variable without a default is unset.
 */
export function interpolate(text: string, variables: Variables): { readonly text: string | undefined } {
  let known = true;
  const replaced = text.replaceAll(
    /\$(?:(\$)|\{(\w+)(?:(:?[-?+])([^}]*))?\}|(\w+))/g,
    (
      _all,
      dollar: string | undefined,
      braced: string | undefined,
      operator: string | undefined,
      word: string | undefined,
      bare: string | undefined,
    ) => {
      if (dollar !== undefined) return '$';
      const value = variables[braced ?? bare ?? ''];
      const isSet = value !== undefined && !(operator?.startsWith(':') === true && value === '');
      if (operator?.endsWith('+') === true) return isSet ? (word ?? '') : '';
      if (isSet) return value;
      if (operator?.endsWith('-') === true) return word ?? '';
      known = false;
      return '';
    },
  );
  return { text: known ? replaced : undefined };
}

/** Returns the variables in a string for which {@link interpolate} has no value. */
export function unsetVariables(text: string, variables: Variables): readonly string[] {
  const names = [...text.matchAll(/\$(?:\$|\{(\w+)[^}]*\}|(\w+))/g)].flatMap(
    ([, braced, bare]) => braced ?? bare ?? [],
  );
  return [...new Set(names)].filter((name) => interpolate(`$${name}`, variables).text === undefined);
}
