{{- /* The container's variables: settings, what other values mean, extraEnv. */ -}}
{{- define "weir.env" -}}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
- { name: {{ $name }}, value: {{ include "weir.text" $value | quote }} }
{{- end }}
{{- end }}
{{- range $name, $value := include "weir.ownVariables" . | fromJson }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- with .Values.redis.url }}
{{- if .existingSecret }}
- name: REDIS_URL
  valueFrom: { secretKeyRef: { name: {{ .existingSecret | quote }}, key: {{ .key | quote }} } }
{{- end }}
{{- end }}
{{- with .Values.redis.sentinelAuth }}
{{- if .existingSecret }}
- name: REDIS_SENTINEL_AUTH
  valueFrom: { secretKeyRef: { name: {{ .existingSecret | quote }}, key: {{ .key | quote }} } }
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* What is mounted at /etc/weir/<name>. */ -}}
{{- define "weir.volumes" -}}
{{- with include "weir.policiesConfigMap" . }}
- name: policies
  configMap: { name: {{ . | quote }} }
{{- end }}
{{- with .Values.apiKeys }}
{{- if .existingSecret }}
- name: api-keys
  secret: { secretName: {{ .existingSecret | quote }}, items: [{ key: {{ .key | quote }}, path: {{ .key | quote }} }] }
{{- end }}
{{- end }}
{{- with .Values.redis.auth }}
{{- if .existingSecret }}
- name: redis-auth
  secret: { secretName: {{ .existingSecret | quote }}, items: [{ key: {{ .key | quote }}, path: {{ .key | quote }} }] }
{{- end }}
{{- end }}
{{- if .Values.redis.tls.existingSecret }}
- name: redis-tls
  secret: { secretName: {{ .Values.redis.tls.existingSecret | quote }} }
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret: { secretName: {{ .Values.tls.existingSecret | quote }} }
{{- end }}
{{- with .Values.debug.tokens }}
{{- if .existingSecret }}
- name: debug-tokens
  secret: { secretName: {{ .existingSecret | quote }}, items: [{ key: {{ .key | quote }}, path: {{ .key | quote }} }] }
{{- end }}
{{- end }}
{{- if .Values.debug.tls.existingSecret }}
- name: debug-tls
  secret: { secretName: {{ .Values.debug.tls.existingSecret | quote }} }
{{- end }}
{{- end -}}
