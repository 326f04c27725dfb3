#!/bin/sh
# Starts a Redis, or a Sentinel where the file is called sentinel.conf:
#   start.sh <file> <name by which the others reach it> [further line of configuration]
# Both rewrite their configuration when another Redis becomes the master. So they get a copy of the file in the current
# folder, the volume /data, and a container that starts again goes on with its copy: it knows who the master was.
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
      # Sentinels also log in to each other with it.
      echo "requirepass \"${REDIS_SENTINEL_AUTH:?}\""
      echo "sentinel sentinel-pass \"${REDIS_SENTINEL_AUTH:?}\""
    else
      echo "replica-announce-ip $name"
      # The same on all: each may become the master.
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
