#!/bin/bash
# SPDX-License-Identifier: BSL-1.0
# Checks with clang-format 19 that all sources are formatted as .clang-format says.
#
#   format.sh             check; exit status 77 (skipped) when clang-format-19 is not installed
#   format.sh --required  check; a missing clang-format-19 is a failure
#   format.sh --fix       format the sources in place
set -eu -o pipefail
cd "$(dirname "$0")/../.."

mode=${1:-}
tool=${CLANG_FORMAT:-clang-format-19}

case $mode in
    '' | --required | --fix) ;;
    *) sed -n '3,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
if ! command -v "$tool" >/dev/null; then
    echo "skipped: $tool: the format was not checked"
    [ "$mode" = '' ] && exit 77
    exit 1
fi
if ! "$tool" --version | grep -q 'version 19\.'; then
    echo "$tool is not version 19: $("$tool" --version)"
    exit 1
fi

mapfile -t files < <(find include tests examples -name '*.[ch]pp' | LC_ALL=C sort)
if [ "${#files[@]}" = 0 ]; then
    echo "no sources found"
    exit 1
fi
if [ "$mode" = --fix ]; then
    "$tool" -i "${files[@]}"
elif ! wrong=$("$tool" --dry-run --Werror "${files[@]}" 2>&1); then
    grep -o '^[^ ]*:[0-9]*:[0-9]*: error: .*' <<<"$wrong" | cut -d: -f1,2 | uniq || echo "$wrong"
    echo "These lines are formatted differently; tests/checks/format.sh --fix formats them."
    exit 1
fi
echo "${#files[@]} files"
