{{/*
`helm upgrade --reuse-values` has the values of the former release and no new ones. Where a missing value does not mean an
empty one, it is set here to its default. A part without a ServiceAccount has none of these.
*/}}
{{- define "addNewerValues" -}}
{{- range list .Values.api .Values.witness }}
{{- if not (hasKey . "serviceAccount") }}
{{- $_ := merge . (include "newerValues" $ | fromYaml) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "newerValues" -}}
serviceAccount: { create: true }
podSecurityContext:
  { runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, fsGroupChangePolicy: OnRootMismatch, seccompProfile: { type: RuntimeDefault } }
containerSecurityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: [ALL] } }
revisionHistoryLimit: 5
service: { type: ClusterIP }
operatorService: { type: ClusterIP }
{{- end }}
