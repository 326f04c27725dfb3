/**
 * Results of gopkg.in/yaml.v2 v2.4.0 and the loader of envoyproxy/ratelimit (f2fb157) for a scalar. Columns: the text
 * as written, then as `value`, `requests_per_unit`, `shadow_mode` and a member of `metadata`, in JSON. `-` means that
 * the file is rejected. Bytes that are not UTF-8 are shown as U+FFFD.
 */
export const REFERENCE_TAGS = `
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
!!int 5 | "5" | 5 | - | 5
!!int "5" | "5" | 5 | - | 5
!!int 0x10 | "0x10" | 16 | - | 16
!!int "-3" | "-3" | - | - | -3
!!int 1.5 | - | - | - | -
!!int "1e3" | - | - | - | -
!!int 9223372036854775808 | - | - | - | 9223372036854776000
!!int true | - | - | - | -
!!int "yes" | - | - | - | -
!!int null | - | - | - | -
!!int "~" | - | - | - | -
!!int "" | - | - | - | -
!!int x | - | - | - | -
!!int 2001-1-2 | - | - | - | -
!!int "aGVsbG8=" | - | - | - | -
!!int aGVsbG8 | - | - | - | -
!!int "a b" | - | - | - | -
!!float 5 | - | - | - | 5
!!float "5" | - | - | - | 5
!!float 0x10 | - | - | - | 16
!!float "-3" | - | - | - | -3
!!float 1.5 | - | - | - | 1.5
!!float "1e3" | - | - | - | 1000
!!float 9223372036854775808 | - | - | - | -
!!float true | - | - | - | -
!!float "yes" | - | - | - | -
!!float null | - | - | - | -
!!float "~" | - | - | - | -
!!float "" | - | - | - | -
!!float x | - | - | - | -
!!float 2001-1-2 | - | - | - | -
!!float "aGVsbG8=" | - | - | - | -
!!float aGVsbG8 | - | - | - | -
!!float "a b" | - | - | - | -
!!bool 5 | - | - | - | -
!!bool "5" | - | - | - | -
!!bool 0x10 | - | - | - | -
!!bool "-3" | - | - | - | -
!!bool 1.5 | - | - | - | -
!!bool "1e3" | - | - | - | -
!!bool 9223372036854775808 | - | - | - | -
!!bool true | "true" | - | true | true
!!bool "yes" | "yes" | - | true | true
!!bool null | - | - | - | -
!!bool "~" | - | - | - | -
!!bool "" | - | - | - | -
!!bool x | - | - | - | -
!!bool 2001-1-2 | - | - | - | -
!!bool "aGVsbG8=" | - | - | - | -
!!bool aGVsbG8 | - | - | - | -
!!bool "a b" | - | - | - | -
!!null 5 | - | - | - | -
!!null "5" | - | - | - | -
!!null 0x10 | - | - | - | -
!!null "-3" | - | - | - | -
!!null 1.5 | - | - | - | -
!!null "1e3" | - | - | - | -
!!null 9223372036854775808 | - | - | - | -
!!null true | - | - | - | -
!!null "yes" | - | - | - | -
!!null null | "" | 0 | false | null
!!null "~" | "" | 0 | false | null
!!null "" | "" | 0 | false | null
!!null x | - | - | - | -
!!null 2001-1-2 | - | - | - | -
!!null "aGVsbG8=" | - | - | - | -
!!null aGVsbG8 | - | - | - | -
!!null "a b" | - | - | - | -
!!timestamp 5 | - | - | - | -
!!timestamp "5" | - | - | - | -
!!timestamp 0x10 | - | - | - | -
!!timestamp "-3" | - | - | - | -
!!timestamp 1.5 | - | - | - | -
!!timestamp "1e3" | - | - | - | -
!!timestamp 9223372036854775808 | - | - | - | -
!!timestamp true | - | - | - | -
!!timestamp "yes" | - | - | - | -
!!timestamp null | - | - | - | -
!!timestamp "~" | - | - | - | -
!!timestamp "" | - | - | - | -
!!timestamp x | - | - | - | -
!!timestamp 2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
!!timestamp "aGVsbG8=" | - | - | - | -
!!timestamp aGVsbG8 | - | - | - | -
!!timestamp "a b" | - | - | - | -
!!binary 5 | - | - | - | -
!!binary "5" | - | - | - | -
!!binary "-3" | - | - | - | -
!!binary 1.5 | - | - | - | -
!!binary "1e3" | - | - | - | -
!!binary 9223372036854775808 | - | - | - | -
!!binary true | "���" | - | - | -
!!binary "yes" | - | - | - | -
!!binary null | "��e" | - | - | -
!!binary "~" | - | - | - | -
!!binary "" | "" | - | - | ""
!!binary x | - | - | - | -
!!binary 2001-1-2 | - | - | - | -
!!binary "aGVsbG8=" | "hello" | - | - | "hello"
!!binary aGVsbG8 | - | - | - | -
!!binary "a b" | - | - | - | -
!foo 5 | "5" | - | - | "5"
!foo "5" | "5" | - | - | "5"
!foo 0x10 | "0x10" | - | - | "0x10"
!foo "-3" | "-3" | - | - | "-3"
!foo 1.5 | "1.5" | - | - | "1.5"
!foo "1e3" | "1e3" | - | - | "1e3"
!foo 9223372036854775808 | "9223372036854775808" | - | - | "9223372036854775808"
!foo true | "true" | - | - | "true"
!foo "yes" | "yes" | - | - | "yes"
!foo null | "null" | - | - | "null"
!foo "~" | "~" | - | - | "~"
!foo "" | "" | - | - | ""
!foo x | "x" | - | - | "x"
!foo 2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
!foo "aGVsbG8=" | "aGVsbG8=" | - | - | "aGVsbG8="
!foo aGVsbG8 | "aGVsbG8" | - | - | "aGVsbG8"
!foo "a b" | "a b" | - | - | "a b"
!!set 5 | "5" | - | - | "5"
!!set "5" | "5" | - | - | "5"
!!set 0x10 | "0x10" | - | - | "0x10"
!!set "-3" | "-3" | - | - | "-3"
!!set 1.5 | "1.5" | - | - | "1.5"
!!set "1e3" | "1e3" | - | - | "1e3"
!!set 9223372036854775808 | "9223372036854775808" | - | - | "9223372036854775808"
!!set true | "true" | - | - | "true"
!!set "yes" | "yes" | - | - | "yes"
!!set null | "null" | - | - | "null"
!!set "~" | "~" | - | - | "~"
!!set "" | "" | - | - | ""
!!set x | "x" | - | - | "x"
!!set 2001-1-2 | "2001-1-2" | - | - | "2001-1-2"
!!set "aGVsbG8=" | "aGVsbG8=" | - | - | "aGVsbG8="
!!set aGVsbG8 | "aGVsbG8" | - | - | "aGVsbG8"
!!set "a b" | "a b" | - | - | "a b"
!<tag:yaml.org,2002:int> 5 | "5" | 5 | - | 5
!<tag:yaml.org,2002:int> "5" | "5" | 5 | - | 5
!<tag:yaml.org,2002:int> 0x10 | "0x10" | 16 | - | 16
!<tag:yaml.org,2002:int> "-3" | "-3" | - | - | -3
!<tag:yaml.org,2002:int> 1.5 | - | - | - | -
!<tag:yaml.org,2002:int> "1e3" | - | - | - | -
!<tag:yaml.org,2002:int> 9223372036854775808 | - | - | - | 9223372036854776000
!<tag:yaml.org,2002:int> true | - | - | - | -
!<tag:yaml.org,2002:int> "yes" | - | - | - | -
!<tag:yaml.org,2002:int> null | - | - | - | -
!<tag:yaml.org,2002:int> "~" | - | - | - | -
!<tag:yaml.org,2002:int> "" | - | - | - | -
!<tag:yaml.org,2002:int> x | - | - | - | -
!<tag:yaml.org,2002:int> 2001-1-2 | - | - | - | -
!<tag:yaml.org,2002:int> "aGVsbG8=" | - | - | - | -
!<tag:yaml.org,2002:int> aGVsbG8 | - | - | - | -
!<tag:yaml.org,2002:int> "a b" | - | - | - | -
!!timestamp "2001-13-01" | - | - | - | -
!!timestamp "2001-02-30" | - | - | - | -
!!timestamp "2000-02-29" | "2000-02-29" | - | - | "2000-02-29"
!!timestamp "1900-02-29" | - | - | - | -
!!timestamp "2001-01-01T1:2:3Z" | "2001-01-01T1:2:3Z" | - | - | "2001-01-01T1:2:3Z"
!!timestamp "2001-01-01t01:02:03.123456789+01:00" | "2001-01-01t01:02:03.123456789+01:00" | - | - | "2001-01-01t01:02:03.123456789+01:00"
!!timestamp "2001-01-01 01:02:03.5" | "2001-01-01 01:02:03.5" | - | - | "2001-01-01 01:02:03.5"
!!timestamp "2001-01-01 01:02:03Z" | - | - | - | -
!!timestamp "2001-01-01T01:02:03" | - | - | - | -
!!timestamp "2001-12-14 21:59:43.10 -5" | - | - | - | -
!!timestamp "2001-01-01T24:00:00Z" | - | - | - | -
!!timestamp "2001-01-01T23:59:60Z" | - | - | - | -
!!timestamp "2001-01-01T01:02:03,5Z" | "2001-01-01T01:02:03,5Z" | - | - | "2001-01-01T01:02:03,5Z"
!!timestamp "2001-01-01T01:02:03+24:60" | "2001-01-01T01:02:03+24:60" | - | - | "2001-01-01T01:02:03+24:60"
!!timestamp "2001-01-01T01:02:03+25:00" | - | - | - | -
!!timestamp "2001-01-01T01:02:03-0100" | - | - | - | -
!!timestamp "02001-01-01" | - | - | - | -
!!timestamp "2001-1-" | - | - | - | -
!!timestamp "2001-01-01T" | - | - | - | -
!!timestamp "0000-01-01" | "0000-01-01" | - | - | "0000-01-01"
!!timestamp "0004-02-29" | "0004-02-29" | - | - | "0004-02-29"
!!timestamp "0100-02-29" | - | - | - | -
!!binary "aGVs bG8=" | - | - | - | -
!!binary "aGVsbG9=" | "hello" | - | - | "hello"
!!binary "aGV=bG8=" | - | - | - | -
!!binary "-_8=" | - | - | - | -
!!binary "====" | - | - | - | -
!!binary "A===" | - | - | - | -
!!binary "w6TDtg==" | "äö" | - | - | "äö"
!!float 0x10 | - | - | - | 16
!!float 1_0 | - | - | - | 10
!!int 1_0 | "1_0" | 10 | - | 10
!!int "0b11" | "0b11" | 3 | - | 3
!!int 017 | "017" | 15 | - | 15
!!float .inf | - | - | - | "Infinity"
!<!!binary> aGVsbG8= | "aGVsbG8=" | - | - | "aGVsbG8="
!!bInary aGVsbG8= | "aGVsbG8=" | - | - | "aGVsbG8="
!!%62inary aGVsbG8= | "hello" | - | - | "hello"
`;
