#!/bin/sh
# Starts Redis, or a Sentinel if the file is called sentinel.conf:
#   start.sh <file> <name that the others use> [additional line of configuration]
# Both rewrite their configuration after a failover. So this script copies the file to the current folder, the volume
# /data. A restarted container uses its copy, and so knows the last master.
set -eu
umask 077
file=$1
name=$2
kept=$PWD/$(basename "$file")
if [ ! -s "$kept" ]; then
  {
    cat "$file"
    if [ "$(basename "$file")" = sentinel.conf ]; then
      echo "sentinel announce-ip $name"
      echo "sentinel auth-pass mymaster \"${REDIS_AUTH:?}\""
      # Sentinels also use this password for each other.
      echo "requirepass \"${REDIS_SENTINEL_AUTH:?}\""
      echo "sentinel sentinel-pass \"${REDIS_SENTINEL_AUTH:?}\""
    else
      echo "replica-announce-ip $name"
      # The same for all servers, because each can become the master.
      echo "requirepass \"${REDIS_AUTH:?}\""
      echo "masterauth \"${REDIS_AUTH:?}\""
    fi
    echo "${3:-}"
  } > "$kept.new"
  mv "$kept.new" "$kept"
fi
case $kept in
  */sentinel.conf) exec redis-server "$kept" --sentinel ;;
  *) exec redis-server "$kept" ;;
esac
