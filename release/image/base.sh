#!/usr/bin/env bash
# Makes a base image for the Dockerfile where no image registry can be reached: Debian with Python,
# as in python:3.13-slim, from Debian's packages. It trusts the certificates that this machine trusts.
# usage: base.sh IMAGE [SUITE]      needs root, docker and debootstrap; about two minutes
set -euo pipefail
image=${1:?name of the image to make}; suite=${2:-trixie}
root=$(mktemp -d); trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$suite" "$root" >/dev/null
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
bundle=/etc/ssl/certs/ca-certificates.crt
cp "$bundle" "$root$bundle"
tar -C "$root" -c . | docker import -c 'CMD ["python3"]' -c "ENV PIP_CERT=$bundle SSL_CERT_FILE=$bundle" - "$image"
