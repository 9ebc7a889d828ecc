{{/*
Names and labels. Each template gets a dict: `root` is the context of the chart; `name` the application; `component` ends the
names of its resources; `values` its part of the values.
*/}}

{{/* A Service has at most 63 characters and begins with a letter. */}}
{{- define "name" -}}
{{- $release := compact (list .root.Release.Name .root.Values.nameOverride) | join "-" }}
{{- $prefix := .root.Values.fullnameOverride | default $release | trunc (int (sub 62 (len .component))) | trimSuffix "-" }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $prefix) }}
{{- fail (printf "%s cannot begin the name of a Service: set fullnameOverride to lower-case letters, digits and hyphens that begin with a letter" $prefix) }}
{{- end }}
{{- $prefix }}-{{ .component }}
{{- end }}

{{- define "selectorLabels" -}}
{{- with .name }}app.kubernetes.io/name: {{ . }}{{ "\n" }}{{ end -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* `labels` are those of one object. Whatever they and the common ones are, the selectors hold. */}}
{{- define "labels" -}}
{{- $own := dict "app.kubernetes.io/part-of" "pool-allocation" "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- merge (include "selectorLabels" . | fromYaml) (.labels | default dict) (.root.Values.commonLabels | default dict) $own | toYaml }}
{{- end }}

{{/* `labels` and `annotations` are those of one object, and so is `objectName`, if it has a name of its own. */}}
{{- define "metadata" -}}
metadata:
  name: {{ .objectName | default (include "name" .) }}
  labels:
    {{- include "labels" . | nindent 4 }}
  {{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
