#!/bin/sh
# Makes sure that the system libraries Qt and BLAS need are there: installs them as root on Debian, else names them.
# Usage: system_libraries.sh [test]   (test: also a virtual display)
set -u

# What is looked for, and the Debian package that brings it. Sonames keep this right on other distributions too.
LIBRARIES="
libopenblas.so.0 libopenblas0-pthread
libEGL.so.1 libegl1
libGL.so.1 libgl1
libX11.so.6 libx11-6
libX11-xcb.so.1 libx11-xcb1
libxcb.so.1 libxcb1
libxcb-cursor.so.0 libxcb-cursor0
libxcb-icccm.so.4 libxcb-icccm4
libxcb-image.so.0 libxcb-image0
libxcb-keysyms.so.1 libxcb-keysyms1
libxcb-randr.so.0 libxcb-randr0
libxcb-render.so.0 libxcb-render0
libxcb-render-util.so.0 libxcb-render-util0
libxcb-shape.so.0 libxcb-shape0
libxcb-shm.so.0 libxcb-shm0
libxcb-sync.so.1 libxcb-sync1
libxcb-util.so.1 libxcb-util1
libxcb-xfixes.so.0 libxcb-xfixes0
libxcb-xkb.so.1 libxcb-xkb1
libxkbcommon.so.0 libxkbcommon0
libxkbcommon-x11.so.0 libxkbcommon-x11-0
libdbus-1.so.3 libdbus-1-3
libfontconfig.so.1 libfontconfig1
libfreetype.so.6 libfreetype6
libglib-2.0.so.0 libglib2.0-0
libgssapi_krb5.so.2 libgssapi-krb5-2
libbrotlidec.so.1 libbrotli1
libzstd.so.1 libzstd1
libstdc++.so.6 libstdc++6
"

missing() {
    known=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null) || known=""
    echo "$LIBRARIES" | while read -r library package; do
        [ -n "$library" ] || continue
        case "$known" in *"	$library "*) ;; *) echo "$package" ;; esac
    done
    # Qt draws empty boxes without a single font.
    find -L /usr/share/fonts /usr/local/share/fonts -name '*.[ot]tf' 2>/dev/null | grep -q . || echo fonts-dejavu-core
    if [ "${1:-}" = test ]; then
        command -v Xvfb >/dev/null 2>&1 || echo xvfb
    fi
}

install() {
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

[ "$(uname -s)" = Linux ] || exit 0
packages=$(missing "$@" | tr '\n' ' ')
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing system libraries: $packages" >&2
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # one word a package
    install $packages || { apt-get update -qq >/dev/null 2>&1; install $packages; }
    packages=$(missing "$@" | tr '\n' ' ')
    [ -n "$packages" ] || exit 0
    echo "These could not be installed: $packages" >&2
fi
# Not fatal: the terminal works without the window's libraries, and plain BLAS is merely slow.
echo "Missing system libraries. On Debian or Ubuntu: sudo apt-get install $packages" >&2
exit 0
