/**
 * Results of gopkg.in/yaml.v2 v2.4.0 and the loader of envoyproxy/ratelimit (f2fb157) for a scalar. Columns: the text
 * as written, then as `value`, `requests_per_unit`, `shadow_mode` and a member of `metadata`, in JSON. `-` means that
 * the file is rejected.
 */
export const REFERENCE_SCALARS = `
5 | "5" | 5 | - | 5
"5" | "5" | - | - | "5"
0x10 | "0x10" | 16 | - | 16
"-3" | "-3" | - | - | "-3"
1.5 | - | - | - | 1.5
"1e3" | "1e3" | - | - | "1e3"
9223372036854775808 | - | - | - | 9223372036854776000
true | "true" | - | true | true
"yes" | "yes" | - | - | "yes"
null | "" | 0 | false | null
"~" | "~" | - | - | "~"
"" | "" | - | - | ""
x | "x" | - | - | "x"
2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
"aGVsbG8=" | "aGVsbG8=" | - | - | "aGVsbG8="
aGVsbG8 | "aGVsbG8" | - | - | "aGVsbG8"
"a b" | "a b" | - | - | "a b"
! 5 | "5" | - | - | "5"
! "5" | "5" | - | - | "5"
! 0x10 | "0x10" | - | - | "0x10"
! "-3" | "-3" | - | - | "-3"
! 1.5 | "1.5" | - | - | "1.5"
! "1e3" | "1e3" | - | - | "1e3"
! 9223372036854775808 | "9223372036854775808" | - | - | "9223372036854775808"
! true | "true" | - | - | "true"
! "yes" | "yes" | - | - | "yes"
! null | "null" | - | - | "null"
! "~" | "~" | - | - | "~"
! "" | "" | - | - | ""
! x | "x" | - | - | "x"
! 2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
! "aGVsbG8=" | "aGVsbG8=" | - | - | "aGVsbG8="
! aGVsbG8 | "aGVsbG8" | - | - | "aGVsbG8"
! "a b" | "a b" | - | - | "a b"
!!str 5 | "5" | - | - | "5"
!!str "5" | "5" | - | - | "5"
!!str 0x10 | "0x10" | - | - | "0x10"
!!str "-3" | "-3" | - | - | "-3"
!!str 1.5 | "1.5" | - | - | "1.5"
!!str "1e3" | "1e3" | - | - | "1e3"
!!str 9223372036854775808 | "9223372036854775808" | - | - | "9223372036854775808"
!!str true | "true" | - | - | "true"
!!str "yes" | "yes" | - | - | "yes"
!!str null | "null" | - | - | "null"
!!str "~" | "~" | - | - | "~"
!!str "" | "" | - | - | ""
!!str x | "x" | - | - | "x"
!!str 2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
!!str "aGVsbG8=" | "aGVsbG8=" | - | - | "aGVsbG8="
!!str aGVsbG8 | "aGVsbG8" | - | - | "aGVsbG8"
!!str "a b" | "a b" | - | - | "a b"
`;
