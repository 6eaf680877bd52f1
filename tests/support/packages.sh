# SPDX-License-Identifier: BSL-1.0
# shellcheck shell=bash
# Sourced by the run scripts: installs Debian packages, or prints which ones to install.

# install_packages PACKAGE...: installs packages as root; for another user it prints the command and
# exits. A failed installation ends the script. Without arguments it does nothing. The duration in
# seconds is appended to the file that PTSPEC_INSTALL_TIMES names, if it is set.
install_packages() {
    [ $# -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "Missing: $*" >&2
        echo "Install, as root, with:" >&2
        echo "    apt-get update && apt-get install --no-install-recommends $*" >&2
        exit 1
    fi
    echo "Installing: $*"
    local started=$SECONDS lock
    # Only one script installs at a time.
    exec {lock}>"${TMPDIR:-/tmp}/ptspec_packages.lock"
    flock "$lock"
    local apt=(apt-get -q -y -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
    if ! "${apt[@]}" update >/dev/null || ! DEBIAN_FRONTEND=noninteractive \
        "${apt[@]}" install --no-install-recommends "$@" >/dev/null; then
        echo "Could not install: $*" >&2
        exit 1
    fi
    if [ -n "${PTSPEC_INSTALL_TIMES:-}" ]; then
        echo $((SECONDS - started)) >>"$PTSPEC_INSTALL_TIMES"
    fi
    exec {lock}>&-
}

# packages_not_installed PACKAGE...: prints the packages that are not installed.
packages_not_installed() {
    local name
    for name in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
            echo "$name"
    done
}
