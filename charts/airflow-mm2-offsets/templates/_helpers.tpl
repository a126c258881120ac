{{- define "mm2.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "mm2.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mm2.labels" -}}
{{ include "mm2.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "mm2.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "mm2.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "mm2.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "mm2.secrets" -}}/run/secrets/mm2-offsets{{- end }}

{{/* Secrets by the folder where they are mounted, as YAML. */}}
{{- define "mm2.secretFolders" -}}
{{- $folders := deepCopy .Values.secretFiles }}
{{- with .Values.auth.existingSecret }}{{ $_ := set $folders "auth" . }}{{ end }}
{{- with .Values.tls.existingSecret }}{{ $_ := set $folders "server-tls" . }}{{ end }}
{{- if .Values.settings.existingSecret }}
{{- $_ := set $folders "settings" .Values.settings.existingSecret }}
{{- else }}
{{- range $side := list "source" "target" }}
{{- with index $.Values $side }}
{{- if .login.mechanism }}{{ $_ := set $folders (printf "%s-login" $side) .login.existingSecret }}{{ end }}
{{- if and .tls.enabled .tls.existingSecret }}{{ $_ := set $folders (printf "%s-tls" $side) .tls.existingSecret }}{{ end }}
{{- end }}
{{- end }}
{{- with .Values.connect.existingSecret }}{{ $_ := set $folders "connect-login" . }}{{ end }}
{{- end }}
{{- toYaml $folders }}
{{- end }}

{{/* The client properties of one cluster: (dict "side" "source" "cluster" .Values.source). */}}
{{- define "mm2.clientProperties" -}}
{{- $folder := printf "/run/secrets/mm2-offsets/%s" .side }}
{{- with .cluster }}
{{- $alias := .alias }}
{{ $alias }}.bootstrap.servers = {{ .bootstrapServers }}
{{ $alias }}.security.protocol = {{ if .login.mechanism }}SASL_{{ end }}{{ if .tls.enabled }}SSL{{ else }}PLAINTEXT{{ end }}
{{- if .login.mechanism }}
{{ $alias }}.sasl.mechanism = {{ .login.mechanism }}
{{ $alias }}.sasl.username = ${dir:{{ $folder }}-login:{{ .login.usernameKey }}}
{{ $alias }}.sasl.password = ${dir:{{ $folder }}-login:{{ .login.passwordKey }}}
{{- end }}
{{- if and .tls.enabled .tls.existingSecret }}
{{- with .tls.caKey }}
{{ $alias }}.ssl.ca.location = {{ $folder }}-tls/{{ . }}
{{- end }}
{{- if .tls.certificateKey }}
{{ $alias }}.ssl.certificate.location = {{ $folder }}-tls/{{ .tls.certificateKey }}
{{ $alias }}.ssl.key.location = {{ $folder }}-tls/{{ .tls.keyKey }}
{{- end }}
{{- end }}
{{- range $name, $value := .properties }}
{{ $alias }}.{{ $name }} = {{ $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* What values can't say together, in words that name the value and the next step. */}}
{{- define "mm2.check" -}}
{{- if not (or .Values.auth.existingSecret .Values.auth.disabled) }}
{{- fail "auth.existingSecret is empty: name a Secret with the token that clients must present, or set auth.disabled=true, and whoever reaches the service may use it" }}
{{- end }}
{{- if and .Values.auth.existingSecret .Values.auth.disabled }}
{{- fail "auth.existingSecret and auth.disabled=true contradict each other: give one of them" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.host is empty: name the host that the ingress answers for, or set ingress.enabled=false" }}
{{- end }}
{{- if not .Values.settings.existingSecret }}
{{- range $side := list "source" "target" }}
{{- with index $.Values $side }}
{{- if not .bootstrapServers }}
{{- fail (printf "%s.bootstrapServers is empty: name the cluster's brokers, or give a whole settings file by settings.existingSecret" $side) }}
{{- end }}
{{- if and .login.mechanism (not .login.existingSecret) }}
{{- fail (printf "%s.login.existingSecret is empty: name the Secret that holds the login for %s" $side .login.mechanism) }}
{{- end }}
{{- if ne (empty .tls.certificateKey) (empty .tls.keyKey) }}
{{- fail (printf "%s.tls.certificateKey and %s.tls.keyKey belong together: give both, or neither" $side $side) }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq .Values.source.alias .Values.target.alias }}
{{- fail (printf "source.alias and target.alias are both %s: give MirrorMaker 2's aliases of the two clusters" .Values.source.alias) }}
{{- end }}
{{- end }}
{{- end }}
