{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* Five characters are left for `-pods`. */ -}}
{{- define "weir.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 58 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 58 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 58 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "weir.metadata" -}}
name: {{ include "weir.fullname" . | quote }}
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "weir.labels" . | nindent 2 }}
{{- end -}}

{{- define "weir.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A value as text. Helm reads numbers as floating point, which would print 134217728 as 1.34217728e+08. */ -}}
{{- define "weir.text" -}}
{{- if kindIs "float64" . -}}
{{- if eq (floor .) . -}}{{- printf "%.0f" . -}}{{- else -}}{{- . -}}{{- end -}}
{{- else if not (kindIs "invalid" .) -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- /* One of the settings as text: (list . NAME), or (list . NAME default). */ -}}
{{- define "weir.setting" -}}
{{- $text := include "weir.text" (get (index . 0).Values.settings (index . 1)) -}}
{{- if and (eq $text "") (gt (len .) 2) -}}{{- index . 2 -}}{{- else -}}{{- $text -}}{{- end -}}
{{- end -}}

{{- /* "true" where a setting that is true or false is true; (list . NAME). */ -}}
{{- define "weir.isOn" -}}
{{- if has (include "weir.setting" .) (list "1" "t" "T" "true" "TRUE" "True") -}}true{{- end -}}
{{- end -}}

{{- define "weir.grpcPort" -}}{{- include "weir.setting" (list . "GRPC_PORT" "8081") -}}{{- end -}}
{{- define "weir.httpPort" -}}{{- include "weir.setting" (list . "PORT" "8080") -}}{{- end -}}

{{- define "weir.hasRedis" -}}
{{- $names := list -}}
{{- range .Values.extraEnv -}}{{- $names = append $names .name -}}{{- end -}}
{{- if or (include "weir.setting" (list . "REDIS_URL")) .Values.redis.url.existingSecret (has "REDIS_URL" $names) -}}
true
{{- end -}}
{{- end -}}

{{- define "weir.hasTls" -}}
{{- if or .Values.tls.existingSecret (include "weir.isOn" (list . "GRPC_SERVER_USE_TLS")) -}}true{{- end -}}
{{- end -}}

{{- /* Addresses of the management servers, separated by commas; nothing for policies in files. */ -}}
{{- define "weir.xdsServers" -}}
{{- $own := include "weir.ownVariables" . | fromJson -}}
{{- if eq (get $own "CONFIG_TYPE" | default (include "weir.setting" (list . "CONFIG_TYPE"))) "GRPC_XDS_SOTW" -}}
{{- include "weir.setting" (list . "CONFIG_GRPC_XDS_SERVER_URL" (get $own "CONFIG_GRPC_XDS_SERVER_URL" | default "localhost:18000")) -}}
{{- end -}}
{{- end -}}

{{- define "weir.policiesConfigMap" -}}
{{- if .Values.policies.existingConfigMap -}}
{{- .Values.policies.existingConfigMap -}}
{{- else if .Values.policies.files -}}
{{- include "weir.fullname" . }}-policies
{{- end -}}
{{- end -}}

{{- /* Variables that the chart makes of other values, as JSON: {NAME: value}. */ -}}
{{- define "weir.ownVariables" -}}
{{- $own := dict -}}
{{- if include "weir.policiesConfigMap" . -}}
{{- $_ := set $own "CONFIG_PATH" "/etc/weir/policies" -}}
{{- end -}}
{{- /* Settings of their own may add the management server of Envoy Gateway. */ -}}
{{- if .Values.aiGateway.quotaPolicies -}}
{{- $xds := dict "CONFIG_TYPE" "GRPC_XDS_SOTW" "CONFIG_GRPC_XDS_SERVER_URL" "ai-gateway-controller.envoy-ai-gateway-system.svc.cluster.local:18002" "CONFIG_GRPC_XDS_NODE_ID" "envoy-ai-gateway-ratelimit" -}}
{{- range $name, $value := $xds -}}
{{- if not (include "weir.setting" (list $ $name)) -}}{{- $_ := set $own $name $value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.redis.auth -}}
{{- if .existingSecret -}}{{- $_ := set $own "REDIS_AUTH_FILE" (printf "/etc/weir/redis-auth/%s" .key) -}}{{- end -}}
{{- end -}}
{{- with .Values.redis.tls -}}
{{- if .existingSecret -}}
{{- $_ := set $own "REDIS_TLS" "true" -}}
{{- if .caKey -}}{{- $_ := set $own "REDIS_TLS_CACERT" (printf "/etc/weir/redis-tls/%s" .caKey) -}}{{- end -}}
{{- if .certKey -}}{{- $_ := set $own "REDIS_TLS_CLIENT_CERT" (printf "/etc/weir/redis-tls/%s" .certKey) -}}{{- end -}}
{{- if .keyKey -}}{{- $_ := set $own "REDIS_TLS_CLIENT_KEY" (printf "/etc/weir/redis-tls/%s" .keyKey) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls -}}
{{- if .existingSecret -}}
{{- $_ := set $own "GRPC_SERVER_USE_TLS" "true" -}}
{{- $_ := set $own "GRPC_SERVER_TLS_CERT" (printf "/etc/weir/tls/%s" .certKey) -}}
{{- $_ := set $own "GRPC_SERVER_TLS_KEY" (printf "/etc/weir/tls/%s" .keyKey) -}}
{{- if .clientCaKey -}}
{{- $_ := set $own "GRPC_CLIENT_TLS_CACERT" (printf "/etc/weir/tls/%s" .clientCaKey) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.debug.tokens -}}
{{- if .existingSecret -}}{{- $_ := set $own "ADMIN_TOKENS_FILE" (printf "/etc/weir/debug-tokens/%s" .key) -}}{{- end -}}
{{- end -}}
{{- with .Values.debug.tls -}}
{{- if .existingSecret -}}
{{- $_ := set $own "DEBUG_SERVER_TLS_CERT" (printf "/etc/weir/debug-tls/%s" .certKey) -}}
{{- $_ := set $own "DEBUG_SERVER_TLS_KEY" (printf "/etc/weir/debug-tls/%s" .keyKey) -}}
{{- end -}}
{{- end -}}
{{- toJson $own -}}
{{- end -}}

{{- /* The debug port where other pods reach it; nothing where it is on loopback. */ -}}
{{- define "weir.openDebugPort" -}}
{{- $host := include "weir.setting" (list . "DEBUG_HOST" "127.0.0.1") -}}
{{- if not (regexMatch "^(localhost|127(\\.[0-9]+){3}|::1)$" $host) -}}
{{- include "weir.setting" (list . "DEBUG_PORT" "6070") -}}
{{- end -}}
{{- end -}}

{{- /* Seconds of a duration such as 1m30s. */ -}}
{{- define "weir.seconds" -}}
{{- $units := dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+[a-zµμ]+" . -1 -}}
{{- $factor := default 0.0 (get $units (regexFind "[a-zµμ]+$" .)) -}}
{{- $sum = addf $sum (mulf (float64 (regexFind "[0-9.]+" .)) $factor) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{- /*
Ports of the addresses that the settings name, as a JSON list; 6379 where they name none. With Sentinels those of all
Sentinels, 26379 where they name none, and 6379: where the Redis are is not in the settings. With a cluster those of all
nodes that are named; the others usually have the same.
*/ -}}
{{- define "weir.redisPorts" -}}
{{- $ports := list -}}
{{- range $prefix := list "REDIS" "REDIS_PERSECOND" -}}
{{- $url := include "weir.setting" (list $ (printf "%s_URL" $prefix)) -}}
{{- if or $url (eq $prefix "REDIS") -}}
{{- if eq (include "weir.setting" (list $ (printf "%s_TYPE" $prefix)) | lower) "sentinel" -}}
{{- range $sentinel := default (list "") (rest (splitList "," $url)) -}}
{{- $ports = append $ports (int (default "26379" (regexFind ":[0-9]+$" (trim $sentinel) | trimPrefix ":"))) -}}
{{- end -}}
{{- $ports = append $ports 6379 -}}
{{- else -}}
{{- range $node := splitList "," $url -}}
{{- $port := regexFind ":[0-9]+(/|\\?|$)" (trim $node) | trimPrefix ":" | trimSuffix "/" | trimSuffix "?" -}}
{{- $ports = append $ports (int (default "6379" $port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end -}}

{{- /*
Ports of the collectors of traces that extraEnv names, as a JSON list. Without an address spans go to the pod itself. An
address from a Secret or a ConfigMap is not known here: then both ports that OpenTelemetry has by default.
*/ -}}
{{- define "weir.tracingPorts" -}}
{{- $ports := list -}}
{{- if include "weir.isOn" (list . "TRACING_ENABLED") -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "OTEL_EXPORTER_OTLP_ENDPOINT" "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") -}}
{{- if .value -}}
{{- $port := regexFind ":[0-9]+(/|$)" .value | trimPrefix ":" | trimSuffix "/" -}}
{{- $ports = append $ports (int (default (ternary "443" "80" (hasPrefix "https:" .value)) $port)) -}}
{{- else -}}
{{- $ports = concat $ports (list 4317 4318) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end -}}
