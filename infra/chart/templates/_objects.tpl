{{/* The objects beside each Deployment, except for the network policy. */}}

{{- define "serviceAccount" -}}
{{- if .values.serviceAccount.create }}
---
apiVersion: v1
kind: ServiceAccount
{{ include "metadata" (merge (dict "objectName" (include "serviceAccountName" .)) (pick .values.serviceAccount "annotations") .) }}
automountServiceAccountToken: {{ .values.serviceAccount.automount | default false }}
{{- end }}
{{- end }}

{{- define "disruptionBudget" -}}
---
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

{{/*
A Service with one port, which is that of the pods with the same name (`portName`, `port`). `service` is its part of the
values: labels, annotations, and fields of its spec.
*/}}
{{- define "service" -}}
{{- $service := .service | default dict }}
---
apiVersion: v1
kind: Service
{{ include "metadata" (merge (pick $service "labels" "annotations") .) }}
spec:
  {{- range $field, $value := omit $service "labels" "annotations" }}
  {{- with $value }}
  {{- dict $field . | toYaml | nindent 2 }}
  {{- end }}
  {{- end }}
  selector:
    {{- include "selectorLabels" . | nindent 4 }}
  ports:
    - name: {{ .portName }}
      port: {{ .port }}
      targetPort: {{ .portName }}
      appProtocol: http
{{- end }}
