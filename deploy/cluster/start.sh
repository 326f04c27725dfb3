#!/bin/sh
# Starts a node of the cluster:
#   start.sh <redis.conf> <name by which clients reach it>
# What it knows of the others is in the current folder, the volume /data (nodes.conf), and outlives the container.
set -eu
umask 077
{
  cat "$1"
  echo "cluster-announce-hostname $2"
  # The same on all: each may become the master.
  echo "requirepass \"${REDIS_AUTH:?}\""
  echo "masterauth \"${REDIS_AUTH:?}\""
} > redis.conf
exec redis-server "$PWD/redis.conf"
