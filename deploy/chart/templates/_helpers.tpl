{{- define "clawdforge.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "clawdforge.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "clawdforge.labels" -}}
{{ include "clawdforge.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "clawdforge.secret" -}}
{{ .Values.existingSecret | default (include "clawdforge.name" .) }}
{{- end }}

{{/* The names of the Service, those of callers, and the one that probes use. */}}
{{- define "clawdforge.hosts" -}}
{{- $name := include "clawdforge.name" . -}}
{{- $space := .Release.Namespace -}}
{{- $own := list $name (printf "%s.%s" $name $space) (printf "%s.%s.svc" $name $space) (printf "%s.%s.svc.cluster.local" $name $space) -}}
{{- if .Values.ingress.enabled }}{{ $own = append $own .Values.ingress.host }}{{ end -}}
{{ concat $own .Values.allowedHosts | join "," }}
{{- end }}
