{{/*
Each template gets a dict: `root` is the context of the chart; `name` the application; `component` ends the names of its
resources; `values` its part of the values.
*/}}

{{- define "selectorLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "labels" -}}
{{ include "selectorLabels" . }}
app.kubernetes.io/part-of: pool-allocation
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end }}

{{- define "metadata" -}}
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "labels" . | nindent 4 }}
{{- end }}

{{- define "serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "metadata" . }}
automountServiceAccountToken: false
{{- end }}

{{- define "disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "metadata" . }}
spec:
  maxUnavailable: 1
  # A replica that is not ready serves nothing, so it does not delay the drain of a node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "selectorLabels" . | nindent 6 }}
{{- end }}

{{/* A Service with one port, which is that of the pods with the same name (`portName`, `port`). */}}
{{- define "service" -}}
apiVersion: v1
kind: Service
{{ include "metadata" . }}
spec:
  selector:
    {{- include "selectorLabels" . | nindent 4 }}
  ports:
    - name: {{ .portName }}
      port: {{ .port }}
      targetPort: {{ .portName }}
      appProtocol: http
{{- end }}

{{/* What the pods of all Deployments have in common: their metadata, and the beginning of their spec. */}}
{{- define "podMetadata" -}}
metadata:
  labels:
    {{- include "labels" . | nindent 4 }}
    {{- with .values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "podSpec" -}}
serviceAccountName: {{ .root.Release.Name }}-{{ .component }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  # The files of secrets are readable by this group only.
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{ include "scheduling" . | trim }}
{{- end }}

{{/* `image` has name, tag and digest. */}}
{{- define "image" -}}
{{- with .root.Values.image.registry }}{{ . }}/{{ end -}}
{{- .image.name -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "scheduling" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .values.spreadOverNodes }}
    labelSelector:
      matchLabels:
        {{- include "selectorLabels" . | nindent 8 }}
    # During a rollout, only the replicas of one version are counted.
    matchLabelKeys: [pod-template-hash]
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "selectorLabels" . | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $.values $key }}
{{ $key }}:{{ if kindIs "string" . }} {{ . }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The variables of `values`: plain ones, and the paths of those in files. */}}
{{- define "env" -}}
{{- range $variable, $value := .values.config }}
{{- /* Without quotes, on and off are booleans in YAML. */}}
{{- if and (kindIs "bool" $value) (has $variable (list "PDM_DNS_WRITES" "PDM_BYO_PROOF")) }}
{{- $value = ternary "on" "off" $value }}
{{- end }}
- name: {{ $variable }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range $variable, $value := .values.env }}
- name: {{ $variable }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range $variable, $_ := .values.secrets }}
- name: {{ $variable }}_FILE
  value: /run/secrets/pool-allocation/{{ $variable }}
{{- end }}
{{- end }}

{{- define "volumeMounts" -}}
- name: secrets
  mountPath: /run/secrets/pool-allocation
  readOnly: true
{{- if .values.files }}
- name: files
  mountPath: /etc/pool-allocation
  readOnly: true
{{- end }}
- name: tmp
  mountPath: /tmp
{{- end }}

{{/* `secrets` maps a variable to the key of a Secret. */}}
{{- define "secretVolume" -}}
projected:
  # 0440
  defaultMode: 288
  sources:
    {{- range $variable, $reference := .secrets }}
    - secret:
        name: {{ $reference.name }}
        items:
          - key: {{ $reference.key }}
            path: {{ $variable }}
    {{- end }}
{{- end }}

{{- define "volumes" -}}
- name: secrets
  {{- include "secretVolume" (dict "secrets" .values.secrets) | nindent 2 }}
{{- if .values.files }}
- name: files
  projected:
    # 0440
    defaultMode: 288
    sources:
      {{- range $path, $reference := .values.files }}
      - {{ if $reference.secret }}secret{{ else }}configMap{{ end }}:
          name: {{ $reference.secret | default $reference.configMap }}
          items:
            - key: {{ $reference.key }}
              path: {{ $path }}
      {{- end }}
{{- end }}
{{- end }}

{{/* A list of NetworkPolicyPeers in one rule of ingress. An empty list is not a rule: Kubernetes would allow every client. */}}
{{- define "ingressRule" -}}
{{- if .from -}}
- from:
    {{- toYaml .from | nindent 4 }}
  ports:
    - protocol: TCP
      port: {{ .port }}
{{- end }}
{{- end }}

{{/* One rule of egress. `destination` has `to` and `port`. An empty `to` is not a rule. */}}
{{- define "egressRule" -}}
{{- if .destination.to -}}
- to:
    {{- toYaml .destination.to | nindent 4 }}
  ports:
    {{- range .protocols }}
    - protocol: {{ . }}
      port: {{ $.destination.port }}
    {{- end }}
{{- end }}
{{- end }}

{{/* `component` ends the name of the Service. `token` is the key of a Secret, or absent. */}}
{{- define "serviceMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "labels" . | nindent 4 }}
    {{- with .root.Values.monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  # The alerts expect job="{{ .name }}".
  jobLabel: app.kubernetes.io/name
  selector:
    matchLabels:
      {{- include "selectorLabels" . | nindent 6 }}
  endpoints:
    # The Service of the operator port has no port of this name.
    - port: http
      path: /metrics
      interval: {{ .root.Values.monitoring.interval }}
      {{- with .token }}
      authorization:
        credentials: { name: {{ .name }}, key: {{ .key }} }
      {{- end }}
{{- end }}
