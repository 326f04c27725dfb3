/* Tags of google.protobuf.Struct, Value and ListValue (google/protobuf/struct.proto): field number * 8 + wire type. */
export const STRUCT_FIELDS = 0x0a;
export const MAP_KEY = 0x0a;
export const MAP_VALUE = 0x12;
export const VALUE_NULL = 0x08;
export const VALUE_NUMBER = 0x11;
export const VALUE_STRING = 0x1a;
export const VALUE_BOOL = 0x20;
export const VALUE_STRUCT = 0x2a;
export const VALUE_LIST = 0x32;
export const LIST_VALUES = 0x0a;
