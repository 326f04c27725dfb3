/**
 * Resolves when all `replies` have settled, or `laterMs` after the first reply. The errors are messages, in the order
 * of the servers.
 */
export function firstAnswers<T>(
  asked: readonly Promise<T>[],
  laterMs: number,
): Promise<{ answers: T[]; errors: string[] }> {
  const answers: T[] = [];
  const errors: string[] = [];
  let failed = 0;
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const end = (): void => {
      clearTimeout(timer);
      resolve({ answers: [...answers], errors: errors.filter(Boolean) });
    };
    const settle = (): void => {
      if (answers.length + failed === asked.length) end();
      else if (answers.length > 0) timer ??= setTimeout(end, laterMs);
    };
    asked.forEach((one, i) => {
      one.then(
        (answer) => {
          answers.push(answer);
          settle();
        },
        ({ message }: Error) => {
          errors[i] = message;
          failed++;
          settle();
        },
      );
    });
  });
}
