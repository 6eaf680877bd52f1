#!/bin/bash
# SPDX-License-Identifier: BSL-1.0
# Checks that the commands of the README need only git, and nothing beside the clone: installs a
# minimal Debian 12 in a temporary directory, clones the last commit into it and runs them there.
# Not part of CI; run it manually as root. It needs debootstrap, and uses the package sources of
# this machine.
#
#   tests/checks/bare_debian.sh              examples/run, examples/record ls /, tests/run
#   tests/checks/bare_debian.sh COMMAND...   one command instead, such as .ci/run, or
#                                            examples/record --machine ls /
set -eu -o pipefail
cd "$(dirname "$0")/../.."

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "bare_debian.sh needs root and debootstrap" >&2
    exit 1
fi
if [ -n "$(git status --porcelain)" ]; then
    echo "Only what is committed is tried; this tree has changes that are not."
fi

# The URI of the first package source of apt, in either of its two formats.
sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null || true)
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\).*/\2/p' \
    <<<"$sources" | sed -n 1p)
if [ -z "$mirror" ]; then
    echo "no package source in /etc/apt" >&2
    exit 1
fi

system=$(mktemp -d)
leave() {
    umount "$system/proc" 2>/dev/null || true
    rm -rf --one-file-system "$system"
}
trap leave EXIT
inside() {
    chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} "$@"
}

echo "== a minimal Debian 12 with git"
chmod 755 "$system"
debootstrap --variant=minbase bookworm "$system" "$mirror" >"$system.log" 2>&1 ||
    { tail "$system.log"; exit 1; }
rm "$system.log"

# Copies the network configuration: names, package sources and proxies.
cp /etc/resolv.conf /etc/hosts "$system/etc/"
rm -f "$system/etc/apt/sources.list"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} \
    $(grep -l -s '^ *Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/*); do
    if [ -e "$file" ]; then cp --parents "$file" "$system"; fi
done
if grep -q https: <<<"$sources"; then
    cp -a --parents /etc/ssl/certs /usr/share/ca-certificates "$system"
fi
mountpoint -q "$system/proc" || mount -t proc proc "$system/proc"

inside apt-get -q -y update >/dev/null
inside apt-get -q -y -o Dpkg::Use-Pty=0 install --no-install-recommends git >/dev/null
git clone --quiet --bare . "$system/origin"
inside git clone --quiet /origin /ptspec
inside rm -rf /var/lib/apt/lists # as on a machine whose lists were never fetched

if [ $# = 0 ]; then
    set -- "examples/run && examples/record ls / && tests/run"
fi
echo "== in it: $*"
inside bash -c "cd /ptspec && $*"
echo "== passed: $*"
