#!/bin/sh
# Opens a disk image as a user would: mounts it, copies the app, starts it through the Finder's own way and reads its report;
# then starts the window twice, of which one must stay. Usage: try_image.sh IMAGE REPORT.json
set -eu

image=$1 report=$2
folder=$(mktemp -d)
cleanup() {
    hdiutil detach "$folder/mount" -quiet 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
hdiutil attach "$image" -mountpoint "$folder/mount" -nobrowse -readonly
[ -L "$folder/mount/Applications" ] || { echo "The image has no link to Applications." >&2; exit 1; }
cp -R "$folder/mount/Slipstream.app" "$folder/"
hdiutil detach "$folder/mount" -quiet
app="$folder/Slipstream.app"
codesign --verify --deep --strict "$app"
rm -f "$report"
open -W -n "$app" --args selftest --device cpu --json "$report"
python -m bundle.report "$report"
codesign --verify --deep --strict "$app"  # the run must not have written into it

binary="$app/Contents/MacOS/Slipstream"
running() { pgrep -f "^$binary" | wc -l | tr -d ' '; }
eventually() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(running)" != "$1" ] || return 0
        sleep "${POLL_S:-2}"
    done
    echo "$2 ($(running) processes run instead of $1)." >&2
    exit 1
}
open -n "$app"
eventually 1 "The window does not start once"
first=$(pgrep -f "^$binary")
open -n "$app"
sleep "${SETTLE_S:-15}"
[ "$(pgrep -f "^$binary")" = "$first" ] || { echo "A second start did not leave the first one alone." >&2; exit 1; }
kill "$first"
eventually 0 "The app did not end when asked to"
echo "The image opens, passes its self-test and runs once."
