#!/bin/sh
# Prints the version of this checkout, in a form that dpkg and rpm sort. The commit of a tag v1.2.3 is 1.2.3. Any other commit is
# the patch after the last tag, before its release, with the commit's day in UTC and its hash: 1.2.4~git20261126.923d570.
set -eu
git rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "0.1.0~dev"; exit 0; }

release() { git describe --tags --match 'v[0-9]*.[0-9]*.[0-9]*' --exclude '*[-+~]*' "$@" 2>/dev/null || true; }
changed=
git diff --quiet HEAD -- || changed=.dirty
tag=$(release --exact-match)
if [ -n "$tag" ] && [ -z "$changed" ]; then
	echo "${tag#v}"
	exit 0
fi
next=$(release --abbrev=0 | awk -F. '{print substr($1, 2) "." $2 "." $3 + 1}')
day=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d)
echo "${next:-0.1.0}~git$day.$(git rev-parse --short=7 HEAD)$changed"
