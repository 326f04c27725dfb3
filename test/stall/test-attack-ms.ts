/** How long each attack lasts in the tests: all of them together stay below two and a half minutes. */
export const SHORT_MS = 300;
