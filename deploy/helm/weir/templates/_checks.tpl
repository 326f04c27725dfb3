{{- /* Ends with a line for each value that the others make wrong: what it is, why, and what to do. */ -}}
{{- define "weir.check" -}}
{{- $problems := concat (include "weir.policyProblems" . | fromJsonArray) (include "weir.secretProblems" . | fromJsonArray) (include "weir.servingProblems" . | fromJsonArray) -}}
{{- if $problems -}}
{{- fail (printf "\n  %s" (join "\n  " $problems)) -}}
{{- end -}}
{{- end -}}

{{- define "weir.policyProblems" -}}
{{- $problems := list -}}
{{- $sources := list -}}
{{- if .Values.policies.files -}}{{- $sources = append $sources "policies.files" -}}{{- end -}}
{{- if .Values.policies.existingConfigMap -}}{{- $sources = append $sources "policies.existingConfigMap" -}}{{- end -}}
{{- range $name := list "CONFIG_PATH" "RUNTIME_ROOT" "RUNTIME_SUBDIRECTORY" "RUNTIME_APPDIRECTORY" -}}
{{- if include "weir.setting" (list $ $name) -}}{{- $sources = append $sources (printf "settings.%s" $name) -}}{{- end -}}
{{- end -}}
{{- if and (gt (len $sources) 1) (not (hasPrefix "settings.RUNTIME" (first $sources))) -}}
{{- $problems = append $problems (printf "%s: each of them says where the policies are; set one of them" (join ", " $sources)) -}}
{{- end -}}
{{- if and (hasPrefix "policies." (first $sources | default "")) (include "weir.xdsServers" .) -}}
{{- $why := ternary "aiGateway.quotaPolicies is true" "settings.CONFIG_TYPE is GRPC_XDS_SOTW" .Values.aiGateway.quotaPolicies -}}
{{- $problems = append $problems (printf "%s: %s, so policies come from a management server and files are not read; remove one of them" (first $sources) $why) -}}
{{- end -}}
{{- if .Values.aiGateway.quotaPolicies -}}
{{- if eq (include "weir.setting" (list . "CONFIG_TYPE")) "FILE" -}}
{{- $problems = append $problems "aiGateway.quotaPolicies: settings.CONFIG_TYPE is FILE, but QuotaPolicies come from a management server; remove one of them" -}}
{{- end -}}
{{- if ne (include "weir.grpcPort" .) "8081" -}}
{{- $problems = append $problems "aiGateway.quotaPolicies: Envoy AI Gateway always calls port 8081; remove settings.GRPC_PORT" -}}
{{- end -}}
{{- if include "weir.hasTls" . -}}
{{- $problems = append $problems "aiGateway.quotaPolicies: Envoy AI Gateway calls the gRPC port in plain text; turn TLS off (tls.existingSecret, settings.GRPC_SERVER_USE_TLS)" -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "weir.secretProblems" -}}
{{- $problems := list -}}
{{- $inExtraEnv := "refer to that in extraEnv (valueFrom.secretKeyRef)" -}}
{{- $ways := dict "REDIS_AUTH" "name that in redis.auth.existingSecret" "REDIS_SENTINEL_AUTH" "name that in redis.sentinelAuth.existingSecret" "REDIS_PERSECOND_AUTH" $inExtraEnv "REDIS_PERSECOND_SENTINEL_AUTH" $inExtraEnv -}}
{{- range $name, $way := $ways -}}
{{- if include "weir.setting" (list $ $name) -}}
{{- $problems = append $problems (printf "settings.%s: everyone who may read the Deployment could read it; put the password into a Secret and %s" $name $way) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "REDIS_URL" "REDIS_PERSECOND_URL" -}}
{{- if regexMatch "^[a-z]+://[^/@]*:[^@]+@" (include "weir.setting" (list $ $name)) -}}
{{- $way := ternary "name that in redis.url.existingSecret, or the password alone in redis.auth.existingSecret" $inExtraEnv (eq $name "REDIS_URL") -}}
{{- $problems = append $problems (printf "settings.%s: it holds a password, which everyone who may read the Deployment could read; put it into a Secret and %s" $name $way) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.redis.url.existingSecret (include "weir.setting" (list . "REDIS_URL")) -}}
{{- $problems = append $problems "settings.REDIS_URL: redis.url.existingSecret holds the address, too; set one of them" -}}
{{- end -}}
{{- $own := include "weir.ownVariables" . | fromJson -}}
{{- range $name, $_ := $own -}}
{{- if and (ne $name "CONFIG_PATH") (include "weir.setting" (list $ $name)) -}}
{{- $value := ternary "tls" "redis.tls" (hasPrefix "GRPC_" $name) -}}
{{- if eq $name "REDIS_AUTH_FILE" -}}{{- $value = "redis.auth" -}}{{- end -}}
{{- if eq $name "ADMIN_TOKENS_FILE" -}}{{- $value = "debug.tokens" -}}{{- end -}}
{{- if hasPrefix "DEBUG_" $name -}}{{- $value = "debug.tls" -}}{{- end -}}
{{- $problems = append $problems (printf "settings.%s: the chart sets it because of %s.existingSecret; remove one of them" $name $value) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if or (hasKey $own .name) (include "weir.setting" (list $ .name)) (and (eq .name "REDIS_URL") $.Values.redis.url.existingSecret) (and (eq .name "REDIS_SENTINEL_AUTH") $.Values.redis.sentinelAuth.existingSecret) -}}
{{- $problems = append $problems (printf "extraEnv: the chart sets %s already, from settings or another value; remove one of them" .name) -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}

{{- define "weir.servingProblems" -}}
{{- $problems := list -}}
{{- if and (not (include "weir.hasRedis" .)) (or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1)) -}}
{{- $problems = append $problems (printf "%s: without Redis each replica would hand out full buckets of its own; set settings.REDIS_URL or redis.url.existingSecret, or run one replica" (ternary "autoscaling.enabled" "replicaCount" .Values.autoscaling.enabled)) -}}
{{- end -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- $problems = append $problems "autoscaling.minReplicas: it is more than autoscaling.maxReplicas; make it at most that" -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if and .enabled (kindIs "invalid" .maxUnavailable | not) (kindIs "invalid" .minAvailable | not) -}}
{{- $problems = append $problems "podDisruptionBudget: Kubernetes takes minAvailable or maxUnavailable; set the other one to null" -}}
{{- end -}}
{{- if and .enabled (kindIs "invalid" .maxUnavailable) (kindIs "invalid" .minAvailable) -}}
{{- $problems = append $problems "podDisruptionBudget: neither minAvailable nor maxUnavailable is set; set one of them" -}}
{{- end -}}
{{- end -}}
{{- if include "weir.setting" (list . "GRPC_UDS") -}}
{{- $problems = append $problems "settings.GRPC_UDS: the chart's Services need a port; remove it and use GRPC_PORT" -}}
{{- end -}}
{{- range $name := list "GRPC_PORT" "PORT" -}}
{{- $port := include "weir.setting" (list $ $name "1") -}}
{{- if not (regexMatch "^[1-9][0-9]*$" $port) -}}
{{- $problems = append $problems (printf "settings.%s: %s is no port that a Service can point to; write a number from 1 to 65535" $name $port) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.networkPolicy.operators (not (include "weir.openDebugPort" .)) -}}
{{- $problems = append $problems "networkPolicy.operators: settings.DEBUG_HOST keeps the debug port on the pod's loopback, where no other pod reaches it; set settings.DEBUG_HOST to 0.0.0.0 (with debug.tokens and debug.tls), or use kubectl port-forward" -}}
{{- end -}}
{{- $delay := include "weir.setting" (list . "SHUTDOWN_DRAIN_DELAY" "0s") -}}
{{- $grace := include "weir.setting" (list . "SHUTDOWN_GRACE" "10s") -}}
{{- $needed := addf (float64 (include "weir.seconds" $delay)) (float64 (include "weir.seconds" $grace)) -}}
{{- if le (float64 .Values.terminationGracePeriodSeconds) $needed -}}
{{- $problems = append $problems (printf "terminationGracePeriodSeconds: SHUTDOWN_DRAIN_DELAY (%s) and SHUTDOWN_GRACE (%s) may take as long, and the pod would be killed before it has drained; make it more than both together" $delay $grace) -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
