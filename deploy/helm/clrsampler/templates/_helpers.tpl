{{- define "clrsampler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "clrsampler.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "clrsampler.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "clrsampler.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "clrsampler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "clrsampler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "clrsampler.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "clrsampler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "clrsampler.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "clrsampler.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "clrsampler.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.tlsSecret)) }}
{{- end }}

{{- /* 200 as soon as it samples. */}}
{{- define "clrsampler.ready" -}}
httpGet: {path: /-/ready, port: http, scheme: {{ include "clrsampler.scheme" . }}}
{{- end }}

{{- /* 200 while sampling goes on. Readiness would not tell: a loop that hangs has begun before. */}}
{{- define "clrsampler.healthy" -}}
httpGet: {path: /-/healthy, port: http, scheme: {{ include "clrsampler.scheme" . }}}
{{- end }}

{{- define "clrsampler.args" -}}
- serve
{{- if .Values.configSecret.name }}
- --config=/etc/clrsampler/config/serve.conf
{{- end }}
- --listen=0.0.0.0:{{ .Values.port }}
- --history=/var/lib/clrsampler/history.db
- --recordings=/var/lib/clrsampler/recordings
- --history-size={{ .Values.history.size }}
- --history-age={{ .Values.history.age }}
- --recordings-size={{ .Values.history.recordingsSize }}
{{- if .Values.tokenSecret.name }}
- --token-file=/etc/clrsampler/token/token
{{- end }}
{{- if .Values.tlsSecret }}
- --tls-cert=/etc/clrsampler/tls/tls.crt
- --tls-key=/etc/clrsampler/tls/tls.key
{{- end }}
{{- if .Values.push.url }}
- {{ printf "--push=%s" .Values.push.url | quote }}
- --push-by={{ .Values.push.by }}
{{- end }}
{{- if .Values.otlp.url }}
- {{ printf "--otlp=%s" .Values.otlp.url | quote }}
- --otlp-by={{ .Values.otlp.by }}
{{- if .Values.otlp.caSecret }}
- --otlp-ca=/etc/clrsampler/otlp/ca.crt
{{- end }}
{{- end }}
{{- if .Values.criSocket }}
- {{ printf "--cri-socket=/run/clrsampler/cri/%s" (base .Values.criSocket) | quote }}
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
