#!/bin/sh
# clients.sh: generates clients of openapi/openapi.json and compiles them.
#
#   scripts/clients.sh [FOLDER]     build/clients by default
#
# Go: oapi-codegen and ogen. TypeScript: openapi-typescript, under strict tsc. PHP: classes by client.php with the
# names that openapi-generator makes, loaded by php (Debian: php-cli); that generator itself is not run.
set -eu
cd "$(dirname "$0")/.."
document=$PWD/openapi/openapi.json
folder=${1:-build/clients}
command -v php >/dev/null || { echo "clients.sh needs php: install php-cli" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder/php" "$folder/oapi" "$folder/ogen" "$folder/ts"
scripts=$PWD/scripts
cd "$folder"

echo "php"
php "$scripts/client.php" "$document" >php/client.php
php -d display_errors=stderr php/client.php

echo "oapi-codegen"
(
  cd oapi
  go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client -package oapi -o client.go "$document"
  go mod init clients/oapi 2>/dev/null
  go get github.com/oapi-codegen/runtime@v1.9.0 2>/dev/null
  go mod tidy 2>/dev/null
  go vet .
)

echo "ogen"
(
  cd ogen
  go mod init clients/ogen 2>/dev/null
  go run github.com/ogen-go/ogen/cmd/ogen@v1.24.0 --clean --package api --target api "$document" 2>ogen.log || { cat ogen.log; exit 1; }
  go get github.com/ogen-go/ogen@v1.24.0 2>/dev/null
  go mod tidy 2>/dev/null
  go vet ./...
)

echo "openapi-typescript"
(
  cd ts
  npx --yes openapi-typescript@7.13.0 "$document" -o client.ts
  cat >use.ts <<'EOF'
import type { components, operations } from "./client";

export const request: components["schemas"]["CollectRequest"] = {
  amount: 10.5, phone_number: "0240000000", network: "MTN", transaction_id: "order-20260001",
};
export type Sent = components["schemas"]["Sent"]["campaignId"];
export type Answer = operations["collect"]["responses"][200]["content"]["application/json"]["data"];
EOF
  npx --yes -p typescript@5.9.3 tsc --strict --noEmit --skipLibCheck false use.ts client.ts
)
echo "every client compiles"
