{{/* The variables, secrets and files of a service, and what the values add to them. */}}

{{/* The variables of `values`: plain ones, and the paths of those in files. */}}
{{- define "env" -}}
{{- range $variable, $value := .values.config }}
{{- /* Without quotes, on and off are booleans in YAML. */}}
{{- if and (kindIs "bool" $value) (has $variable (list "PDM_DNS_WRITES" "PDM_BYO_PROOF" "PDM_RECORDS")) }}
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
{{- with .values.extraEnv }}
{{ toYaml . }}
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
{{- with .values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
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
{{- with .values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
