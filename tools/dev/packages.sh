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

# need_disk MB WORDS: says, and fails, when less is free here.
need_disk() {
        local free
        free=$(df -Pm . | awk 'NR == 2 { print $4 }')
        [ "${free:-$1}" -ge "$1" ] && return 0
        echo "$2 needs $1 MB of disk in $PWD, $free MB are free" >&2
        return 1
}

# unpack PROGRAM PACKAGE...: puts a program of one of these Debian packages into build-tools/PROGRAM without installing the package.
# Installing a server's package would start the server. Prints nothing; fails when no package has it.
unpack() {
        local program=$1 folder=$PWD/build-tools/$1 package scratch
        shift
        command -v "$program" >/dev/null || [ -x "$folder/usr/sbin/$program" ] || [ -x "$folder/usr/bin/$program" ] && return 0
        for package in "$@"; do
                scratch=$(mktemp -d)
                # apt's own user reads what it writes here
                chmod 755 "$scratch"
                if (cd "$scratch" && { apt-get download -qq "$package" || { apt-get update -qq && apt-get download -qq "$package"; }; } && dpkg -x ./*.deb unpacked) >/dev/null 2>&1; then
                        mkdir -p build-tools && rm -rf "$folder" && mv "$scratch/unpacked" "$folder"
                fi
                rm -rf "$scratch"
                [ -x "$folder/usr/sbin/$program" ] || [ -x "$folder/usr/bin/$program" ] && return 0
        done
        return 1
}

BUILD_PACKAGES="gcc libc6-dev meson ninja-build pkg-config python3 curl libmicrohttpd-dev libgnutls28-dev libjansson-dev libuv1-dev libdnnl-dev nettle-dev zlib1g-dev libjpeg62-turbo-dev libspng-dev"
TEST_PACKAGES="libcriterion-dev clang clang-format clang-tidy flake8 mandoc dpkg-dev openssl python3-yaml wrk jq"
