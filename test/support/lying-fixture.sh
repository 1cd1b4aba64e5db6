#!/bin/sh
# Says every stage of a proof and is at none but the first.
say() { echo "{\"stage\":\"$1\",\"pid\":$$,\"parent\":$PPID}"; }
say running
while read -r line; do
  case $line in
    stop) say stopped ;;
    exit) say exiting ;;
    check) echo '{"stillExiting":true,"offsetMicros":0}' ;;
    finish) say zombie ;;
    reap) say gone ;;
  esac
done
