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
{{- if (.destination).to -}}
- to:
    {{- toYaml .destination.to | nindent 4 }}
  ports:
    {{- range .protocols }}
    - protocol: {{ . }}
      port: {{ $.destination.port }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "networkPolicy" -}}
{{- with .values.networkPolicy }}
{{- if .enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "metadata" $ }}
spec:
  podSelector:
    matchLabels:
      {{- include "selectorLabels" $ | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- with include "ingressRule" (dict "from" .clients "port" 8080) }}{{ . | nindent 4 }}{{ end }}
    {{- if $.root.Values.monitoring.enabled }}
    {{- with include "ingressRule" (dict "from" .prometheus "port" 8080) }}{{ . | nindent 4 }}{{ end }}
    {{- end }}
    {{- if hasKey $.values.secrets "PDM_OPERATOR_TOKENS" }}
    {{- with include "ingressRule" (dict "from" .operators "port" 8081) }}{{ . | nindent 4 }}{{ end }}
    {{- end }}
    {{- with .moreIngress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  egress:
    {{- with include "egressRule" (dict "destination" .dns "protocols" (list "UDP" "TCP")) }}{{ . | nindent 4 }}{{ end }}
    {{- range list .postgres .dnsProvider .objectStorage .witness }}
    {{- with include "egressRule" (dict "destination" . "protocols" (list "TCP")) }}{{ . | nindent 4 }}{{ end }}
    {{- end }}
    {{- with .moreEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}
