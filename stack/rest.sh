#!/usr/bin/env bash
# One request to Kafka Connect with bash alone, for the Kafka image has no curl.
# usage: rest.sh HOST:PORT METHOD PATH [FILE]     FILE is the JSON to send; fails unless the answer is 2xx
set -euo pipefail
address=$1 method=$2 path=$3 body=
[ $# -lt 4 ] || body=$(<"$4")
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' \
  "$method" "$path" "$address" "$(printf %s "$body" | wc -c)" "$body" >&3
read -r _ code _ <&3
echo "$method $path: $code"
[[ $code == 2* ]] || { cat <&3; exit 1; }
