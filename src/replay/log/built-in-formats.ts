import { jsonMembers } from './json-format.js';
import {
  jsonFormat,
  type LogFormat,
  RESPONSE_FLAGS,
  START_TIME,
  textFormat,
  WEIR_CALL,
  WEIR_SAMPLE,
} from './log-format.js';

/** Envoy's default, without `format` or `log_format` in the configuration. */
const ENVOY_TEXT =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ' +
  '%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" ' +
  '"%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"';

/** Istio's default, for `accessLogFile` without `accessLogFormat`. */
const ISTIO_TEXT =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ' +
  '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% ' +
  '%BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ' +
  '"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% ' +
  '%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%';

/** Envoy Gateway's default, for an EnvoyProxy without `telemetry.accessLog`. */
const ENVOY_GATEWAY_JSON = {
  start_time: '%START_TIME%',
  method: '%REQ(:METHOD)%',
  'x-envoy-origin-path': '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
  protocol: '%PROTOCOL%',
  response_code: '%RESPONSE_CODE%',
  response_flags: '%RESPONSE_FLAGS%',
  bytes_received: '%BYTES_RECEIVED%',
  bytes_sent: '%BYTES_SENT%',
  duration: '%DURATION%',
  'x-forwarded-for': '%REQ(X-FORWARDED-FOR)%',
  'user-agent': '%REQ(USER-AGENT)%',
  'x-request-id': '%REQ(X-REQUEST-ID)%',
  ':authority': '%REQ(:AUTHORITY)%',
  upstream_host: '%UPSTREAM_HOST%',
  upstream_cluster: '%UPSTREAM_CLUSTER%',
  upstream_local_address: '%UPSTREAM_LOCAL_ADDRESS%',
  downstream_local_address: '%DOWNSTREAM_LOCAL_ADDRESS%',
  downstream_remote_address: '%DOWNSTREAM_REMOTE_ADDRESS%',
  requested_server_name: '%REQUESTED_SERVER_NAME%',
  route_name: '%ROUTE_NAME%',
};

const DECISION_LOG: LogFormat = {
  title: "weir's decision log",
  operators: new Set([START_TIME, RESPONSE_FLAGS, WEIR_CALL, WEIR_SAMPLE]),
  syntax: { kind: 'decisions' },
};

const DESCRIPTORS: LogFormat = {
  title: 'JSON lines with "time", "domain" and "descriptors"',
  operators: new Set([START_TIME, WEIR_CALL]),
  syntax: { kind: 'descriptors' },
};

/** Formats that a log may have without saying so. */
export const BUILT_IN_FORMATS: readonly LogFormat[] = [
  DECISION_LOG,
  DESCRIPTORS,
  textFormat("Istio's default format", ISTIO_TEXT),
  textFormat("Envoy's default format", ENVOY_TEXT),
  jsonFormat("Envoy Gateway's default format", jsonMembers(ENVOY_GATEWAY_JSON)),
];
