#!/bin/sh
# Succeeds where the bundle must be checked: what builds it differs from the branch point, or no branch point is known
# (a shallow clone, a commit on main itself), so that nothing unchecked passes. Usage: bundle_changed.sh [BASE]
set -u

INPUTS="packaging/bundle packaging/entry packaging/bundle_changed.sh .github/workflows pyproject.toml resources/icons
resources/licences resources/starter app/__main__.py app/selftest.py app/launch.py engine/selftest.py"

base=$(git merge-base HEAD "${1:-origin/main}" 2>/dev/null) || base=""
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD 2>/dev/null)" ]; then
    echo "bundle: no earlier commit to compare with, so it is checked" >&2
    exit 0
fi
# shellcheck disable=SC2086  # one word a path
changed=$(git diff --name-only "$base" -- $INPUTS 2>/dev/null) || changed="(git cannot tell)"
[ -n "$changed" ] || exit 1
echo "bundle: changed since $base: $(echo "$changed" | tr '\n' ' ')" >&2
