#!/bin/sh
# Signs the built app and packs the disk image. With a certificate: signed by it, notarised and stapled; without: ad hoc.
# Reads SIGNING_CERTIFICATE (a .p12 in base64), SIGNING_PASSWORD, NOTARY_APPLE_ID, NOTARY_PASSWORD, NOTARY_TEAM_ID.
set -eu

pack() {
    # hdiutil says "Resource busy" now and then on hosted machines; a second try works.
    python -m briefcase package macOS app --no-input --packaging-format dmg "$@" ||
        { sleep "${RETRY_S:-10}"; python -m briefcase package macOS app --no-input --packaging-format dmg "$@"; }
}

if [ -z "${SIGNING_CERTIFICATE:-}" ]; then
    echo "No certificate: signing ad hoc. Users must allow the app in System Settings."
    pack --adhoc-sign
    exit 0
fi

folder=$(mktemp -d)
keychain="$folder/release.keychain-db"
trap 'security delete-keychain "$keychain" 2>/dev/null || true; rm -rf "$folder"' EXIT
password=$(uuidgen)
printf %s "$SIGNING_CERTIFICATE" | base64 --decode > "$folder/certificate.p12"
security create-keychain -p "$password" "$keychain"
security set-keychain-settings -lut 21600 "$keychain"
security unlock-keychain -p "$password" "$keychain"
security import "$folder/certificate.p12" -k "$keychain" -P "${SIGNING_PASSWORD:-}" -T /usr/bin/codesign
security set-key-partition-list -S apple-tool:,apple: -s -k "$password" "$keychain" > /dev/null
security list-keychains -d user -s "$keychain" login.keychain-db
identity=$(security find-identity -v -p codesigning "$keychain" | awk '/Developer ID Application/ {print $2; exit}')
[ -n "$identity" ] || { echo "The certificate is no Developer ID Application certificate." >&2; exit 1; }
if [ -n "${NOTARY_PASSWORD:-}" ]; then
    # Briefcase looks for its credentials under this name.
    xcrun notarytool store-credentials "briefcase-macOS-$NOTARY_TEAM_ID" --apple-id "$NOTARY_APPLE_ID" \
        --team-id "$NOTARY_TEAM_ID" --password "$NOTARY_PASSWORD" --keychain "$keychain"
    pack --identity "$identity"
else
    echo "No notary credentials: signed, not notarised."
    pack --identity "$identity" --no-notarize
fi
