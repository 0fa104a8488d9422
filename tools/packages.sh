# SPDX-License-Identifier: Apache-2.0
# Sourced by ./quickstart and ./check: installs Debian packages that are missing.
#   need PACKAGE...      prints the one apt line; root runs it, others through sudo
missing_packages() {
        local package
        for package in "$@"; do
                [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
        done
}

need() {
        local missing as_root=
        missing=$(missing_packages "$@")
        [ -n "$missing" ] || return 0
        if [ "$(id -u)" != 0 ]; then
                echo "  to install: sudo apt-get install -y --no-install-recommends $missing"
                command -v sudo >/dev/null || { echo "  sudo is not here: run that line as root, then start again" >&2; return 1; }
                as_root=sudo
        else
                echo "  apt-get install -y --no-install-recommends $missing"
        fi
        # shellcheck disable=SC2086
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && return 0
        $as_root apt-get update -qq >/dev/null || return 1
        # shellcheck disable=SC2086
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# unpack PROGRAM PACKAGE: puts a program of a Debian package below build-tools without installing the package. Installing a server's
# package would start the server. Prints nothing; fails when the package cannot be had.
unpack() {
        local folder=$PWD/build-tools/$2 scratch
        command -v "$1" >/dev/null || [ -x "$folder/usr/sbin/$1" ] || [ -x "$folder/usr/bin/$1" ] && return 0
        scratch=$(mktemp -d)
        # apt's own user reads what it writes here
        chmod 755 "$scratch"
        if (cd "$scratch" && { apt-get download -qq "$2" || { apt-get update -qq && apt-get download -qq "$2"; }; } && dpkg -x ./*.deb unpacked) >/dev/null 2>&1; then
                mkdir -p build-tools && rm -rf "$folder" && mv "$scratch/unpacked" "$folder"
        fi
        rm -rf "$scratch"
        [ -x "$folder/usr/sbin/$1" ] || [ -x "$folder/usr/bin/$1" ]
}

BUILD_PACKAGES="gcc libc6-dev meson ninja-build pkg-config python3 curl libmicrohttpd-dev libgnutls28-dev libjansson-dev libuv1-dev libdnnl-dev nettle-dev zlib1g-dev"
TEST_PACKAGES="libcriterion-dev clang-format openssl wrk"
