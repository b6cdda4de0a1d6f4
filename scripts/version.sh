#!/bin/sh
# Prints the version of this checkout, in a form that dpkg and rpm sort. The commit of a tag v1.2.3 is 1.2.3. Any other commit is
# the patch after the last tag, before its release, with the commit's day in UTC and its hash: 1.2.4~git20261126.923d570. Where no
# tag can be seen, as in a shallow clone, the newest release in CHANGELOG.md stands for it, and a line on stderr says so.
set -eu
top=$(git rev-parse --show-toplevel 2>/dev/null || pwd)
written=$(sed -n 's/^## \[*v*\([0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' "$top/CHANGELOG.md" 2>/dev/null | head -n 1)

guess() { echo "scripts/version.sh: $1: the version is a guess by CHANGELOG.md. $2" >&2; }
after() { echo "$1" | awk -F. 'NF == 3 {print $1 "." $2 "." $3 + 1}'; }

if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	guess "no commit can be read" "Build in a clone that git reads."
	next=$(after "$written")
	echo "${next:-0.1.0}~dev"
	exit 0
fi

release() { git describe --tags --match 'v[0-9]*.[0-9]*.[0-9]*' --exclude '*[-+~]*' "$@" 2>/dev/null || true; }
changed=
git diff --quiet HEAD -- || changed=.dirty
tag=$(release --exact-match)
if [ -n "$tag" ] && [ -z "$changed" ]; then
	echo "${tag#v}"
	exit 0
fi
tag=$(release --abbrev=0)
next=$(after "${tag#v}")
if [ -z "$next" ]; then
	next=$(after "$written")
	if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
		guess "this clone is shallow and has no tag of a release" "Run git fetch --tags --unshallow."
	elif [ -n "$written" ]; then
		guess "this clone lacks the tag v$written" "Run git fetch --tags."
	fi
fi
day=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d)
echo "${next:-0.1.0}~git$day.$(git rev-parse --short=7 HEAD)$changed"
