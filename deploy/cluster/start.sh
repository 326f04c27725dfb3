#!/bin/sh
# Starts a node of the cluster:
#   start.sh <redis.conf> <name that clients use>
# The current folder is the volume /data. It contains nodes.conf, which lists the other nodes and survives the
# container.
set -eu
umask 077
{
  cat "$1"
  echo "cluster-announce-hostname $2"
  # The same for all nodes, because each can become a master.
  echo "requirepass \"${REDIS_AUTH:?}\""
  echo "masterauth \"${REDIS_AUTH:?}\""
} > redis.conf
exec redis-server "$PWD/redis.conf"
