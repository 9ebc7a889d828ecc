{{/* What the pods of all Deployments have in common. */}}

{{- define "podMetadata" -}}
metadata:
  labels:
    {{- include "labels" (merge (dict "labels" .values.podLabels) .) | nindent 4 }}
  {{- with .values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The beginning of a Deployment's spec, without the selector and the template. `recreate`: two pods cannot run at once. */}}
{{- define "rollout" -}}
{{- with .values.replicas }}
replicas: {{ . }}
{{- end }}
revisionHistoryLimit: {{ .values.revisionHistoryLimit }}
strategy:
  {{- if .recreate }}
  type: Recreate
  {{- else if .values.strategy }}
  {{- toYaml .values.strategy | nindent 2 }}
  {{- else }}
  type: RollingUpdate
  rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  {{- end }}
{{- end }}

{{- define "podSpec" -}}
serviceAccountName: {{ include "serviceAccountName" . }}
automountServiceAccountToken: {{ .values.serviceAccount.automount | default false }}
enableServiceLinks: false
{{- with include "podSecurityContext" . }}{{ . | nindent 0 }}{{ end }}
{{- with include "imagePullSecrets" . }}{{ . | nindent 0 }}{{ end }}
{{- if or .values.spreadOverNodes .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- with .values.spreadOverNodes }}
  {{- range $key, $unsatisfiable := dict "kubernetes.io/hostname" . "topology.kubernetes.io/zone" "ScheduleAnyway" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: {{ $unsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "selectorLabels" $ | nindent 8 }}
    # During a rollout, only the replicas of one version are counted.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
  {{- end }}
  {{- with .values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- range list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" "hostUsers" }}
{{- $value := get $.values . }}
{{- if or $value (kindIs "bool" $value) }}
{{ dict . $value | toYaml }}
{{- end }}
{{- end }}
{{- end }}

{{- define "serviceAccountName" -}}
{{- .values.serviceAccount.name | default (ternary (include "name" .) "default" .values.serviceAccount.create) }}
{{- end }}

{{- define "imagePullSecrets" -}}
{{- with .root.Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - {{ kindIs "string" . | ternary (dict "name" .) . | toYaml }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "podSecurityContext" -}}
{{- with .values.podSecurityContext -}}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "containerSecurityContext" -}}
{{- with .values.containerSecurityContext -}}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* `image` has name, tag and digest. */}}
{{- define "image" -}}
{{- with .root.Values.image.registry }}{{ . }}/{{ end -}}
{{- .image.name -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* `probes` is YAML. The values change its numbers. */}}
{{- define "probes" -}}
{{- merge (pick .values "startupProbe" "livenessProbe" "readinessProbe" | deepCopy) (fromYaml .probes) | toYaml }}
{{- end }}
