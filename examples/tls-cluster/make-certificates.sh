#!/bin/sh
# Makes an authority, a certificate for each server, and one for clients:
#   make-certificates.sh FOLDER NAME=HOST...
# HOST is the DNS name or IP address at which others reach that server. Run again with the same folder, it keeps the
# authority and makes the certificates of the given servers again.
set -eu
umask 077

[ $# -ge 2 ] || { echo "usage: $0 FOLDER NAME=HOST..." >&2; exit 2; }
mkdir -p "$1"
cd "$1"
shift
days=365

# An EC key of P-256 in a file, and a request to sign it: NAME, subject.
request() {
  openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
}

# NAME, extensions.
sign() {
  printf '%s\n' "$2" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -sha256 -days "$days" \
    -extfile "$1.ext" -out "$1.crt.new" 2> openssl.log || { cat openssl.log >&2; exit 1; }
  # A server that runs reads either file whole.
  mv "$1.crt.new" "$1.crt"
  rm "$1.csr" "$1.ext" openssl.log
}

if [ ! -f ca.crt ]; then
  openssl ecparam -name prime256v1 -genkey -noout -out ca.key
  openssl req -x509 -new -key ca.key -sha256 -days 3650 -subj '/CN=tenure authority' -out ca.crt
fi

for server in "$@"; do
  name=${server%%=*}
  host=${server#*=}
  case $host in
    *:*) alternative="IP:$host" ;;
    *[!0-9.]*) alternative="DNS:$host" ;;
    *) alternative="IP:$host" ;;
  esac
  request "$name" "/CN=$name"
  # A server is also a client: of the other servers, and of etcd.
  sign "$name" "basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = $alternative"
done

if [ ! -f client.crt ]; then
  request client '/CN=client'
  sign client 'basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth'
fi
